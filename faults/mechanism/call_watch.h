/* call_watch: system calls that a program and its children begin, seen before they begin (seccomp
 * user notification, Linux 5.0): who makes one waits until the watcher lets it go on. It is how a
 * cut reaches sockets that did not exist when it was made, and how a fault strikes just when a file
 * is written.
 *
 * What is watched can gain no privileges by an exec any more (NO_NEW_PRIVS: no sudo). When the
 * watcher has gone, nobody waits: those calls fail with ENOSYS; so it must live as long as what it
 * watches. What makes no call of that name, such as io_uring or a mapping, is not seen. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum call_kind {
    CALL_CONNECT = 1,
    CALL_OPEN = 2,
    CALL_WRITE = 4,
    CALL_RENAME = 8,
    CALL_CLOSE = 16,
    /* No kind: a signal may break the waiting off, and the call begins anew. Who waits can be
     * stopped and traced then; else nothing but its death ends its waiting (Linux 5.19). */
    CALL_INTERRUPTIBLE = 32,
};

/* What is watched: all calls of some kinds, and some by their numbers. */
enum { CALL_NUMBERS_MAX = 200 };
struct call_watch {
    unsigned kinds; /* CALL_*; 0 and no numbers: nothing is watched */
    int numbers[CALL_NUMBERS_MAX];
    size_t numbers_n;
    bool passes_readers; /* nobody waits for an open that can only read (but by openat2) */
};

struct watched_call {
    uint64_t id;
    enum call_kind kind; /* 0: it is watched for its number alone */
    pid_t pid, thread;   /* the process, and whoever of it calls */
    int nr;
    uint64_t args[6];
    struct sockaddr_storage to; /* of CALL_CONNECT; ss_family 0: could not be read */
};

/* For a child before its exec: watches these calls, its own and all that it will start, and sends the descriptor of
 * the watch through `to`, a Unix socket. Only async-signal-safe calls. 0 or a -errno. */
int call_watch_install(int to, const struct call_watch *w);
/* The descriptor that was sent; readable when a call waits. Or a -errno. */
int call_watch_take(int from);

/* The next call that waits. 1; 0: it has gone; a -errno: nothing is watched any more. */
int call_watch_next(int watch, struct watched_call *ret);
/* The same of a call that poll has told of, by its revents; pid is 0, as whoever gets many of them may
 * know it without looking. */
int call_watch_receive(int watch, short revents, struct watched_call *ret);
pid_t call_watch_process(pid_t thread);
void call_watch_pass(int watch, uint64_t id); /* lets it go on */
/* It is not made: the caller gets that value, or below 0 a -errno. 0; -ENOENT: who called has gone. */
int call_watch_answer(int watch, uint64_t id, int64_t value);
/* It is not made: the caller gets a copy of this descriptor (Linux 5.9), which stays the watcher's.
 * Returns 0, or a -errno, after which the call still waits. */
int call_watch_give(int watch, uint64_t id, int fd, bool close_on_exec);
/* Whoever calls waits yet: what was read of it is its own. */
bool call_watch_waits(int watch, uint64_t id);
/* Lets everything go on until fd can be read or has closed: what a child does before its exec. */
void call_watch_attend(int watch, int fd);

/* Tries to watch a child. 0, or -ENOTSUP with the reason and what would fix it. */
int call_watch_check(struct err *err);
