/* pidfds: the deaths of workers, seen by the kernel and nobody else.
 *
 * That a worker has ended is told by its pidfd on every kernel. How it ended is told to its parent,
 * so it is asked for in three ways: of /proc while the worker is a zombie, of the pidfd once its
 * parent has reaped it (Linux >= 6.15), else of the kernel's process events, which are opened only
 * where the pidfd cannot answer. An event comes a little after the pidfd has woken: the worker then
 * counts as ended, its record is written when the status has come, and stamped when the pidfd woke.
 * Where none of them answers, or an event was lost, the status is unknown. */
#pragma once

#include "base/sys/proc_events.h"
#include "harness/observe/observe.h"

struct pidfds;

/* Where a status comes from; tests bring their own. They answer as in process.h, proc_events.h. */
struct exit_sources {
    int (*zombie)(pid_t pid, int *ret_status);
    int (*info)(int pidfd, int *ret_status);
    bool (*info_works)(void);
    int (*events_open)(struct err *err);
    int (*events_read)(int fd, struct proc_exit *ret);
    void (*events_close)(int fd);
};
extern const struct exit_sources exit_sources_of_host;

/* sources must outlive it. ended is called when the pidfd has woken, before the worker-exit record
 * is written, so that the last messages of the process can be read first. */
struct pidfds *pidfds_new(struct loop *l, struct recorder *rec, const struct exit_sources *sources,
                          void (*ended)(void *arg, pid_t pid), void *arg);
struct pidfds *pidfds_free(struct pidfds *p);

/* How a status is seen: "pidfd", "events", or "zombie": only if nobody reaps it before. */
const char *pidfds_way(const struct pidfds *p);

/* Takes pidfd. since_ns: a moment at which the process was alive, to tell its end from that of an
 * earlier one with the same number. Watching a pid that is watched already closes it again. */
void pidfds_watch(struct pidfds *p, const char *node, pid_t pid, int pidfd, int64_t since_ns);
int pidfds_find(const struct pidfds *p, pid_t pid); /* -1: none that lives */
/* Records every end that has already come, so that what is written next lies behind it. Waits for
 * statuses that are on their way, 200 ms at most, as a rule microseconds. */
void pidfds_drain(struct pidfds *p);
