/* rankquake start: the job of a scenario started once on a stage (harness/crash/stage.h), with
 * {shared} and the disks of its nodes as they lie in DIR/disks. What came of it is printed, a line
 * for each thing, for the rankquake that has started it. */
#include "base/str.h"
#include "base/sys/folder.h"
#include "harness/crash/marks.h"
#include "harness/play/last_words.h"
#include "harness/play/start.h"
#include "harness/play/suite.h"
#include "harness/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what came of it ---- */

/* The first round alone: what a launcher makes good itself was not well. */
static void print_resumes(const struct start_end *e) {
    const struct round *r = e->rounds.n ? e->rounds.v[0] : NULL;
    for (size_t i = 0; r && i < r->n; i++)
        if (r->workers[i]->resume_step >= 0)
            printf("rankquake start: resume %" PRId64 "\n", r->workers[i]->resume_step);
}

static void print_models(const struct start_end *e) {
    const struct round *r = e->rounds.n ? e->rounds.v[e->rounds.n - 1] : NULL;
    for (size_t i = 0; r && i < r->n; i++)
        if (*r->workers[i]->model)
            printf("rankquake start: model %s\n", r->workers[i]->model);
}

static void print_loss(const struct start_end *e) {
    struct control c = {.first_step = -1, .last_step = -1, .kept = -1};
    control_take(&e->history, &e->rounds, &c);
    if (c.has_loss)
        printf("rankquake start: loss %.17g\n", c.loss);
}

static void hear(struct crash_marks *m, const struct start_end *e, const struct record *r) {
    bool printed = *record_text(r, "from");
    const struct worker *w = rounds_worker_at(&e->rounds, r->pid, r->t_ns);
    const char *said = record_is(r, "other") ? record_text(r, "said") : r->kind;
    if (printed && str_eq(said, "step"))
        return; /* nobody knows when it was printed */
    crash_marks_hear(m, &(struct crash_word){.kind = said,
                                             .step = json_get_i64(r->fields, "step", -1),
                                             .pid = (int)r->pid,
                                             .rank = w ? w->rank : -1,
                                             .node = w ? w->node : "",
                                             .t_ns = json_get_i64(r->fields, "sent", r->t_ns)});
}

static int save_marks(const struct start_end *e, const char *path, struct err *err) {
    struct crash_marks marks = {0};
    history_each(r, &e->history) if (r->source == SOURCE_JOB) hear(&marks, e, r);
    int r = crash_marks_save(&marks, path, err);
    crash_marks_fini(&marks);
    return r;
}

static int say_failed(const struct start_end *e, const struct folder *run) {
    const struct record *end = history_newest(&e->history, SOURCE_HARNESS, "job-end");
    const struct worker *w = start_failed(&e->rounds);
    const char *why = end ? record_text(end, "why") : "";
    last_words_print(e->plan, run, w ? w->node : NULL, stdout);
    if (w)
        printf("rank %d on %s ended %s %d\n", w->rank, w->node,
               w->exit_signal ? "on signal" : "with exit code",
               w->exit_signal ? w->exit_signal : w->exit_code);
    return str_eq(why, "limit") ? EXIT_INCONCLUSIVE : EXIT_FAIL;
}

/* ---- all of it ---- */

static int play(const struct arguments *a, const struct scenario *s, struct arena *arena,
                struct folder *run) {
    struct err err = {0};
    struct start_end e;
    const char *marks = arguments_value(a, "--marks");
    struct start_spec spec = {
        .scenario = s, .seed = s->seed, .run = run, .disks = "disks", .bin = suite_bin(arena)};
    int r = start_once(&spec, &e, &err);
    int code = r ? 0 : start_ended_well(&e) ? EXIT_PASS : say_failed(&e, run);
    if (r == 0 && marks)
        r = save_marks(&e, marks, &err);
    if (r == 0 && code == EXIT_PASS) {
        print_resumes(&e);
        print_models(&e);
        print_loss(&e);
    }
    start_end_fini(&e);
    if (r == 0)
        return code;
    printf("rankquake start: %s\n", err.msg);
    return r == -ENOTSUP ? EXIT_SKIPPED : EXIT_BROKEN;
}

static int main_start(const struct arguments *a) {
    ARENA_FINI struct arena arena = {0};
    struct diagnostics d = {0};
    struct folder run = FOLDER_NONE;
    struct err err = {0};
    int code = EXIT_BROKEN;
    const char *dir = arguments_value(a, "--run");
    if (!dir || a->files_n != 1)
        return verb_usage_error(a->verb, "started by rankquake itself, with a run directory");
    struct scenario *s = plan_load(a->files[0], NULL, &d);
    if (!s)
        printf("rankquake start: %s", buf_str(&d.out));
    else if (folder_open(&run, dir, &err) != 0)
        printf("rankquake start: %s\n", err.msg);
    else
        code = play(a, s, &arena, &run);
    folder_close(&run);
    scenario_free(s);
    diagnostics_fini(&d);
    fflush(stdout);
    return code;
}

const struct verb verb_start = {
    .name = "start",
    .usage = "start --run DIR [--marks FILE] FILE",
    .options =
        (const struct verb_option[]){
            {"--run", "DIR", "the run directory; {shared} and {disk} lie in DIR/disks"},
            {"--marks", "FILE", "what the job has told, for the record of its disks"},
            {0},
        },
    .run = main_start,
};
