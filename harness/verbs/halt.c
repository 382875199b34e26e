/* rankquake halt: ends a run from another terminal, as Ctrl-C does in its own. */
#include "agent/base/str.h"
#include "agent/sys/process.h"
#include "harness/run/presence.h"
#include "harness/verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

static const int64_t END_WAIT_NS = 30000000000;

/* Its control run lives in a directory of its own, by the same harness. */
static int find_harness(const char *run, struct presence_process *ret) {
    struct arena a = {0};
    const char *dirs[] = {run, arena_printf(&a, "%s/control", run)};
    int r = -ESRCH;
    for (size_t i = 0; i < 2 && r; i++) {
        struct presence p;
        if (presence_read(dirs[i], &a, &p, NULL) == 0 && presence_state(&p) == PRESENCE_LIVE) {
            *ret = (struct presence_process){.pid = p.harness.pid,
                                             .start_ticks = p.harness.start_ticks};
            r = 0;
        }
    }
    arena_fini(&a);
    return r;
}

static int end_harness(const struct presence_process *harness, struct err *err) {
    struct process p;
    uint64_t ticks;
    int r = process_open(harness->pid, &p, err);
    if (r)
        return r;
    if (process_start_ticks(harness->pid, &ticks) == 0 && ticks == harness->start_ticks)
        r = process_signal(&p, SIGTERM);
    if (r == 0)
        r = process_wait_end(&p, END_WAIT_NS);
    process_close(&p);
    if (r == -ETIME)
        return err_say(err, r, "harness %d was told to end and has not after %d s",
                       (int)harness->pid, (int)(END_WAIT_NS / 1000000000));
    return r ? err_set(err, r, "tell harness %d to end", (int)harness->pid) : 0;
}

static int halt_run(const char *run) {
    struct presence_process harness;
    struct err err = {0};
    if (presence_find_run(run, &err) < 0) {
        fprintf(stderr, "rankquake halt: %s; give the directory of a run that goes on\n", err.msg);
        return EXIT_USAGE_ERROR;
    }
    if (find_harness(run, &harness) != 0) {
        printf("%s does not run any more\n", run);
        return EXIT_PASS;
    }
    if (end_harness(&harness, &err) != 0) {
        fprintf(stderr, "rankquake halt: %s\n", err.msg);
        return EXIT_BROKEN;
    }
    printf("ended %s: what was broken is undone, its report is written\n", run);
    return EXIT_PASS;
}

static int halt(int argc, char **argv) {
    struct arguments a;
    int code = arguments_read(&a, &verb_halt, argc, argv);
    if (code)
        return code;
    if (a.files_n != 1)
        code = verb_usage_error(a.verb, "name the directory of one run");
    else
        code = halt_run(a.files[0]);
    arguments_fini(&a);
    return code;
}

const struct verb verb_halt = {
    .name = "halt",
    .usage = "halt RUN",
    .summary = "end a run from another terminal: undo its faults, take its cluster down",
    .example = "halt runs/tour-1-20260105-093000",
    .options = (const struct verb_option[]){{0}},
    .main = halt,
};
