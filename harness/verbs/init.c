/* Writes a scenario for a typed command. */
#include "harness/verbs/typed.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "harness/play/suite.h"
#include "harness/scenario/pattern.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A scenario is judged by what the job shows; here is what it could show, and what could be done to
 * it, ready to be uncommented. */
static const char rest[] =
    "\n"
    "# What is expected of the run. Rounds, ranks, restarts, resuming and leftovers are judged "
    "anyway.\n"
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
    bool kept;  /* follows from a control run of the same job, as try leaves one */
    bool other; /* which was made with other options */
    struct generate_run run;
    struct generate_moment at;
};

/* Takes the steps that the expression finds in a line of what the control run has printed. */
static void take_step(const struct pattern *p, const char *line, struct generate_run *run) {
    struct pattern_value v[PATTERN_VALUES_MAX];
    char text[24];
    int64_t step;
    if (!pattern_match(p, line, v) || !v[0].at || v[0].len >= sizeof(text))
        return;
    snprintf(text, sizeof(text), "%.*s", (int)v[0].len, v[0].at);
    if (!str_to_i64(text, 0, INT64_MAX / 2, &step))
        return;
    run->first_step = run->first_step < 0 || step < run->first_step ? step : run->first_step;
    run->last_step = step > run->last_step ? step : run->last_step;
}

static void look_into(const struct folder *logs, const char *name, const struct pattern *p,
                      struct generate_run *run) {
    enum { LOG_MAX = 64 << 20 };
    BUF_FINI struct buf text = {0};
    if (folder_read(logs, name, LOG_MAX, &text, NULL) != 0)
        return;
    char *save = NULL;
    for (char *line = strtok_r(text.data, "\r\n", &save); line;
         line = strtok_r(NULL, "\r\n", &save))
        take_step(p, line, run);
}

/* What the expression would have found in the control run, where its logs are still there. */
static void look_for_steps(const struct control *c, const char *expression,
                           struct generate_run *run) {
    struct folder dir;
    TEXTS_FINI struct texts nodes = {0};
    if (!*c->made || folder_open(&dir, c->made, NULL) != 0)
        return;
    struct pattern *p = pattern_new(expression, NULL);
    folder_list(&dir, "logs", NULL, &nodes, NULL);
    for (size_t i = 0; p && i < nodes.n; i++) {
        TEXTS_FINI struct texts logs = {0};
        BUF_FINI struct buf at = {0};
        buf_printf(&at, "logs/%s", nodes.v[i]);
        folder_list(&dir, buf_str(&at), NULL, &logs, NULL);
        for (size_t k = 0; k < logs.n; k++) {
            BUF_FINI struct buf name = {0};
            buf_printf(&name, "logs/%s/%s", nodes.v[i], logs.v[k]);
            look_into(&dir, buf_str(&name), p, run);
        }
    }
    pattern_free(p);
    folder_close(&dir);
}

/* The steps that another expression has found are none that this file could wait for. */
static struct generate_run run_of(const struct control *c, bool other, const char *expression) {
    struct generate_run run = suite_generate_run(c);
    if (!other || run.told)
        return run;
    run.first_step = run.last_step = -1;
    run.steps_ns = 0;
    if (expression)
        look_for_steps(c, expression, &run);
    if (run.last_step >= 0)
        run.steps_ns = run.train_ns;
    return run;
}

/* Where steps are read and none is known, the first one surely comes. */
static struct moment find_moment(const struct typed *t, struct arena *a) {
    struct moment m = {.at.time_ns = 20000000000};
    struct control c;
    struct diagnostics d = {0};
    struct scenario *s = typed_load(t, t->sets, &d);
    const struct observed *steps = s ? scenario_observes(s, "step") : NULL;
    if (typed_find_control(t, suite_bin(a), &c, &m.other)) {
        m.run = run_of(&c, m.other, steps ? steps->pattern : NULL);
        m.kept = generate_moment(&m.run, &m.at, NULL);
    }
    if (steps && !m.at.by_step) {
        m.kept = false;
        m.at = (struct generate_moment){.by_step = true, .step = 1};
    }
    scenario_free(s);
    diagnostics_fini(&d);
    return m;
}

static void put_moment(const struct moment *m, struct buf *out) {
    if (!m->kept && m->at.by_step) {
        buf_puts(out, "# No control run of this command is kept that has shown which steps are "
                      "made, so it is the\n# first one that is surely told: write one about two "
                      "fifths of the way. Where `rankquake try`\n# has run with the same "
                      "options, init writes that.\n");
        return;
    }
    if (!m->kept) {
        buf_puts(out, "# No control run of this command is kept that is long enough, so the "
                      "time is a guess. It\n# counts from when all workers have started and must "
                      "be below what the job takes: write about\n# half of that. Where "
                      "`rankquake try -- CMD` has run before, init writes that.\n");
        return;
    }
    buf_printf(out, "# About half way through the control run that was kept%s: ",
               m->other ? ", made with other options" : "");
    generate_moment_text(&m->run, &m->at, out);
    buf_puts(out, ".\n");
}

static void put_timeline(const struct generated *d, const struct moment *m, struct buf *out) {
    put_moment(m, out);
    buf_puts(out, "timeline:\n");
    generate_timeline(&generate_faults[0], d, &m->at, "  ", out);
    buf_puts(out, "# Others, instead or besides (`after: ID` puts one behind another):\n");
    for (int i = 1; i < GENERATE_FAULTS; i++)
        generate_timeline(&generate_faults[i], d, &m->at, "#  ", out);
    if (!d->spare)
        buf_printf(out,
                   "#    (a node that joins must be off before: cluster: {nodes: %d, start: %d})\n",
                   d->nodes, d->nodes - 1);
}

/* ---- the file ---- */

static void put_notes(const struct typed *t, struct buf *out) {
    for (size_t i = 0; t->command.notes[i]; i++)
        buf_printf(out, "# %s\n", t->command.notes[i]);
    for (size_t i = 0; t->generated.notes[i]; i++)
        buf_printf(out, "# %s\n", t->generated.notes[i]);
}

/* As it was typed, but for where the file goes. */
static void put_typed(const struct arguments *a, struct buf *out) {
    buf_puts(out, "# Made by: rankquake init ");
    for (size_t i = 0; i < a->options_n; i++) {
        char *value[] = {(char *)a->values[i], NULL};
        if (str_eq(a->names[i], "--out") || str_eq(a->names[i], "--force"))
            continue;
        buf_printf(out, "%s ", a->names[i]);
        typed_print(value, out);
        buf_putc(out, ' ');
    }
    buf_puts(out, "-- ");
    typed_print(a->rest, out);
}

static void put_file(const struct arguments *a, const struct typed *t, const char *job,
                     const struct moment *m, struct buf *out) {
    int world = t->generated.nodes * t->generated.workers;
    put_typed(a, out);
    buf_puts(out, "\n# rankquake run FILE does it, rankquake plan FILE tells first what it would "
                  "do.\n");
    put_notes(t, out);
    buf_puts(out, job);
    put_timeline(&t->generated, m, out);
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

/* ---- the job ---- */

/* A mistake in a set is told as try tells it. */
static bool are_sets_good(const struct typed *t, struct diagnostics *d) {
    scenario_free(typed_load(t, t->sets, d));
    return d->errors == 0;
}

/* The job and its cluster as text, with what the options set. */
static int put_job(const struct arguments *a, const struct typed *t, struct buf *out) {
    BUF_FINI struct buf plain = {0};
    struct diagnostics d = {0};
    int code = 0;
    for (const char **s = t->sets; *s; s++)
        if (str_starts(*s, "timeline"))
            return verb_usage_error(
                a->verb, "--set %s: init writes the timeline itself; change it in the file", *s);
    typed_put(t, &plain);
    if (!t->sets[0])
        buf_puts(out, buf_str(&plain));
    else if (!are_sets_good(t, &d) || !generate_sets(buf_str(&plain), t->sets, out, &d))
        code = EXIT_USAGE_ERROR;
    fprintf(stderr, "%s%s", code ? "rankquake init: " : "", buf_str(&d.out));
    diagnostics_fini(&d);
    return code;
}

static int init(const struct arguments *a) {
    ARENA_FINI struct arena arena = {0};
    struct typed t = {0};
    BUF_FINI struct buf job = {0}, text = {0};
    int code = typed_read(&arena, a, &t);
    if (code == 0)
        code = put_job(a, &t, &job);
    if (code == 0) {
        struct moment m = find_moment(&t, &arena);
        put_file(a, &t, buf_str(&job), &m, &text);
        code = write_file(a, &text);
    }
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
            {"--observe", "KIND=REGEX",
             "read events from what workers print, step='step ([0-9]+)'; or a preset: lightning"},
            {"--set", "KEY=VALUE", "a value of the scenario, job.checkpoint.dir=ckpt"},
            {"--nodes", "N", "emulated nodes (default: as the command says, or 2)"},
            {"--workers", "N", "workers on each node (default: as the command says, or 1)"},
            {0}},
    .run = init,
};
