/* script: one core led by hand. Each function is one event, with what it must ask for before; the
 * actions of the last step lie in `actions`. */
#pragma once

#include "agent/core/rendezvous.h"

#define MS  1000000LL
#define INC "0123456789abcdef"

extern struct rendezvous *r;
extern const struct action *actions; /* of the last step */
extern size_t n_actions;
extern int64_t now_ns;
extern char uid[UID_SIZE];
extern bool port_needed; /* asked for, and not given yet */

struct rendezvous_config config_of(void);
void step(struct event ev);
const struct action *find(enum action_kind kind);
const struct action *need(enum action_kind kind);
const struct action *find_put(enum key_kind kind, const union value **ret);
struct entry entry_of(enum key_kind kind, int64_t mod, const union value *v);
void answer(const struct action *a, const struct entry *entries, size_t n, int64_t rev);
void done(uint64_t id, bool reached, bool applied, int64_t rev);
void changed(enum watch_slot slot, struct entry e);
void tick(int64_t ns);
void beat(int64_t seq, enum beat_result result);
union value cur_of(const char *attempt);
void begin(const struct rendezvous_config *c);
void come_to_head(const char *attempt, const union value *head);
/* A session was lost; the store has the incarnation, and is at this revision. */
void come_back(int64_t revision);
void join(void);
union value head_of(enum head_phase phase, int64_t round, int64_t last);
void form(int64_t round, int64_t last, int64_t rev);
void port(void);
void run(int64_t round, int64_t rev);
void work(void);
void exited(int local_rank, int status);
void reaped(void);
void signaled(int signo);
int script_end(void **state);
