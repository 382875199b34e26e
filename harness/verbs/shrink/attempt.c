#include "harness/verbs/shrink/attempt.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "harness/plan/plan.h"
#include "harness/verb.h"
#include "harness/play/cell.h"
#include "harness/play/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRINTED_MAX = 16 << 20, WHAT = 52 };

struct attempt {
    const char *file, *dir, *printed; /* printed: by the newest of its runs */
    int runs, same;
    enum comparison_answer answer; /* of the newest */
    struct buf why;
};

static bool may_run(struct attempts *t) {
    t->interrupted |= *t->signalled != 0;
    t->late |= t->until_ns && clock_monotonic_ns() >= t->until_ns;
    return !t->interrupted && !t->late;
}

/* What the loader or the plan would refuse is nothing to run. */
static bool is_valid(const char *file, uint64_t seed) {
    struct diagnostics d = {0};
    struct scenario *s = scenario_load(file, NULL, &d);
    struct plan *p = s ? plan_make(s, seed, &d) : NULL;
    bool valid = p && !d.errors;
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
    return valid;
}

static int write_scenario(const struct scenario *s, const char *file, struct err *err) {
    struct buf text = {0};
    scenario_print(s, &text);
    int r = file_write_atomic(file, text.data, text.len, err);
    buf_fini(&text);
    return r;
}

static void break_off(struct attempts *t, struct attempt *x, int code, const char *why) {
    x->answer = BROKEN;
    buf_clear(&x->why);
    buf_puts(&x->why, why);
    t->broken_code = code;
    t->broken = arena_strdup(t->arena, why);
}

/* ---- one run ---- */

static void on_end(void *arg, struct job *j) {
}

static void compare(struct attempts *t, struct attempt *x, const char *dir) {
    struct recording *rec = mem_new(struct recording);
    BUF_FINI struct buf complaint = {0};
    buf_clear(&x->why);
    if (recording_load(rec, dir, &complaint) < 0) {
        break_off(t, x, EXIT_BROKEN, buf_str(&complaint));
    } else {
        x->answer = failure_compare(t->failure, &rec->verdict, &x->why);
        if (x->answer == BROKEN)
            break_off(t, x, EXIT_BROKEN, arena_strdup(t->arena, buf_str(&x->why)));
        if (x->answer == FAILS_SAME)
            t->best_dir = dir;
        t->failure->unfired &= x->answer != FAILS_SAME || !failure_fired(&rec->verdict);
        recording_fini(rec);
    }
    free(rec);
}

static void tell_broken(struct attempts *t, struct attempt *x, int code) {
    BUF_FINI struct buf text = {0};
    file_read(x->printed, PRINTED_MAX, &text, NULL);
    break_off(t, x, code, cell_reason(t->arena, buf_str(&text), x->file));
}

/* In the folder of all attempts, where the job of an earlier one may have been. */
static int make_dir(const struct attempts *t, const char *dir, struct err *err) {
    struct folder out;
    int r = folder_open(&out, t->out, err);
    if (r == 0) {
        r = folder_make(&out, dir + strlen(t->out) + 1, 0777, err);
        folder_close(&out);
    }
    return r;
}

/* Its own folder holds the run directory and what was printed. */
static void run_once(struct attempts *t, struct attempt *x) {
    struct err err = {0};
    const char *dir = arena_printf(t->arena, "%s/run-%d", x->dir, ++x->runs);
    const char *options[] = {"--out", dir, NULL};
    x->printed = arena_printf(t->arena, "%s/printed.txt", dir);
    struct job job = {.file = x->file, .seed = t->seed, .printed = x->printed, .code = -1};
    struct jobs_spec spec = {.at_once = 1, .options = options, .ended = on_end};
    t->runs_made++;
    t->broken = NULL;
    t->broken_code = 0;
    if (make_dir(t, dir, &err) < 0 || jobs_run(&job, 1, &spec, &err) < 0) {
        break_off(t, x, EXIT_BROKEN, err.msg);
        return;
    }
    const char *run = cell_find_run(t->arena, dir);
    if (job.code == EXIT_INTERRUPTED) {
        x->answer = INTERRUPTED;
        t->interrupted = true;
    } else if (run && (job.code == EXIT_PASS || job.code == EXIT_FAIL ||
                       job.code == EXIT_INCONCLUSIVE || job.code == EXIT_LEFTOVERS)) {
        compare(t, x, arena_printf(t->arena, "%s/%s", dir, run));
    } else {
        tell_broken(t, x, job.code);
    }
}

/* No more runs than it takes to know. */
static void run_often(struct attempts *t, struct attempt *x) {
    while (may_run(t) && x->same < t->needed && t->runs - x->runs >= t->needed - x->same) {
        run_once(t, x);
        x->same += x->answer == FAILS_SAME;
        if (x->answer == BROKEN || x->answer == INTERRUPTED)
            return;
    }
}

/* ---- what is said of it ---- */

static void put_answer(const struct attempts *t, const struct attempt *x, struct buf *out) {
    static const char *const words[] = {
        [FAILS_SAME] = "fails the same",
        [FAILS_OTHERWISE] = "fails otherwise",
        [PASSES] = "passes",
        [INCONCLUSIVE] = "inconclusive",
        [BROKEN] = "cannot be judged",
        [INTERRUPTED] = "interrupted",
    };
    bool same = x->same >= t->needed;
    enum comparison_answer answer = same ? FAILS_SAME : x->answer;
    if (!same && x->answer == FAILS_SAME)
        buf_puts(out, "too seldom");
    else
        buf_puts(out, words[answer]);
    if (t->runs > 1)
        buf_printf(out, ", %d of %d run%s did", x->same, x->runs, x->runs == 1 ? "" : "s");
    if (!same && x->why.len)
        buf_printf(out, ": %s", buf_str(&x->why));
}

/* Before it is done, for it takes its time: as its line, or where there is a bar in that. */
static void begin_line(struct attempts *t, const char *what) {
    headway_at(&t->headway, t->made - 1, what);
    if (t->quiet || t->headway.form == HEADWAY_BAR)
        return;
    printf("%3d  %-*s ", t->made, WHAT, what);
    fflush(stdout);
}

static void end_line(struct attempts *t, const char *what, int64_t took_ns, const char *answer) {
    headway_erase(&t->headway);
    if (!t->quiet && t->headway.form == HEADWAY_BAR)
        printf("%3d  %-*s ", t->made, WHAT, what);
    if (!t->quiet)
        printf("%5.1f s  %s\n", (double)took_ns / 1e9, answer);
    fflush(stdout);
    headway_at(&t->headway, t->made, what);
}

enum delta_answer attempt_make(void *arg, const struct scenario *s, const char *what) {
    struct attempts *t = arg;
    struct err err = {0};
    BUF_FINI struct buf answer = {0};
    struct attempt x = {.file = arena_printf(t->arena, "%s/trying.yaml", t->out),
                        .dir = arena_printf(t->arena, "%s/%03d", t->out, t->made + 1)};
    int64_t began_ns = clock_monotonic_ns();
    if (!may_run(t))
        return DELTA_STOP;
    int r = write_scenario(s, x.file, &err);
    if (r == 0 && t->made && !is_valid(x.file, t->seed))
        return DELTA_OTHER;
    t->made++;
    begin_line(t, what);
    if (r < 0)
        break_off(t, &x, EXIT_BROKEN, err.msg);
    else
        run_often(t, &x);
    put_answer(t, &x, &answer);
    end_line(t, what, clock_monotonic_ns() - began_ns, buf_str(&answer));
    buf_fini(&x.why);
    if (x.same >= t->needed)
        return DELTA_SAME;
    return t->interrupted || t->late ? DELTA_STOP : DELTA_OTHER;
}
