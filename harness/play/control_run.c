/* The control run: what comes before it (a build), whether one is kept, what its outcome is worth. */
#include "harness/play/outcome.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/play/jobs.h"
#include "harness/play/last_words.h"
#include "harness/play/start.h"
#include "harness/run/built.h"
#include "harness/run/control_weights.h"
#include "harness/run/reads.h"
#include "harness/verb.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

/* A program that asked for a report gets that of the control run, which is all there is. */
static const struct suite_options *printed_by(const struct suite_options *o) {
    return o->ahead || str_eq(o->format, "terminal") ? NULL : o;
}

/* What was read or tried is broken without any fault: for people the job's last words, for a
 * program the reports in the run directory, and the one it asked for. */
static void tell_broken(struct outcome_of_run *run, const struct plan *p, const struct folder *dir,
                        const struct suite_options *o, struct err *err) {
    const struct finding *f = why_broken(&run->verdict);
    const struct worker *w = first_failed(run);
    /* The job is broken, or there is nothing by which it could be judged. */
    bool blind = f && f->class == CLASS_HARNESS && ended_well(&run->history);
    const struct record *scarce = history_newest(&run->history, SOURCE_HARNESS, "scarce");
    char end[200] = "";
    if (w)
        put_end(end, sizeof(end), w);
    err_say(err, -EINVAL, "%s, so no fault was tried: %s%s%s; see %s",
            blind ? "the control run ended well and cannot be judged"
                  : "the job failed in the control run",
            w   ? end
            : f ? f->seen
                : "",
            scarce ? "; this host may be to blame: " : "", scarce ? record_text(scarce, "why") : "",
            run->dir.path);
    run->verdict.exit_code = EXIT_BROKEN;
    outcome_report(run, p, dir, printed_by(o), NULL);
    if (!o->ahead)
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
    outcome_report(run, p, dir, printed_by(o), NULL);
    return true;
}

/* A cache that cannot be written costs time, not the run. */
static void keep(const char *cache, struct outcome_of_run *run, bool beside, struct control *ret) {
    struct err err;
    control_take(&run->history, &run->rounds, ret);
    ret->beside = beside;
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
    keep(cache, run, o->control, ret);
    if (o->brief)
        outcome_report(run, p, &run->dir, NULL, NULL); /* a page links it */
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
        r = outcome_make(run, &spec, o,
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

/* What the job needs first. EXIT_PASS, or EXIT_BROKEN with err. */
int suite_build(const struct plan *p, const struct suite_options *o, struct err *err) {
    struct built b;
    if (built_ready(p, true, o->fresh && !o->alone, &b, err) < 0)
        return EXIT_BROKEN;
    bool told = !o->brief && !o->wish.quiet;
    if (told && b.how == BUILT_NOW)
        fprintf(outcome_stage(o), "build      made in %.1f s, and kept as %.12s\n",
                (double)b.took_ns / 1e9, b.key);
    else if (told && b.how != BUILT_NOTHING)
        fprintf(outcome_stage(o), "build      kept as %.12s (--fresh renews it)\n", b.key);
    return EXIT_PASS;
}

int suite_control(const struct plan *p, const struct suite_options *o, const struct folder *dir,
                  struct control *ret, struct err *err) {
    char key[65], cache[4096];
    if (suite_build(p, o, err) != EXIT_PASS || control_key(p, o->bin, key, err) < 0 ||
        find_cache(o, key, cache, sizeof(cache), err) < 0)
        return EXIT_BROKEN;
    if (o->fresh || !*cache || control_read(cache, ret, NULL) < 0 ||
        (ret->beside && suite_judges_pace(p->scenario)))
        return run_control(p, o, dir, cache, ret, err);
    if (!o->brief && !o->wish.quiet)
        fprintf(outcome_stage(o), "control run: kept (--fresh renews it)\n");
    return EXIT_PASS;
}

bool suite_judges_pace(const struct scenario *s) {
    return job_must_be_alone(s) || s->expect.goodput;
}

static int prepare(const struct plan *p, const struct suite_options *o, struct err *err) {
    struct control ignored;
    struct folder dir, out;
    char key[65], cache[4096];
    if (suite_build(p, o, err) != EXIT_PASS || control_key(p, o->bin, key, err) < 0 ||
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
    quiet.brief = quiet.wish.quiet = quiet.ahead = true;
    return prepare(p, &quiet, &err);
}
