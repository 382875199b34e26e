/* Runs the suite of a certification, one run after the other, and takes what is certified of each. */
#include "harness/verbs/certify/certifying.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/certify/certified_run.h"
#include "harness/judge/recording.h"
#include "harness/play/budget.h"
#include "harness/play/cell.h"
#include "harness/play/jobs.h"
#include "reports/report.h"

#include <stdio.h>
#include <stdlib.h>

struct certify_course {
    struct certification *c;
    struct headway headway;
    const char *halted; /* the host on which somebody has; NULL: nobody has */
};

/* ---- what there is of a run ---- */

static void put_place(struct certification *c, const struct certified_point *p, const char *dir) {
    struct err err = {0};
    char hex[65];
    json_put_string(&c->writer, "name", p->name);
    json_put_string(&c->writer, "file", p->of->file);
    json_put_string(&c->writer, "dir", dir);
    json_put_strings(&c->writer, "sets", p->sets);
    static const char *const kept[][2] = {{"history.jsonl", "history_sha256"},
                                          {"scenario.yaml", "scenario_sha256"}};
    for (size_t i = 0; i < 2 && dir; i++) {
        const char *name = arena_printf(&c->arena, "%s/%s", dir, kept[i][0]);
        bool there = certificate_hash(&c->dir, name, hex, &err) == 0;
        json_put_string(&c->writer, kept[i][1], there ? hex : NULL);
    }
}

/* What fired, as the history has it, into the log of acts. */
static void note_faults(struct certification *c, const struct recorded_run *run, const char *dir) {
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    for (size_t i = 0; i < is.n; i++) {
        BUF_FINI struct buf line = {0};
        struct json_writer w = {.out = &line};
        acts_begin(&c->acts, &w, "fault");
        json_put_string(&w, "run", dir);
        json_put_string(&w, "fault", is.v[i]->fault);
        json_array(&w, "on");
        for (size_t k = 0; k < is.v[i]->targets_n; k++)
            json_put_string(&w, NULL, is.v[i]->targets[k].name);
        json_end_array(&w);
        json_put_i64(&w, "fired_ns", is.v[i]->fired_ns);
        json_put_known(&w, "in_force_ns", is.v[i]->in_force, is.v[i]->t0_ns);
        json_put_known(&w, "healed_ns", is.v[i]->recovered, is.v[i]->recovered_ns);
        acts_end(&c->acts, &w);
    }
    incidents_fini(&is);
}

static int take_recording(struct certification *c, const struct certified_point *p,
                          const char *dir) {
    struct recording *r = mem_new(struct recording);
    BUF_FINI struct buf complaint = {0};
    const char *path = arena_printf(&c->arena, "%s/%s", c->dir.path, dir);
    int code = -1;
    if (recording_load(r, path, &complaint) == 0) {
        json_object(&c->writer, NULL);
        put_place(c, p, dir);
        certified_run_put(&r->run, &c->writer);
        json_end_object(&c->writer);
        note_faults(c, &r->run, dir);
        code = r->verdict.exit_code;
        recording_fini(r);
    } else {
        fprintf(stderr, "rankquake certify: %s", buf_str(&complaint));
    }
    free(r);
    return code;
}

static void put_missing(struct certification *c, const struct certified_point *p, int code,
                        const char *why) {
    json_object(&c->writer, NULL);
    put_place(c, p, NULL);
    json_put_i64(&c->writer, "exit_code", code);
    json_put_string(&c->writer, "result", report_outcome(code));
    json_put_string(&c->writer, "why", why);
    json_end_object(&c->writer);
}

static const char *why_none(struct certification *c, const struct certified_point *p,
                            const char *place) {
    BUF_FINI struct buf printed = {0};
    folder_read(&c->dir, arena_printf(&c->arena, "%s/printed.txt", place), 16 << 20, &printed,
                NULL);
    return cell_reason(&c->arena, buf_str(&printed), p->of->file);
}

/* ---- one run ---- */

/* Whether there is time for it; where not, it is left out with the reason. */
static bool has_time(struct certification *c, const struct certified_point *p,
                     int64_t *ret_until_ns) {
    int64_t left_ns, now = clock_monotonic_ns(), takes_ns = budget_estimate_ns(p->of);
    *ret_until_ns = 0;
    if (!permit_is_open(&c->permit, clock_realtime_ns(), &left_ns) ||
        (left_ns >= 0 && takes_ns > left_ns)) {
        certify_leave_out(c, p->name, "the time window closes before it would end (--window)");
        return false;
    }
    if (left_ns >= 0)
        *ret_until_ns = now + left_ns;
    if (c->budget_ns && now + takes_ns > c->began_ns + c->budget_ns) {
        certify_leave_out(c, p->name, "it would end later than --max-time allows");
        return false;
    }
    return true;
}

static void on_ended(void *arg, struct job *j) {
    (void)arg;
    (void)j; /* what it printed is in its file */
}

static int play(struct certification *c, const struct certified_point *p, const char *place,
                int64_t until_ns, bool *ret_late, struct err *err) {
    const char *out = arena_printf(&c->arena, "%s/%s", c->dir.path, place);
    const char *options[] = {"--out", out, "--quiet", NULL};
    struct job job = {.file = p->of->file,
                      .sets = p->sets,
                      .seed = p->of->seed_first,
                      .printed = arena_printf(&c->arena, "%s/printed.txt", out),
                      .code = -1};
    struct jobs_spec spec = {
        .at_once = 1, .options = options, .until_ns = until_ns, .ended = on_ended};
    int r = folder_make(&c->dir, place, 0777, err);
    r = r < 0 ? r : jobs_run(&job, 1, &spec, err);
    if (r < 0)
        return r;
    *ret_late = job.late;
    return job.code;
}

static void tell(struct certify_course *s, const struct certified_point *p, int code,
                 int64_t took_ns) {
    headway_erase(&s->headway);
    printf("  %-32s %-14s %6.1f s\n", p->name, report_outcome(code), (double)took_ns / 1e9);
    fflush(stdout);
}

/* Takes what there is of it; returns its code. */
static int take_run(struct certification *c, const struct certified_point *p, const char *place,
                    int code) {
    const char *name =
        cell_find_run(&c->arena, arena_printf(&c->arena, "%s/%s", c->dir.path, place));
    const char *dir = name ? arena_printf(&c->arena, "%s/%s", place, name) : NULL;
    bool judged = dir && folder_has(&c->dir, arena_printf(&c->arena, "%s/history.jsonl", dir));
    int again = judged ? take_recording(c, p, dir) : -1;
    /* The hosts of a provider are what is certified. One that was there when the plan was accepted and is lost since leaves
     * the question open, and does not pass by being left out. */
    if (again < 0 && code == EXIT_SKIPPED && p->of->scenario->cluster.provider)
        code = EXIT_INCONCLUSIVE;
    if (again < 0 && code == EXIT_SKIPPED)
        certify_leave_out(c, p->name, why_none(c, p, place));
    else if (again < 0)
        put_missing(c, p, code == EXIT_PASS ? EXIT_BROKEN : code, why_none(c, p, place));
    return again < 0 ? code : again;
}

/* On the host of a node, by somebody who need not reach this one. */
static bool is_halted(struct certify_course *s) {
    if (!s->halted)
        s->halted = certify_hosts_halted(s->c);
    return s->halted;
}

/* Below 0 nothing can be certified any more. */
static int run_point(struct certify_course *s, const struct certified_point *p, struct err *err) {
    struct certification *c = s->c;
    int64_t until_ns, began_ns = clock_monotonic_ns();
    if (is_halted(s))
        return EXIT_INTERRUPTED;
    if (!has_time(c, p, &until_ns))
        return EXIT_SKIPPED;
    const char *place = arena_printf(&c->arena, "runs/%03zu", ++c->runs_n);
    acts_say(&c->acts, "run", "dir", place);
    headway_at(&s->headway, (int64_t)c->runs_n - 1, p->name);
    bool late = false;
    int code = play(c, p, place, until_ns, &late, err);
    if (late) {
        certify_leave_out(c, p->name, "the time window closed while it ran");
        return EXIT_SKIPPED;
    }
    if (code < 0 || code == EXIT_INTERRUPTED)
        return code;
    if (is_halted(s))
        return EXIT_INTERRUPTED;
    code = take_run(c, p, place, code);
    acts_say(&c->acts, "run-ended", "result", report_outcome(code));
    tell(s, p, code, clock_monotonic_ns() - began_ns);
    return code;
}

int certify_run_all(struct certification *c) {
    struct certify_course s = {.c = c};
    struct err err = {0};
    int code = 0;
    struct headway_spec spec = {.out = stdout,
                                .verb = "certify",
                                .unit = "runs",
                                .total = (int64_t)(c->points_n * (size_t)c->repeat),
                                .no_lines = true,
                                .wish = c->wish};
    c->began_ns = clock_monotonic_ns();
    c->writer.out = &c->scenarios;
    json_array(&c->writer, NULL);
    headway_begin(&s.headway, &spec);
    for (size_t i = 0; i < c->points_n && code >= 0 && code != EXIT_INTERRUPTED; i++)
        for (int64_t k = 0; k < c->repeat && code >= 0 && code != EXIT_INTERRUPTED; k++)
            code = run_point(&s, &c->points[i], &err);
    headway_end(&s.headway);
    json_end_array(&c->writer);
    if (code == EXIT_INTERRUPTED) {
        const char *by =
            s.halted ? arena_printf(&c->arena, "halted on %s", s.halted) : "interrupted";
        acts_say(&c->acts, "interrupted", "by", s.halted ? by : "a signal, or halt");
        fprintf(stderr, "rankquake certify: %s; nothing is certified. What was run is in %s\n", by,
                c->dir.path);
        return code;
    }
    return code < 0 ? verb_broken(c->arguments->verb, &err) : 0;
}
