#include "harness/verbs/trying.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/judge/recording.h"
#include "reports/headway.h"
#include "reports/report.h"
#include "harness/play/announcement.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

int64_t trying_left_ns(const struct trying *t) {
    int64_t left = t->suite.until_ns - clock_monotonic_ns();
    return left > 0 ? left : 0;
}

int trying_soft(const struct trying *t, int code) {
    return t->suite.strict ? EXIT_FAIL : code;
}

struct overview_row trying_row(const char *name, int code) {
    return (struct overview_row){
        .name = name, .exit_code = code, .detect_ns = -1, .recover_ns = -1, .lost_steps = -1};
}

struct scenario *trying_load(const char *path, const char *const *sets, uint64_t seed,
                             struct plan **ret_plan) {
    struct diagnostics d = {0};
    struct scenario *s = plan_load(path, sets, &d);
    *ret_plan = s ? plan_make(s, seed, &d) : NULL;
    fprintf(stderr, "%s%s", str_starts(buf_str(&d.out), "--") ? "rankquake try: " : "",
            buf_str(&d.out));
    diagnostics_fini(&d);
    return *ret_plan ? s : scenario_free(s);
}

/* The run directory that a scenario has made in ours. */
static const char *find_dir(struct trying *t, const char *name) {
    const char *found = NULL,
               *prefix = arena_printf(&t->arena, "%s-%llu-", name, (unsigned long long)t->seed);
    TEXTS_FINI struct texts names = {0};
    folder_list(&t->dir, ".", NULL, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        if (str_starts(names.v[i], prefix) && folder_has_directory(&t->dir, names.v[i]))
            found = arena_strdup(&t->arena, names.v[i]);
    }
    return found;
}

static void skip(struct trying *t, int i, const char *why) {
    struct overview_row *row = &t->rows[1 + i];
    t->files[i].code = trying_soft(t, EXIT_SKIPPED);
    str_copy(row->what, sizeof(row->what), "skipped, see below");
    str_copy(row->seen, sizeof(row->seen), why);
}

/* The job was over before its time, and so would be the next one. */
static void say_why_over(struct trying *t, struct overview_row *row) {
    char cwd[4096];
    bool here = !t->base->job.writes_undone && getcwd(cwd, sizeof(cwd));
    const char *where = here ? cwd : "somewhere outside of this directory";
    const char *cure = !here                ? ""
                       : t->not_undone.code ? ", or use namespaces"
                                            : ", or job.writes: undone";
    str_copy(row->what, sizeof(row->what), "the job ended well before the fault could come");
    str_copy(row->expected, sizeof(row->expected), "a job that starts from nothing in every run");
    snprintf(row->seen, sizeof(row->seen),
             "it went on, it seems, from what the control run had written to %.120s: give it a "
             "fresh directory in every run, {out} or {shared}%s",
             where, cure);
}

/* No time is left, or none in which its fault could strike. */
static void leave_out(struct trying *t, int i) {
    struct overview_row *row = &t->rows[1 + i];
    BUF_FINI struct buf why = {0};
    t->files[i].code = trying_soft(t, EXIT_SKIPPED);
    snprintf(row->what, sizeof(row->what), "not run: the budget of %s is spent", t->budget);
    buf_puts(&why, "it would take ");
    headway_put_time(&why, t->costs[i].usual_ns);
    if (trying_left_ns(t)) {
        buf_puts(&why, ", and there are left ");
        headway_put_time(&why, trying_left_ns(t));
    }
    buf_puts(&why, "; --budget 20m gives more");
    str_copy(row->seen, sizeof(row->seen), buf_str(&why));
}

static bool is_late(const struct trying *t, int i, const struct recorded_run *run) {
    const struct record *r = history_newest(run->history, SOURCE_HARNESS, "interrupted");
    return t->files[i].late ||
           (t->files[i].code == EXIT_INTERRUPTED && r && str_eq(record_text(r, "why"), "budget"));
}

/* What it has broken by then is broken; all else is open. */
static void judge_late(struct trying *t, int i) {
    struct overview_row *row = &t->rows[1 + i];
    char what[sizeof(row->what)];
    t->files[i].code = *row->check ? EXIT_FAIL : trying_soft(t, EXIT_INCONCLUSIVE);
    str_copy(what, sizeof(what), row->what);
    snprintf(row->what, sizeof(row->what), "unfinished: %.100s", what);
    if (!*row->seen)
        snprintf(row->seen, sizeof(row->seen),
                 "the budget of %s was spent before it had ended, so it is not judged; --budget "
                 "20m gives more",
                 t->budget);
}

/* What came of it, out of what was written: the same whoever ran it. */
static void read_row(struct trying *t, int i) {
    struct overview_row *row = &t->rows[1 + i];
    struct recording r;
    BUF_FINI struct buf complaint = {0};
    row->link = find_dir(t, row->name);
    const char *dir = row->link ? arena_printf(&t->arena, "%s/%s", t->dir.path, row->link) : NULL;
    if (dir && recording_load(&r, dir, &complaint) == 0) {
        overview_read(&t->overview, row, &r.run);
        if (row->over_before)
            say_why_over(t, row);
        if (is_late(t, i, &r.run))
            judge_late(t, i);
        recording_fini(&r);
    } else if (!*row->seen) {
        str_copy(row->what, sizeof(row->what), "not run");
        str_copy(row->seen, sizeof(row->seen), buf_str(&complaint));
    }
    row->exit_code = t->files[i].code;
    announcement_ended(row->name, row->exit_code, row->what);
}

static void run_one(struct trying *t, int i) {
    struct plan *p;
    struct err err = {0};
    struct scenario *s = trying_load(t->files[i].file, NULL, t->seed, &p);
    if (!s) {
        skip(t, i, "the job's cluster cannot have it: stderr says why");
        return;
    }
    t->files[i].code = EXIT_BROKEN;
    if (plan_check_host(p, &err) != 0) {
        skip(t, i, err.msg);
    } else {
        t->files[i].code = suite_run(p, &t->suite, &err);
        if (err.code)
            fprintf(stderr, "rankquake try: %s: %s\n", s->name, err.msg);
    }
    plan_free(p);
    scenario_free(s);
}

/* By what each is to cost, and no later than the budget has it. */
static void tell_headway(struct trying *t, const char *name) {
    int64_t left_ns = 0, done = 0;
    for (int i = 0; i < t->n; i++) {
        left_ns += t->files[i].code < 0 ? t->costs[i].usual_ns : 0;
        done += t->files[i].code >= 0;
    }
    headway_expect(&t->headway, t->jobs > 1 && t->moment.by_step ? left_ns / t->jobs : left_ns);
    headway_at(&t->headway, done, name);
    snprintf(t->place, sizeof(t->place), "%lld of %d", (long long)(done < t->n ? done + 1 : done),
             t->n);
    t->suite.place = t->place;
    t->suite.place_left_ns = headway_left_ns(&t->headway);
}

static void on_ended(void *arg, struct job *j) {
    struct trying *t = arg;
    headway_erase(&t->headway);
    read_row(t, (int)(j - t->files));
    tell_headway(t, NULL);
}

/* Side by side each is a harness of its own; what it prints is in its reports. */
static void run_side_by_side(struct trying *t) {
    struct err err = {0};
    const char *more[] = {"--out", t->dir.path, t->suite.keep ? "--keep" : NULL, NULL};
    for (int i = 0; i < t->n; i++)
        t->files[i].alone = !t->moment.by_step;
    struct jobs_spec spec = {.at_once = (int)t->jobs,
                             .options = more,
                             .until_ns = t->suite.until_ns,
                             .ended = on_ended,
                             .arg = t};
    if (jobs_run(t->files, (size_t)t->n, &spec, &err) < 0)
        fprintf(stderr, "rankquake try: %s\n", err.msg);
    for (int i = 0; i < t->n && !trying_left_ns(t); i++)
        if (t->files[i].code < 0) {
            leave_out(t, i);
            read_row(t, i);
        }
}

/* More of the same would teach nothing. */
static bool stop_after(struct trying *t, int i) {
    if (!t->rows[1 + i].over_before)
        return false;
    for (int k = 0; k < t->n; k++)
        if (t->files[k].code < 0)
            t->rows[1 + k].exit_code = EXIT_INCONCLUSIVE;
    announcement_say("the others are not run: they would be over before their time as well");
    return true;
}

/* Those that may take long come last: they cost the others nothing then. */
static bool may_be_long(const struct trying *t, int i) {
    return t->costs[i].long_ns > t->costs[i].usual_ns;
}

static void run_one_by_one(struct trying *t) {
    for (int k = 0; k < 2 * t->n; k++) {
        int i = k % t->n;
        if (may_be_long(t, i) != (k >= t->n))
            continue;
        if (t->files[i].code < 0 && trying_left_ns(t) < t->costs[i].least_ns)
            leave_out(t, i);
        else if (t->files[i].code < 0)
            tell_headway(t, t->faults[i].name), run_one(t, i);
        read_row(t, i);
        if (t->files[i].code == EXIT_INTERRUPTED || stop_after(t, i))
            return;
    }
}

static void say_costs(struct trying *t) {
    struct announcement_costs c = {.launcher = t->base->job.launcher,
                                   .budget = t->budget,
                                   .v = t->costs,
                                   .faults = t->faults,
                                   .n = t->n,
                                   .left_ns = trying_left_ns(t)};
    int64_t longest_ns = 0;
    for (int i = 0; i < t->n; i++) {
        t->costs[i] = t->files[i].code < 0 ? generate_cost(&t->faults[i], &t->limited, &t->run)
                                           : (struct generate_cost){0};
        c.all_ns += t->costs[i].long_ns;
        longest_ns = t->costs[i].long_ns > longest_ns ? t->costs[i].long_ns : longest_ns;
    }
    if (t->moment.by_step)
        c.all_ns /= t->jobs;
    c.all_ns = c.all_ns > longest_ns ? c.all_ns : longest_ns;
    if (!t->suite.wish.quiet)
        announcement_costs(&c);
}

void trying_disturb(struct trying *t) {
    for (int i = 0; i < t->n; i++) {
        t->rows[1 + i] = trying_row(t->faults[i].name, EXIT_INTERRUPTED);
        str_copy(t->rows[1 + i].what, sizeof(t->rows[1 + i].what), "not run");
    }
    t->suite.out = t->dir.path;
    t->suite.fresh = false;
    for (int i = 0; i < t->n; i++) {
        const char *why =
            generate_why_not(&t->arena, &t->faults[i], &t->typed.generated, t->base, &t->run);
        if (!why)
            continue;
        skip(t, i, why);
        if (t->jobs > 1)
            read_row(t, i);
    }
    say_costs(t);
    headway_begin(&t->headway, &(struct headway_spec){.out = stdout,
                                                      .verb = "try",
                                                      .unit = "runs",
                                                      .total = t->n,
                                                      .until_ns = t->suite.until_ns,
                                                      .own_line = t->jobs <= 1,
                                                      .no_lines = true,
                                                      .wish = t->suite.wish});
    if (t->jobs > 1)
        run_side_by_side(t);
    else
        run_one_by_one(t);
    headway_end(&t->headway);
}
