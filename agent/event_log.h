/* event_log: --event-log-handler console: the events that torchelastic logs at the end, one JSON
 * object a line on stderr (torch.distributed.elastic.events; names, keys and types as torch 1.13 to
 * 2.14 have them): one for each worker of the last round on this node, one for the agent.
 *
 * Like torchrun it says nothing of rounds that were followed by another: those are rankrun's own
 * lines (agent/round_line.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct action;
struct event_log;
struct options;
struct round_spec;

/* NULL: it was not asked for; every function below then does nothing. */
struct event_log *event_log_new(const struct options *o, int64_t now_ns);
struct event_log *event_log_free(struct event_log *e); /* returns NULL */

void event_log_round(struct event_log *e, const struct round_spec *r);
void event_log_started(struct event_log *e, int local_rank, pid_t pid);
/* by_itself: nobody had asked the group to end. */
void event_log_ended(struct event_log *e, int local_rank, int wait_status, const char *error,
                     bool by_itself);
/* exit: an ACTION_EXIT. */
void event_log_print(const struct event_log *e, const struct action *exit, int64_t now_ns);
