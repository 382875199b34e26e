/* held: what processes hold, as /proc shows it from outside: memory that is resident, threads, and
 * descriptors by what they are. A new coordinator has some connections more, and a launcher that
 * forgets to close something has more of one kind in every round: only the kinds tell the two
 * apart. */
#pragma once

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* anonymous: what has no name, as epoll, timerfd and eventfd */
#define HELD_KINDS(X) X(socket) X(pipe) X(file) X(pidfd) X(anonymous)
enum held_kind {
#define X(name) HELD_##name,
    HELD_KINDS(X)
#undef X
        HELD_KINDS_N
};

struct held_sum {
    int64_t processes;
    int64_t rss, threads; /* -1: not for us to see */
    int64_t fds;          /* likewise; the sum of kinds */
    int64_t kinds[HELD_KINDS_N];
};

/* What a descriptor is whose link in /proc/PID/fd reads so. */
enum held_kind held_kind_of(const char *link);
/* Adds what that process holds; one that is gone adds nothing. h begins as {0}. */
void held_add(struct held_sum *h, pid_t pid);
/* All that descend from pid and are not among `without`, nor descend from one of these. */
void held_each_descendant(pid_t pid, const pid_t *without, size_t n,
                          void (*visit)(void *arg, pid_t pid), void *arg);
/* Adds what they hold. */
void held_add_descendants(struct held_sum *h, pid_t pid, const pid_t *without, size_t n);
/* rss, threads, fds and kinds, as far as they are known. */
void held_put(struct json_writer *w, const struct held_sum *h);
