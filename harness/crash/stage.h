/* stage: a job started once, as its user starts it, with a directory put where it looks for its
 * own, and taken away again with all that it has started.
 *
 * Where namespaces can be had the job has its own: of processes, mounts, IPC, and of the network,
 * in which there is only it. The directory lies in memory, as do /dev/shm, TMPDIR, and what the job
 * changes below the directory that it is started in: nothing of it is seen outside, and all of it
 * has gone when the last process of the stage has, whoever ended that. Else (as processes) the
 * directory is a scratch one, and a keeper ends what is below it when the job, or who has started
 * the stage, has ended. */
#pragma once

#include "base/err.h"
#include "base/sys/process.h"
#include "faults/mechanism/call_watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In namespaces the folder in which the socket of the events lies is seen here as well. */
#define STAGE_EVENTS "/dev/shm/.rankquake"

struct stage_spec {
    const char *const *argv;        /* NULL-ended */
    const char *cwd;                /* absolute */
    const char *dir;                /* absolute: where the job has its directory */
    bool namespaces, network;       /* network: one of its own */
    int output;                     /* its standard output and error */
    int64_t limit_ns;               /* 0: none */
    const char *events;             /* RANKQUAKE_EVENTS; NULL: none */
    const struct call_watch *watch; /* NULL: none */
    const char *recorded;           /* the directory that stage_take_dir returns; NULL: dir */
    int (*fill)(void *arg, const char *path, struct err *err); /* the directory, which is empty */
    int (*sum)(void *arg, const char *path, char ret[65]);     /* of it, when the job has ended */
    void *arg;
    const char *result; /* a file that the job leaves, seen from cwd; NULL: none */
};

struct stage_end {
    int status; /* a wait status */
    bool late;  /* it was ended by the limit */
    int64_t ran_ns;
    char sum[65];    /* "": there is none */
    char result[65]; /* SHA-256 of the file; "": there is none */
    struct err err;  /* code 0: the job was started */
};

struct crash_stage {
    struct process process; /* has ended when all of it has */
    int report;             /* ours */
    int watch; /* a socket, readable when the directory has come (stage_take_dir), then when
                  the watch has (call_watch_take); -1 */
};
#define STAGE_NONE ((struct crash_stage){PROCESS_NONE, -1, -1})

int stage_start(const struct stage_spec *s, struct crash_stage *ret, struct err *err);
/* The directory as the job sees it, opened with O_PATH: the caller's. Or a -errno. */
int stage_take_dir(const struct crash_stage *s);
/* Once the process has ended: what came of it; closes all. */
void stage_take(struct crash_stage *s, struct stage_end *ret);
/* Ends all of it; stage_take follows. */
void stage_kill(struct crash_stage *s);

/* Whether stages can have namespaces here, tried. 0, or -ENOTSUP with what would let them. */
int stage_check(struct err *err);
