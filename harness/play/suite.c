#include "harness/play/suite.h"

#include "base/mem.h"
#include "harness/judge/coverage.h"
#include "harness/judge/own_checks.h"
#include "harness/judge/paces.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/printing.h"
#include "harness/verb.h"
#include "harness/play/last_words.h"
#include "harness/play/start.h"
#include "harness/run/built.h"
#include "harness/run/control_weights.h"
#include "harness/run/reads.h"
#include "reports/judged.h"
#include "reports/live.h"
#include "reports/page.h"
#include "reports/report.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { SPACE_WANTED = 16 << 20 };

const char *suite_bin(struct arena *a) {
    char path[4096];
    return arena_strdup(a, file_own_folder(path, sizeof(path)));
}

/* ---- the run directory ---- */

static void file_name_of(const char *name, char *ret, size_t size) {
    size_t n = 0;
    for (; *name && n + 1 < size; name++)
        ret[n++] = strchr("/ \t\"'\\:*?<>|", *name) ? '-' : *name;
    ret[n] = '\0';
}

static int elsewhere(int code, struct err *err) {
    struct err why = *err;
    return err_say(err, code, "%s; another place can be named with --out", why.msg);
}

/* A disk that fills up in the middle of a run looks like a job that fails. */
static int check_space(const char *dir, struct err *err) {
    struct statvfs fs;
    if (statvfs(dir, &fs) < 0 || fs.f_bavail * fs.f_frsize >= SPACE_WANTED)
        return 0;
    rmdir(dir);
    return err_say(err, -ENOSPC,
                   "there are %llu kB left where %s would be, too few for logs and checkpoints; "
                   "make room, or name another place with --out",
                   (unsigned long long)(fs.f_bavail * fs.f_frsize / 1024), dir);
}

/* runs/<scenario>-<seed>-<time>; a second one in the same second gets a number. */
int suite_make_dir(const char *out, const char *title, uint64_t seed, struct folder *ret,
                   struct err *err) {
    char name[128], when[32], absolute[4096], dir[4300];
    time_t now = time(NULL);
    file_name_of(title, name, sizeof(name));
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", localtime(&now));
    int r = file_make_dirs(out, 0777, err);
    if (r < 0)
        return elsewhere(r, err);
    if (!realpath(out, absolute))
        return err_set(err, -errno, "find %s", out);
    for (int i = 0; i < 1000; i++) {
        snprintf(dir, sizeof(dir), i ? "%s/%s-%llu-%s-%d" : "%s/%s-%llu-%s", absolute, name,
                 (unsigned long long)seed, when, i + 1);
        if (mkdir(dir, 0777) == 0)
            return (r = check_space(dir, err)) ? r : folder_open(ret, dir, err);
        if (errno != EEXIST)
            return elsewhere(err_set(err, -errno, "make the run directory %s", dir), err);
    }
    return err_set(err, -EEXIST, "make a run directory in %s", out);
}

static int write_text(const struct folder *dir, const char *name, const struct buf *text,
                      struct err *err) {
    return folder_write(dir, name, text->data, text->len, err);
}

static int write_inputs(const struct plan *p, const struct folder *dir, struct err *err) {
    BUF_FINI struct buf text = {0};
    scenario_print(p->scenario, &text);
    int r = write_text(dir, "scenario.yaml", &text, err);
    buf_clear(&text);
    plan_json(p, &text);
    if (r == 0)
        r = write_text(dir, "plan.json", &text, err);
    return r;
}

/* ---- one run, judged ---- */

struct outcome_of_run {
    struct folder dir;
    struct history history;
    struct rounds rounds;
    struct verdict verdict;
    struct scenario *grown; /* with what was done by hand; NULL: nothing was */
};

static void outcome_fini(struct outcome_of_run *o) {
    history_fini(&o->history);
    rounds_fini(&o->rounds);
    folder_close(&o->dir);
    scenario_free(o->grown);
    free(o);
}

static int64_t steps_of(const struct job_spec *job) {
    int64_t steps = 0;
    for (size_t i = 0; i < job->run_n; i++)
        if (str_starts(job->run[i], "--steps="))
            str_to_i64(job->run[i] + strlen("--steps="), 1, INT64_MAX, &steps);
    return steps;
}

static void on_seen(void *arg, const struct record *r) {
    live_record(arg, r);
}

/* Where the run is shown while it happens: a report that a program reads has standard output for
 * itself. */
static FILE *stage_of(const struct suite_options *o) {
    return str_eq(o->format, "terminal") ? stdout : stderr;
}

static void take_paces(struct outcome_of_run *o, const struct scenario *s,
                       const struct suite_options *options) {
    ARENA_FINI struct arena a = {0};
    struct paces_spec spec = {.file = arena_printf(&a, "%s.paces", options->coverage),
                              .scenario = s,
                              .history = &o->history,
                              .rounds = &o->rounds,
                              .run = &o->dir,
                              .renew = options->fresh};
    struct err err = {0};
    if (paces_take(&spec, &o->verdict, &err) < 0)
        fprintf(stderr, "rankquake run: how long recoveries took is not kept: %s\n", err.msg);
}

/* A cache that cannot be written costs the comparison, not the run. */
static void take_coverage(struct outcome_of_run *o, const struct scenario *s,
                          const struct suite_options *options) {
    struct coverage_spec spec = {
        .file = options->coverage, .scenario = s, .run = &o->dir, .renew = options->fresh};
    struct err err = {0};
    if (coverage_take(&spec, &o->verdict, &err) < 0)
        fprintf(stderr, "rankquake run: which checks were answered is not kept: %s\n", err.msg);
    take_paces(o, s, options);
}

static int execute(struct outcome_of_run *o, const struct run_spec *given,
                   const struct suite_options *options, const char *title, struct err *err) {
    FILE *stage = stage_of(options);
    struct run_spec spec = *given;
    const struct scenario *s = spec.plan->scenario;
    struct report_style style = report_style_of(stage);
    int r = write_inputs(spec.plan, &o->dir, err);
    int file = r < 0 ? r : folder_create(&o->dir, "history.jsonl", err);
    if (file < 0)
        return file;
    history_create_in(&o->history, file);
    rounds_init(&o->rounds, !s->torchrun_semantics);
    if (!options->brief && !options->wish.quiet)
        fprintf(stage, "%s\n", title);
    fflush(stage);
    struct live *live = live_new(stage, &style, title, steps_of(&s->job));
    if (options->brief)
        live_be_brief(live);
    if (options->wish.quiet)
        live_be_quiet(live);
    live_place(live, options->place, options->place_left_ns);
    live_tell(live, &options->wish, options->verb ? options->verb : "run");
    spec.folder = &o->dir;
    spec.seen = on_seen;
    spec.seen_arg = live;
    spec.ret_grown = &o->grown;
    r = run_execute(&spec, &o->history, &o->rounds, err);
    live_end(live);
    s = o->grown ? o->grown : s;
    if (r == 0 && o->history.write_error)
        r = elsewhere(err_set(err, -o->history.write_error,
                              "write the history of the run, %s/history.jsonl", o->dir.path),
                      err);
    struct trial t = {.scenario = s, .history = &o->history, .rounds = &o->rounds};
    verdict_judge(&o->verdict, &t);
    if (given->control && o->history.n)
        own_checks_judge(&o->verdict, s, &o->history, file, &o->dir, true);
    if (given->control && r == 0 && options->coverage && !o->grown)
        take_coverage(o, s, options);
    BUF_FINI struct buf text = {0};
    verdict_text(&o->verdict, &text);
    int w = write_text(&o->dir, "verdict.json", &text, r < 0 ? NULL : err);
    return r < 0 ? r : w;
}

/* ---- reports ---- */

static int report(struct outcome_of_run *run, const struct plan *p, const struct folder *dir,
                  const struct suite_options *o, struct err *err) {
    struct recorded_run recorded = {.dir = dir->path,
                                    .folder = dir,
                                    .scenario = run->grown ? run->grown : p->scenario,
                                    .history = &run->history,
                                    .rounds = &run->rounds,
                                    .verdict = &run->verdict};
    if (!run->history.n)
        return 0;
    int r = reports_write(&recorded, err);
    if (o)
        r = report_print(report_find(o->format), &recorded, stdout, r < 0 ? NULL : err) < 0 ? -1
                                                                                            : r;
    return r;
}

/* ---- the control run ---- */

/* A job that failed before it could be seen leaves questions open, too. */
static bool it_failed(const struct verdict *v) {
    const struct finding *f = verdict_find(v, "outcome");
    return f && f->status == FINDING_FAIL;
}

/* Who died at once has printed nothing that could have been read: that is not the reason. */
static const struct finding *why_broken(const struct verdict *v) {
    const struct finding *f = verdict_first(v);
    return f && str_eq(f->check, "observed") && it_failed(v) ? verdict_find(v, "outcome") : f;
}

/* The worker whose end ended the control run, NULL: it ended otherwise. */
static const struct worker *first_failed(const struct outcome_of_run *run) {
    const struct record *end = history_newest(&run->history, SOURCE_HARNESS, "job-end");
    bool failed = end && str_eq(record_text(end, "why"), "worker failed");
    return failed ? start_failed(&run->rounds) : NULL;
}

static void put_end(char *out, size_t size, const struct worker *w) {
    snprintf(out, size, "rank %d on %s ended %s %d; it was not started again", w->rank, w->node,
             w->exit_signal ? "on signal" : "with status",
             w->exit_signal ? w->exit_signal : w->exit_code);
}

/* All programs of the nodes have ended 0. */
static bool ended_well(const struct history *h) {
    bool any = false;
    history_each(r, h) {
        bool end = record_is(r, "agent-exit") || record_is(r, "worker-exit");
        if (!end || r->source != SOURCE_KERNEL)
            continue;
        if (json_get_i64(r->fields, "code", -1) != 0)
            return false;
        any = true;
    }
    return any;
}

/* What was read or tried is broken without any fault: for people the job's last words, for a
 * program the reports in the run directory, and the one it asked for. */
static void tell_broken(struct outcome_of_run *run, const struct plan *p, const struct folder *dir,
                        const struct suite_options *o, struct err *err) {
    const struct finding *f = why_broken(&run->verdict);
    const struct worker *w = first_failed(run);
    /* The job is broken, or there is nothing by which it could be judged. */
    bool blind = f && f->class == CLASS_HARNESS && ended_well(&run->history);
    char end[200] = "";
    if (w)
        put_end(end, sizeof(end), w);
    err_say(err, -EINVAL, "%s, so no fault was tried: %s; see %s",
            blind ? "the control run ended well and cannot be judged"
                  : "the job failed in the control run",
            w   ? end
            : f ? f->seen
                : "",
            run->dir.path);
    run->verdict.exit_code = EXIT_BROKEN;
    report(run, p, dir, str_eq(o->format, "terminal") ? NULL : o, NULL);
    last_words_print(p, &run->dir, w ? w->node : NULL, stderr);
}

/* What is read from the job's output is not there: a disturbed run would show no more, so it is not
 * made. */
static bool nothing_read(struct outcome_of_run *run, const struct plan *p, const struct folder *dir,
                         const struct suite_options *o, struct err *err) {
    const struct finding *f = verdict_find(&run->verdict, "observed");
    if (!f || f->status == FINDING_PASS || f->status == FINDING_SKIP)
        return false;
    err_say(err, -EINVAL,
            "%s; expected was %s. What was printed is in %s/logs. Nothing was disturbed yet",
            f->seen, *f->expected ? f->expected : "that it can be read", run->dir.path);
    run->verdict.exit_code = EXIT_INCONCLUSIVE;
    report(run, p, dir, str_eq(o->format, "terminal") ? NULL : o, NULL);
    return true;
}

/* A cache that cannot be written costs time, not the run. */
static void keep(const char *cache, struct outcome_of_run *run, struct control *ret) {
    struct err err;
    control_take(&run->history, &run->rounds, ret);
    str_copy(ret->dir, sizeof(ret->dir), run->dir.path);
    str_copy(ret->made, sizeof(ret->made), run->dir.path);
    /* The weights first: whoever finds a result finds them. */
    int r = control_weights_keep(run->dir.path, &run->history, &err);
    if (r == 0 && *cache)
        r = control_weights_keep(cache, &run->history, &err);
    if (r == 0 && *cache)
        r = reads_keep(&run->dir, cache, &err);
    if (r == 0 && *cache)
        r = control_keep(cache, ret, &err);
    if (r < 0)
        fprintf(stderr,
                "rankquake run: the control run's result is not kept and will be made again: %s; "
                "set XDG_CACHE_HOME to a folder that can be written\n",
                err.msg);
}

/* The control run, judged. A question that stays open here stays open in the disturbed run too,
 * and is told there; only what failed ends it all. */
static int control_outcome(struct outcome_of_run *run, const struct plan *p,
                           const struct folder *dir, const char *cache,
                           const struct suite_options *o, struct control *ret, struct err *err) {
    int code = run->verdict.exit_code;
    if (code == EXIT_INTERRUPTED)
        return code;
    if ((code != EXIT_PASS && code != EXIT_INCONCLUSIVE) || it_failed(&run->verdict) ||
        first_failed(run)) {
        tell_broken(run, p, dir, o, err);
        return EXIT_BROKEN;
    }
    if (nothing_read(run, p, dir, o, err))
        return EXIT_INCONCLUSIVE;
    keep(cache, run, ret);
    if (o->brief)
        report(run, p, &run->dir, NULL, NULL); /* a page links it */
    return EXIT_PASS;
}

static int run_control(const struct plan *p, const struct suite_options *o,
                       const struct folder *dir, const char *cache, struct control *ret,
                       struct err *err) {
    struct scenario calm = control_scenario(p->scenario);
    struct diagnostics d = {.file = calm.file};
    calm.cluster.isolation = p->isolation;
    struct plan *plan = plan_make(&calm, p->seed, &d);
    diagnostics_fini(&d);
    struct outcome_of_run *run = mem_new(struct outcome_of_run);
    if (!plan)
        abort(); /* the same plan with its timeline has been made already */
    plan->untrusted = p->untrusted;
    plan_find_commands(plan);
    int r = plan_settle(plan, err);
    if (r == 0)
        r = folder_make(dir, "control", 0777, err);
    if (r == 0)
        r = folder_enter(&run->dir, dir, "control", err);
    struct run_spec spec = {
        .plan = plan, .bin = o->bin, .keep = o->keep, .reads = true, .until_ns = o->until_ns};
    if (r == 0)
        r = plan_find_launcher(plan, err);
    if (r == 0)
        r = execute(run, &spec, o,
                    o->brief ? "control run" : "control run: once without the timeline", err);
    int code = r < 0 ? EXIT_BROKEN : control_outcome(run, plan, dir, cache, o, ret, err);
    outcome_fini(run);
    plan_free(plan);
    return code;
}

static void say_no_cache(const struct suite_options *o, const struct err *why) {
    static bool said;
    if (!said && !o->beside)
        fprintf(stderr,
                "rankquake run: nothing is cached, and control runs will be made again: %s; set "
                "XDG_CACHE_HOME to a folder that can be written\n",
                why->msg);
    said = true;
}

/* "" where there is none. */
static int find_cache(const struct suite_options *o, const char *key, char *ret, size_t size,
                      struct err *err) {
    int r = control_dir(key, ret, size, err);
    if (r != -ENOENT)
        return r;
    say_no_cache(o, err);
    *ret = '\0';
    *err = (struct err){0};
    return 0;
}

int suite_control(const struct plan *p, const struct suite_options *o, const struct folder *dir,
                  struct control *ret, struct err *err) {
    char key[65], cache[4096];
    if (control_key(p, o->bin, key, err) < 0 || find_cache(o, key, cache, sizeof(cache), err) < 0)
        return EXIT_BROKEN;
    if (o->fresh || !*cache || control_read(cache, ret, NULL) < 0)
        return run_control(p, o, dir, cache, ret, err);
    if (!o->brief && !o->wish.quiet)
        fprintf(stage_of(o), "control run: kept (--fresh renews it)\n");
    return EXIT_PASS;
}

/* What the job needs first. EXIT_PASS, or EXIT_BROKEN with err. */
static int build(const struct plan *p, const struct suite_options *o, struct err *err) {
    struct built b;
    if (built_ready(p, true, o->fresh && !o->alone, &b, err) < 0)
        return EXIT_BROKEN;
    bool told = !o->brief && !o->wish.quiet;
    if (told && b.how == BUILT_NOW)
        fprintf(stage_of(o), "build      made in %.1f s, and kept as %.12s\n",
                (double)b.took_ns / 1e9, b.key);
    else if (told && b.how != BUILT_NOTHING)
        fprintf(stage_of(o), "build      kept as %.12s (--fresh renews it)\n", b.key);
    return EXIT_PASS;
}

static int prepare(const struct plan *p, const struct suite_options *o, struct err *err) {
    struct control ignored;
    struct folder dir, out;
    char key[65], cache[4096];
    if (build(p, o, err) != EXIT_PASS || control_key(p, o->bin, key, err) < 0 ||
        find_cache(o, key, cache, sizeof(cache), err) < 0 || !*cache ||
        (!o->fresh && control_read(cache, &ignored, NULL) == 0) ||
        suite_make_dir(o->out, p->scenario->name, p->seed, &dir, err) < 0)
        return EXIT_PASS;
    int code = run_control(p, o, &dir, cache, &ignored, err);
    if (folder_open(&out, o->out, NULL) == 0) {
        folder_remove(&out, str_base(dir.path), NULL);
        folder_close(&out);
    }
    folder_close(&dir);
    return code == EXIT_INTERRUPTED ? code : EXIT_PASS;
}

int suite_prepare(const struct plan *p, const struct suite_options *o) {
    struct suite_options quiet = *o;
    struct err err = {0};
    quiet.brief = quiet.wish.quiet = true;
    return prepare(p, &quiet, &err);
}

struct generate_run suite_generate_run(const struct control *c) {
    return (struct generate_run){.first_step = c->first_step,
                                 .last_step = c->last_step,
                                 .told = c->told,
                                 .start_ns = c->start_ns,
                                 .train_ns = c->train_ns,
                                 .steps_ns = c->steps_ns,
                                 .saves = c->saves,
                                 .saves_told = c->saves_told,
                                 .commits = c->commits};
}

/* ---- the whole ---- */

static int run_and_report(const struct plan *p, const struct suite_options *o,
                          const struct control *control, struct outcome_of_run *run,
                          struct err *err) {
    struct run_spec spec = {.plan = p,
                            .bin = o->bin,
                            .sets = o->sets,
                            .keep = o->keep,
                            .pcap = o->pcap,
                            .interactive = o->interactive,
                            .paused = o->paused,
                            .until_ns = o->until_ns,
                            .control = control};
    char title[300];
    if (o->brief)
        str_copy(title, sizeof(title), p->scenario->name);
    else
        snprintf(title, sizeof(title), "%s, seed %llu", p->scenario->name,
                 (unsigned long long)p->seed);
    int r = execute(run, &spec, o, title, err);
    if (!o->alone && report(run, p, &run->dir, o->brief ? NULL : o, r < 0 ? NULL : err) < 0 &&
        r == 0)
        r = -1;
    return r < 0 ? EXIT_BROKEN : run->verdict.exit_code;
}

static void tell_processes(const struct plan *p, FILE *stage) {
    BUF_FINI struct buf out = {0};
    struct page page = {.out = &out, .style = report_style_of(stage)};
    page_put(&page, INK_PLAIN, "isolation processes: ");
    page_wrap(&page, 4, INK_PLAIN, p->isolation_why ? p->isolation_why : "as asked for");
    printing_put(stage, buf_str(&out), out.len);
}

int suite_run(const struct plan *p, const struct suite_options *o, struct err *err) {
    struct outcome_of_run *run = mem_new(struct outcome_of_run);
    struct control control = {.first_step = -1, .last_step = -1, .kept = -1};
    int code = EXIT_BROKEN;
    if (p->isolation == ISOLATION_PROCESSES && !o->brief && !o->wish.quiet)
        tell_processes(p, stage_of(o));
    code = build(p, o, err);
    if (code != EXIT_PASS) {
        free(run);
        return code;
    }
    code = EXIT_BROKEN;
    if (suite_make_dir(o->out, p->scenario->name, p->seed, &run->dir, err) == 0 &&
        write_inputs(p, &run->dir, err) == 0)
        code = o->alone ? EXIT_PASS : suite_control(p, o, &run->dir, &control, err);
    if (code == EXIT_PASS)
        code = run_and_report(p, o, &control, run, err);
    outcome_fini(run);
    bool soft = code == EXIT_INCONCLUSIVE || code == EXIT_SKIPPED;
    return soft && o->strict ? EXIT_FAIL : code;
}

void suite_failure_rate(size_t failed, size_t n, double *ret_low, double *ret_high) {
    struct judged_rate r = judged_rate(failed, n);
    *ret_low = r.low;
    *ret_high = r.high;
}

int suite_exit_code(const int *codes, size_t n) {
    static const int order[] = {EXIT_INTERRUPTED, EXIT_FAIL, EXIT_LEFTOVERS, EXIT_BROKEN,
                                EXIT_INCONCLUSIVE};
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
        for (size_t j = 0; j < n; j++)
            if (codes[j] == order[i])
                return order[i];
    for (size_t j = 0; j < n; j++)
        if (codes[j] != EXIT_SKIPPED)
            return EXIT_PASS;
    return n ? EXIT_SKIPPED : EXIT_PASS;
}
