#include "harness/verbs/typed.h"

#include "agent/base/str.h"
#include "agent/sys/file.h"
#include "harness/play/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A scenario is judged by what the job shows; here is what it could show, and what could be done to
 * it, ready to be uncommented. */
static const char rest[] =
    "\n"
    "# What must come of it. Rounds, ranks, restarts, resuming and leftovers are judged anyway.\n"
    "# expect:\n"
    "#   world_sizes: [%d, %d]         # workers in each round\n"
    "#   restarts: 1\n"
    "#   recover_within: 30s\n"
    "\n"
    "# How long things may take; a limit that passes is a failed check, with stacks collected.\n"
    "# limits: {start: 60s, stall: 30s, total: 10m}\n"
    "\n"
    "# A job that reports its steps (scenarios/jobs/rankquake.py, rankquake.h) can be hit at a "
    "step:\n"
    "#   {when: {step: 100}, ...}    and has its checkpoints judged, where it says where they "
    "are:\n"
    "#   job: {checkpoint: {dir: ckpt, complete: COMMAND}}     COMMAND prints the complete steps\n"
    "# `rankquake explain NAME` tells of every word; `rankquake list faults` what else can be "
    "done.\n";

/* ---- when ---- */

struct moment {
    bool kept; /* follows from an undisturbed run of the same job, as try leaves one */
    struct sketch_run run;
    struct sketch_moment at;
};

static bool read_control(const struct plan *p, struct arena *a, struct control *ret) {
    char key[65], cache[4096];
    return control_key(p, suite_bin(a), key, NULL) == 0 &&
           control_dir(key, cache, sizeof(cache), NULL) == 0 && control_read(cache, ret, NULL) == 0;
}

/* The job as try would load it. What is wrong with it is said when the file is used. */
static bool find_control(const char *path, struct arena *a, struct control *ret) {
    struct diagnostics d = {0};
    struct scenario *s = scenario_load(path, NULL, &d);
    struct plan *p = s ? plan_make(s, 1, &d) : NULL;
    bool found = p && plan_check_host(p, NULL) == 0 && read_control(p, a, ret);
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
    return found;
}

static struct moment find_moment(const struct typed *t, struct arena *a) {
    struct moment m = {.at.time_ns = 20000000000};
    struct control c;
    struct buf text = {0};
    char path[] = "/tmp/rankquake-init-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return m;
    close(fd);
    buf_printf(&text, "scenario: %s\n", t->command.name);
    sketch_put(&t->sketch, &text);
    if (file_write(path, text.data, text.len, NULL) == 0 && find_control(path, a, &c)) {
        m.run = suite_sketch_run(&c);
        m.kept = sketch_moment(&m.run, &m.at, NULL);
    }
    unlink(path);
    buf_fini(&text);
    return m;
}

static void put_moment(const struct moment *m, struct buf *out) {
    if (!m->kept) {
        buf_puts(out, "# time: since all workers have started. Write about half of what the job "
                      "takes; where\n# `rankquake try -- CMD` has run before, init writes that.\n");
        return;
    }
    buf_puts(out, "# About half way through the undisturbed run that was kept: ");
    sketch_put_moment(&m->run, &m->at, out);
    buf_puts(out, ".\n");
}

static void put_timeline(const struct sketch *d, const struct moment *m, struct buf *out) {
    put_moment(m, out);
    buf_puts(out, "timeline:\n");
    sketch_put_timeline(0, d, &m->at, "  ", out);
    buf_puts(out, "# Others, instead or besides (`after: ID` puts one behind another):\n");
    for (int i = 1; i < SKETCH_FAULTS; i++)
        sketch_put_timeline(i, d, &m->at, "#  ", out);
    if (!d->spare)
        buf_printf(out,
                   "#    (a node that joins must be off before: cluster: {nodes: %d, start: %d})\n",
                   d->nodes, d->nodes - 1);
}

/* ---- the file ---- */

static void put_notes(const struct typed *t, struct buf *out) {
    for (size_t i = 0; t->command.notes[i]; i++)
        buf_printf(out, "# %s\n", t->command.notes[i]);
    for (size_t i = 0; t->sketch.notes[i]; i++)
        buf_printf(out, "# %s\n", t->sketch.notes[i]);
}

static void put_file(const struct arguments *a, const struct typed *t, const struct moment *m,
                     struct buf *out) {
    int world = t->sketch.nodes * t->sketch.workers;
    buf_puts(out, "# Made by: rankquake init -- ");
    typed_print(a->rest, out);
    buf_puts(out, "\n# rankquake run FILE does it, rankquake plan FILE tells first what it would "
                  "do.\n");
    put_notes(t, out);
    buf_printf(out, "scenario: %s\n", t->command.name);
    sketch_put(&t->sketch, out);
    put_timeline(&t->sketch, m, out);
    buf_printf(out, rest, world, world);
}

static int write_file(const struct arguments *a, const struct buf *text) {
    const char *path = arguments_value(a, "--out");
    struct err err = {0};
    if (!path) {
        fputs(buf_str(text), stdout);
        return EXIT_PASS;
    }
    bool was_there = file_exists(path);
    if (was_there && !arguments_value(a, "--force"))
        return verb_usage_error(a->verb, "%s is there already; --force overwrites it", path);
    if (file_write(path, text->data, text->len, &err) != 0) {
        fprintf(stderr, "rankquake init: %s\n", err.msg);
        if (!was_there)
            unlink(path);
        return EXIT_BROKEN;
    }
    printf("%s\nrankquake lint %s checks it, rankquake run %s does it\n", path, path, path);
    return EXIT_PASS;
}

static int init(int argc, char **argv) {
    struct arguments a;
    struct arena arena = {0};
    struct typed t = {0};
    struct buf text = {0};
    int code = arguments_read(&a, &verb_init, argc, argv);
    if (code)
        return code;
    code = typed_read(&arena, &a, &t);
    if (code == 0) {
        struct moment m = find_moment(&t, &arena);
        put_file(&a, &t, &m, &text);
        code = write_file(&a, &text);
    }
    buf_fini(&text);
    arena_fini(&arena);
    arguments_fini(&a);
    return code;
}

const struct verb verb_init = {
    .name = "init",
    .usage = "init [options] -- CMD...",
    .summary = "write a scenario for the command that you type today, to be edited",
    .example = "init -- rankrun --nproc-per-node 2 ranktrain --steps=200",
    .options =
        (const struct verb_option[]){
            {"--out", "FILE", "write this file (default: print it)"},
            {"--force", NULL, "overwrite the file"},
            {"--launcher", "X",
             "start it with rankrun, torchrun, a command of yours or a template"},
            {"--nodes", "N", "emulated nodes (default: as the command says, or 2)"},
            {"--workers", "N", "workers on each node (default: as the command says, or 1)"},
            {0}},
    .main = init,
};
