/* rankquake halt: ends a run from another terminal, as Ctrl-C does in its own. */
#include "base/sys/process.h"
#include "harness/run/presence.h"
#include "harness/verbs.h"
#include "harness/verbs/hosts_left.h"
#include "harness/verbs/wanted_hosts.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t END_WAIT_NS = 30000000000;

static int end_harness(const struct presence *p, struct err *err) {
    struct process harness;
    int r = process_open(p->harness.pid, &harness, err);
    if (r)
        return r;
    if (!presence_is_harness(p))
        r = err_say(err, -EPERM,
                    "process %d does not answer to the mark of this run, whatever presence.json "
                    "says: it is not its harness, or was started in another network namespace",
                    (int)p->harness.pid);
    else if ((r = process_signal(&harness, SIGTERM)) == 0 &&
             (r = process_wait_end(&harness, END_WAIT_NS)) == -ETIME)
        err_say(err, r, "harness %d was told to end and has not after %d s", (int)p->harness.pid,
                (int)(END_WAIT_NS / 1000000000));
    else if (r)
        err_set(err, r, "tell harness %d to end", (int)p->harness.pid);
    process_close(&harness);
    return r;
}

static int halt_found(const struct folder *run) {
    ARENA_FINI struct arena a = {0};
    struct presence p;
    struct err err = {0};
    int code = EXIT_PASS;
    if (presence_read_living(run, &a, &p) != 0) {
        printf("%s does not run any more\n", run->path);
    } else if (end_harness(&p, &err) != 0) {
        code = verb_broken(&verb_halt, &err);
    } else {
        printf("ended %s: what was broken is undone, its report is written\n", run->path);
    }
    return code;
}

static int halt_run(const char *path) {
    struct folder run;
    struct err err = {0};
    if (presence_find_run(&run, path, &err) < 0) {
        fprintf(stderr, "rankquake halt: %s; give the directory of a run that goes on\n", err.msg);
        return EXIT_USAGE_ERROR;
    }
    int code = halt_found(&run);
    folder_close(&run);
    return code;
}

/* A run is known on its hosts by the directory that it writes into. */
static int halt_there(const struct arguments *a) {
    char path[PATH_MAX];
    if (a->files_n > 1)
        return verb_usage_error(a->verb, "name the directory of one run, or none for any");
    return hosts_left(a, "halt",
                      !a->files_n                   ? NULL
                      : realpath(a->files[0], path) ? path
                                                    : a->files[0]);
}

static int halt(const struct arguments *a) {
    if (wanted_hosts_asked(a))
        return halt_there(a);
    return a->files_n == 1 ? halt_run(a->files[0])
                           : verb_usage_error(a->verb, "name the directory of one run");
}

const struct verb verb_halt = {
    .name = "halt",
    .usage = "halt RUN | halt --hosts A,B,.. [RUN]",
    .summary = "end a run from another terminal: undo its faults, take its cluster down",
    .example = "halt runs/tour-1-20260105-093000",
    .operands = "RUN",
    .options = (const struct verb_option[]){HOSTS_LEFT_OPTIONS, {0}},
    .run = halt,
};
