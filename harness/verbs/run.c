/* Runs scenarios, judges them and writes their reports. */
#include "harness/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/ci/pipeline.h"
#include "harness/judge/coverage.h"
#include "harness/play/budget.h"
#include "harness/play/changed.h"
#include "harness/play/curves.h"
#include "harness/play/files.h"
#include "harness/play/jobs.h"
#include "harness/play/remains.h"
#include "harness/play/selection.h"
#include "harness/play/shard.h"
#include "harness/play/suite.h"
#include "harness/play/untrusted.h"
#include "harness/verbs/typed.h"
#include "reports/report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run_request {
    struct arena arena;
    struct scenario_files files;
    const char **sets;     /* NULL-ended */
    const char **replaced; /* the same with the command behind "--"; NULL: there is none */
    struct selection selection;
    const char **tags; /* to be freed */
    int64_t repeat;    /* 0: as the file says */
    int64_t jobs, budget_ns, began_ns;
    bool stress, ci;
    struct suite_options suite;
    struct headway headway;   /* of the runs, where there are several */
    int64_t runs, *todo;      /* that there will be, 0: nobody knows; those left of each selected */
    char place[48];           /* "2 of 6" */
    struct pipeline pipeline; /* with --ci */
    struct shard shard;
    struct changed_names changed;
    struct texts prepared; /* keys of control runs that were made before runs side by side */
};

/* ---- options ---- */

static bool take_seeds(struct run_request *q, const char *value) {
    char **range = str_split(&q->arena, value, ':', NULL);
    int64_t a, b;
    bool two = range[1] && !range[2];
    if (!str_to_i64(range[0], 0, INT64_MAX, &a) || (range[1] && !two))
        return false;
    if (!str_to_i64(two ? range[1] : range[0], a, INT64_MAX, &b))
        return false;
    q->selection.seed_first = (uint64_t)a;
    q->selection.seed_last = (uint64_t)b;
    q->selection.has_seed = true;
    return true;
}

static const struct verb_option options[] = {
    {"--seed", "N", "the seed of all draws (default: the file's, else 1)"},
    {"--seeds", "A:B", "once for each seed from A to B"},
    {"--repeat", "N",
     "N times with the same seed; prints how many failed, and the interval of the rate"},
    {"--stress", NULL, "repeat until a run fails, at most --repeat times"},
    {"--jobs", "N", "N runs side by side; scenarios with bounds on times run alone"},
    {"--budget", "TIME",
     "run as many as fit into TIME (5m), the fastest most telling first, and name what is left "
     "out"},
    {"--shard", "K/N", "only the K-th of N parts, which take about as long by measured times"},
    {"--times", "FILE", "the times that --shard goes by, the same for all shards: cache times"},
    {"--changed", "FILE",
     "only what FILE, which has changed, may concern; may be repeated, and is - for standard "
     "input: git diff "
     "--name-only"},
    {"--max-concurrent-faults", "N",
     "at most N faults in force at once (limits.faults); one more does not fire"},
    {"--set", "KEY=VALUE", "overrides a value of the file, job.max_restarts=2; may be repeated"},
    {"--tag", "TAG",
     "only scenarios with this tag, or with !TAG those without it; may be repeated"},
    {"--launcher", "LAUNCHER",
     "rankrun, torchrun, a command that takes torchrun's options, or a template with {worker}"},
    {"--observe", "KIND=REGEX",
     "reads events from what workers print, step='step ([0-9]+)'; or a preset: lightning"},
    {"--rootfs", "DIR", "the root file system of the nodes; the same as --set cluster.rootfs=DIR"},
    {"--isolation", "KIND",
     "how nodes are kept apart: auto, namespaces or processes; as --set cluster.isolation=KIND"},
    {"--out", "DIR", "where to make run directories (default: runs)"},
    {"--ci", NULL,
     "as a step of a CI server: reports of all runs in --out, its summary and annotations, no "
     "secrets"},
    {"--format", "REPORT", "what to print at the end (default: terminal); see list reports"},
    {"--keep", NULL,
     "keep scratch directories; at a terminal, keep the cluster up too until you press Enter"},
    {"--pcap", NULL,
     "write the frames of each node's wire to pcap/NODE.pcapng of the run, 64 MiB each at most"},
    {"--interactive", NULL,
     "take faults by hand while it runs: from standard input, and from watch"},
    {"--paused", NULL, "the same, and stand still with all nodes up until somebody says go"},
    {"--fresh", NULL, "make the control run again, whatever the cache holds"},
    {"--strict", NULL, "inconclusive and skipped count as failed"},
    {"--bisect", NULL,
     "as the command of git bisect run: 125 (skip) for what stayed open or was skipped, above 127 "
     "for what must stop it"},
    {"--untrusted", NULL,
     "for files that somebody else wrote: start nothing of them outside of nodes; needs --rootfs"},
    VERB_HEADWAY,
    {"--beside", NULL, NULL}, /* jobs.h: somebody else speaks for all runs */
    {"--alone", NULL, NULL},  /* suite.h: its history is all that is wanted */
    {0},
};

static int take_numbers(struct run_request *q, const struct arguments *a) {
    const char *seed = arguments_value(a, "--seed"), *seeds = arguments_value(a, "--seeds");
    const char *repeat = arguments_value(a, "--repeat");
    if (seed && (strchr(seed, ':') || !take_seeds(q, seed)))
        return verb_usage_error(a->verb, "--seed %s: write a whole number, 0 or more", seed);
    if (seeds && (!strchr(seeds, ':') || !take_seeds(q, seeds)))
        return verb_usage_error(a->verb, "--seeds %s: write FIRST:LAST, as in 1:20", seeds);
    int r = arguments_number(a, "--repeat", 1, 1000000, &q->repeat);
    if (r == 0)
        r = arguments_number(a, "--jobs", 1, 1000, &q->jobs);
    if (r)
        return r;
    q->stress = arguments_value(a, "--stress");
    if (q->stress && q->jobs > 1)
        return verb_usage_error(a->verb, "--stress runs one after the other; leave --jobs %s out",
                                arguments_value(a, "--jobs"));
    if (q->stress && !repeat)
        q->repeat = INT64_MAX;
    q->selection.counted = repeat || q->stress || seeds;
    return 0;
}

static int take_budget(struct run_request *q, const struct arguments *a) {
    q->began_ns = clock_monotonic_ns();
    const char *shard = arguments_value(a, "--shard");
    if (shard && !shard_read(shard, &q->shard))
        return verb_usage_error(a->verb, "--shard %s: write PART/PARTS, as in 2/5", shard);
    const char *times = arguments_value(a, "--times");
    struct err err = {0};
    if (times && !shard)
        return verb_usage_error(a->verb, "--times is what --shard goes by; say which shard");
    if (times && shard_read_times(&q->shard, times, &err) < 0)
        return verb_usage_error(a->verb, "--times: %s", err.msg);
    return arguments_duration(a, "--budget", &q->budget_ns);
}

static int take_changed(struct run_request *q, const struct arguments *a) {
    const char **names = arguments_all(a, "--changed");
    struct err err = {0};
    bool piped = false;
    int r = 0;
    for (size_t i = 0; names[i] && r == 0; i++) {
        bool is_input = str_eq(names[i], "-");
        if (is_input && (piped || q->suite.interactive))
            r = err_say(&err, -EINVAL,
                        piped ? "standard input is read once; write - once"
                              : "faults by hand come from standard input; name the "
                                "files instead of -");
        else
            r = is_input ? changed_read(&q->changed, STDIN_FILENO, &err)
                         : changed_add(&q->changed, names[i], &err);
        piped |= is_input;
    }
    free(names);
    if (r == 0 && q->changed.asked && arguments_value(a, "--bisect"))
        r = err_say(
            &err, -EINVAL,
            "with --bisect a commit whose scenarios are left out would count as good; leave "
            "one of the two out");
    return r ? verb_usage_error(a->verb, "--changed: %s", err.msg) : 0;
}

/* Those side by side are processes of their own, which would have to be told the same. */
static int take_trust(struct run_request *q, const struct arguments *a) {
    q->selection.untrusted = arguments_value(a, "--untrusted");
    q->files.trusted = !q->selection.untrusted;
    if (q->selection.untrusted && arguments_value(a, "--jobs"))
        return verb_usage_error(a->verb, "--untrusted runs one after the other; leave --jobs out");
    if (q->selection.untrusted)
        q->sets = untrusted_sets(&q->arena, a->verb, q->sets);
    q->suite.sets = (const char *const *)q->sets;
    return q->sets ? 0 : EXIT_USAGE_ERROR;
}

static int take_options(struct run_request *q, const struct arguments *a) {
    const char *out = arguments_value(a, "--out"), *format = arguments_value(a, "--format");
    q->suite.out = out ? out : "runs";
    q->suite.format = format ? format : "terminal";
    q->suite.keep = arguments_value(a, "--keep");
    q->suite.pcap = arguments_value(a, "--pcap");
    q->suite.strict = arguments_value(a, "--strict");
    q->suite.paused = arguments_value(a, "--paused");
    q->suite.interactive = q->suite.paused || arguments_value(a, "--interactive");
    if (q->suite.interactive && arguments_value(a, "--jobs"))
        return verb_usage_error(a->verb,
                                "--interactive is for one run at a time; leave --jobs out");
    q->suite.beside = arguments_value(a, "--beside");
    q->suite.alone = arguments_value(a, "--alone");
    q->suite.fresh = arguments_value(a, "--fresh");
    q->ci = arguments_value(a, "--ci");
    q->sets = arguments_sets(a, &q->arena);
    q->tags = arguments_all(a, "--tag");
    q->selection.tags = (const char *const *)q->tags;
    int r = take_trust(q, a);
    if (r)
        return r;
    for (const char **s = q->sets; *s; s++)
        if (!strchr(*s, '='))
            return verb_usage_error(a->verb, "--set %s: write KEY=VALUE, as in job.max_restarts=2",
                                    *s);
    if (!report_find(q->suite.format))
        return verb_usage_error(a->verb,
                                "--format %s: there is no such report; see rankquake list reports",
                                q->suite.format);
    r = arguments_headway(a, &q->suite.wish);
    r = r ? r : take_budget(q, a);
    r = r ? r : take_changed(q, a);
    return r ? r : take_numbers(q, a);
}

static int parse(struct run_request *q, const struct arguments *a) {
    int r = take_options(q, a);
    for (size_t i = 0; i < a->files_n && r == 0; i++)
        r = files_add(&q->files, a->verb, a->files[i]);
    if (r == 0 && !q->files.n)
        r = verb_usage_error(a->verb, "name a scenario file or a folder of them%s",
                             a->rest ? " before --; for your command alone there is try" : "");
    if (r == 0 && a->rest) {
        r = typed_replace(&q->arena, a, q->sets, &q->replaced);
        q->suite.sets = (const char *const *)q->replaced;
    }
    return r;
}

/* Before the first of them is started. What runs in nodes is not named: it is the job. */
static void name_commands(struct selected *l) {
    BUF_FINI struct buf text = {0};
    if (l->named)
        return;
    plan_put_outside(l->plan, &text);
    fputs(buf_str(&text), stderr);
    l->named = true;
}

static int check_host(const struct run_request *q, struct selected *l) {
    struct err err = {0};
    name_commands(l);
    int r = plan_check_host(l->plan, &err);
    if (r == 0 && q->suite.pcap && l->plan->isolation == ISOLATION_PROCESSES)
        r = err_say(&err, -ENOTSUP,
                    "--pcap: there is no wire whose frames could be written down; it comes with "
                    "nodes in namespaces");
    if (r == 0 && l->plan->launcher_note)
        fprintf(stderr, "rankquake run: %s\n", l->plan->launcher_note);
    if (r == 0)
        return EXIT_PASS;
    fprintf(stderr, "rankquake run: %s: %s\n", l->scenario->file, err.msg);
    return r == -ENOENT ? EXIT_USAGE_ERROR : EXIT_SKIPPED;
}

/* ---- running ---- */

struct run_tally {
    struct ended {
        int code;
        const struct selected *of;
        bool forgiven; /* it failed, and the file allows that */
    } * v;
    size_t n;
};

static void tally_add(struct run_tally *t, int code, const struct selected *of) {
    mem_push(t->v, t->n) = (struct ended){.code = code, .of = of};
}

/* How often each seed is run. */
static int64_t runs_each(const struct run_request *q, const struct selected *l) {
    const struct repeat_spec *own = &l->scenario->repeat;
    if (q->repeat)
        return q->repeat;
    return q->selection.counted || own->each_seed ? 1 : own->runs;
}

static int64_t runs_in_all(const void *arg, const struct selected *l) {
    int64_t seeds = (int64_t)(l->seed_last - l->seed_first) + 1, each = runs_each(arg, l);
    return seeds > 1000000 || each > 1000000 ? INT64_MAX : seeds * each;
}

/* ---- how far it is ---- */

static void count_runs(struct run_request *q) {
    q->todo = arena_array(&q->arena, int64_t, q->selection.n + 1);
    q->runs = 0;
    for (size_t i = 0; i < q->selection.n; i++) {
        const struct selected *l = &q->selection.v[i];
        q->todo[i] = l->left_out ? 0 : runs_in_all(q, l);
        if (q->todo[i] > 1000000) { /* until one fails */
            q->runs = 0;
            return;
        }
        q->runs += q->todo[i];
    }
}

static void begin_headway(struct run_request *q) {
    struct headway_spec spec = {.out = str_eq(q->suite.format, "terminal") ? stdout : stderr,
                                .verb = "run",
                                .unit = "runs",
                                .total = q->runs,
                                .until_ns = q->budget_ns ? q->began_ns + q->budget_ns : 0,
                                .own_line = q->jobs <= 1,
                                .no_lines = true,
                                .wish = q->suite.wish};
    if (q->runs != 1 && !q->suite.beside)
        headway_begin(&q->headway, &spec);
}

/* By how long each took the last time, or is guessed to take. */
static int64_t left_of_all_ns(const struct run_request *q) {
    int64_t ns = 0;
    for (size_t i = 0; i < q->selection.n && q->runs; i++)
        if (q->todo[i])
            ns += q->todo[i] * budget_estimate_ns(&q->selection.v[i]);
    return q->runs ? ns / q->jobs : -1;
}

/* l: the one that is about to run, or has just ended. */
static void tell_headway(struct run_request *q, const struct selected *l, int64_t done) {
    if (q->runs == 1 || q->suite.beside)
        return;
    headway_expect(&q->headway, left_of_all_ns(q));
    headway_at(&q->headway, done, l ? l->scenario->name : NULL);
    if (q->runs)
        snprintf(q->place, sizeof(q->place), "%lld of %lld", (long long)done + 1,
                 (long long)q->runs);
    else
        snprintf(q->place, sizeof(q->place), "run %lld", (long long)done + 1);
    q->suite.place = q->place;
    q->suite.place_left_ns = headway_left_ns(&q->headway);
}

static void count_down(struct run_request *q, const struct selected *l) {
    int64_t *todo = &q->todo[l - q->selection.v];
    *todo -= *todo > 0;
}

static void run_once(struct run_request *q, const struct selected *l, struct run_tally *t) {
    struct err err = {0};
    tell_headway(q, l, (int64_t)t->n);
    struct suite_options o = q->suite;
    char coverage[PATH_MAX];
    if (!o.alone && selected_cache(l, "answered", true, coverage, sizeof(coverage)) == 0)
        o.coverage = coverage;
    int64_t began_ns = clock_monotonic_ns();
    count_down(q, l);
    o.sets = l->sets;
    int code = suite_run(l->plan, &o, &err);
    if (err.code)
        fprintf(stderr, "rankquake run: %s: %s\n", l->scenario->file, err.msg);
    if (code != EXIT_BROKEN && code != EXIT_INTERRUPTED)
        budget_note(l, clock_monotonic_ns() - began_ns, code);
    tally_add(t, code, l);
}

static bool last_failed(const struct run_tally *t) {
    int code = t->n ? t->v[t->n - 1].code : EXIT_PASS;
    return code == EXIT_FAIL || code == EXIT_LEFTOVERS || code == EXIT_BROKEN;
}

/* Of all files. */
static bool is_last(const struct run_request *q, const struct run_tally *t) {
    int code = t->n ? t->v[t->n - 1].code : EXIT_PASS;
    return code == EXIT_INTERRUPTED || (q->stress && last_failed(t));
}

/* One file, with every seed, as often as asked; stops when interrupted. */
static void run_file(struct run_request *q, struct selected *l, struct run_tally *t) {
    int host = check_host(q, l);
    bool until_failure = !q->selection.counted && l->scenario->repeat.until_failure;
    if (host != EXIT_PASS) {
        tally_add(t, host, l);
        return;
    }
    for (uint64_t seed = l->seed_first; seed <= l->seed_last; seed++) {
        l->plan->seed = seed;
        for (int64_t i = 0; i < runs_each(q, l); i++) {
            run_once(q, l, t);
            if (is_last(q, t) || (until_failure && last_failed(t)))
                return;
        }
    }
}

static bool same_file(const struct selected *a, const struct selected *b) {
    return a->sets == b->sets && str_eq(a->file, b->file);
}

/* Failures that the file allows, once they have been told. */
static void forgive(const struct run_request *q, const struct selected *l, struct run_tally *t) {
    int failed = 0, runs = 0, allowed = l->scenario->repeat.failures;
    for (size_t i = 0; i < t->n; i++)
        if (same_file(t->v[i].of, l)) {
            runs++;
            failed += t->v[i].code == EXIT_FAIL;
        }
    if (q->selection.counted || !allowed || !failed)
        return;
    fprintf(stderr, "%s: %d of %d runs failed, repeat.failures allows %d\n", l->scenario->name,
            failed, runs, allowed);
    for (size_t i = 0; i < t->n && failed <= allowed; i++)
        if (same_file(t->v[i].of, l) && t->v[i].code == EXIT_FAIL) {
            t->v[i].code = EXIT_PASS;
            t->v[i].forgiven = true;
        }
}

static void forgive_all(const struct run_request *q, struct run_tally *t) {
    for (size_t i = 0; i < q->selection.n; i++)
        if (i == 0 || !same_file(&q->selection.v[i], &q->selection.v[i - 1]))
            forgive(q, &q->selection.v[i], t);
}

static void print_tally(const struct run_request *q, const struct run_tally *t) {
    size_t by[256] = {0};
    if (t->n < 2 || !str_eq(q->suite.format, "terminal"))
        return;
    for (size_t i = 0; i < t->n; i++)
        by[t->v[i].code & 255]++;
    printf("\n%zu runs: %zu passed, %zu failed, %zu inconclusive, %zu broken, %zu skipped\n", t->n,
           by[EXIT_PASS], by[EXIT_FAIL] + by[EXIT_LEFTOVERS], by[EXIT_INCONCLUSIVE],
           by[EXIT_BROKEN], by[EXIT_SKIPPED]);
    size_t failed = by[EXIT_FAIL] + by[EXIT_LEFTOVERS], judged = failed + by[EXIT_PASS];
    bool repeated = q->repeat > 1;
    for (size_t i = 0; i < q->selection.n; i++)
        repeated |= !q->selection.counted && q->selection.v[i].scenario->repeat.runs > 1;
    if (!repeated || !judged)
        return;
    double low, high;
    suite_failure_rate(failed, judged, &low, &high);
    printf("failure rate %.1f %% of %zu judged, between %.1f %% and %.1f %% (95 %% confidence)\n",
           100.0 * (double)failed / (double)judged, judged, 100 * low, 100 * high);
}

/* Those whose newest run could answer fewer checks from evidence than the one before; each has said
 * which. */
static void print_lost(const struct run_request *q, const struct run_tally *t) {
    FILE *out = str_eq(q->suite.format, "terminal") ? stdout : stderr;
    char coverage[PATH_MAX];
    const struct selected *last = NULL;
    int n = 0;
    for (size_t i = 0; i < t->n && t->n > 1; i++) {
        const struct selected *l = t->v[i].of;
        int code = t->v[i].code;
        bool judged = code == EXIT_PASS || code == EXIT_FAIL || code == EXIT_INCONCLUSIVE ||
                      code == EXIT_LEFTOVERS;
        if (l == last || !judged ||
            selected_cache(l, "answered", true, coverage, sizeof(coverage)) < 0 ||
            !coverage_lost(coverage))
            continue;
        fprintf(out, "%s%s", n++ ? ", " : "fewer checks were answered from evidence than before: ",
                l->scenario->name);
        last = l;
    }
    if (n)
        fputc('\n', out);
}

/* ---- side by side ---- */

/* What each run is told besides its file and its seed. */
static const char *const *options_of(struct run_request *q) {
    size_t n = 0;
    const char **v = arena_array(&q->arena, const char *, 10);
    v[n++] = "--out";
    v[n++] = q->suite.out;
    v[n++] = "--format";
    v[n++] = q->suite.format;
    if (q->suite.keep)
        v[n++] = "--keep";
    if (q->suite.pcap)
        v[n++] = "--pcap";
    if (q->suite.strict)
        v[n++] = "--strict";
    if (q->suite.wish.quiet)
        v[n++] = "--quiet";
    return v;
}

/* ret and of may be NULL. */
static size_t list_jobs(const struct run_request *q, struct job *ret, const struct selected **of) {
    size_t n = 0;
    for (size_t i = 0; i < q->selection.n; i++) {
        const struct selected *l = &q->selection.v[i];
        for (uint64_t seed = l->seed_first; seed <= l->seed_last && !l->left_out; seed++)
            for (int64_t k = 0; k < runs_each(q, l); k++, n++)
                if (ret) {
                    ret[n] = (struct job){.file = l->file,
                                          .sets = l->sets,
                                          .seed = seed,
                                          .code = -1,
                                          .alone = l->alone};
                    of[n] = l;
                }
    }
    return n;
}

/* Control runs are made one after another before all else: each writes down what files of the tree its job
 * opens, and nobody can tell whose opens those beside it are. Scenarios of one job share one. False: it
 * was interrupted. */
static bool prepare_one(struct run_request *q, struct selected *l) {
    char before[65] = "", key[65];
    bool goes_on = true;
    if (plan_check_host(l->plan, NULL) < 0)
        return true; /* its run says why */
    name_commands(l);
    for (uint64_t seed = l->seed_first; seed <= l->seed_last && goes_on; seed++) {
        l->plan->seed = seed;
        if (control_key(l->plan, q->suite.bin, key, NULL) < 0 || str_eq(key, before))
            break;
        str_copy(before, sizeof(before), key);
        bool is_made = texts_has(&q->prepared, key);
        if (!is_made)
            texts_add(&q->prepared, "%s", key);
        goes_on = is_made || suite_prepare(l->plan, &q->suite) != EXIT_INTERRUPTED;
    }
    l->plan->seed = l->seed_first;
    return goes_on;
}

static bool prepare_all(struct run_request *q) {
    for (size_t i = 0; i < q->selection.n; i++)
        if (!q->selection.v[i].left_out && !prepare_one(q, &q->selection.v[i]))
            return false;
    return true;
}

struct side_by_side {
    struct run_request *q;
    const struct job *jobs;
    const struct selected **of;
    int64_t done;
};

static void on_shown(void *arg, const struct job *j, bool before) {
    struct side_by_side *s = arg;
    if (before) {
        headway_erase(&s->q->headway);
        return;
    }
    count_down(s->q, s->of[j - s->jobs]);
    tell_headway(s->q, s->of[j - s->jobs], ++s->done);
}

static void run_side_by_side(struct run_request *q, struct run_tally *t) {
    struct err err = {0};
    size_t n = list_jobs(q, NULL, NULL);
    struct job *jobs = arena_array(&q->arena, struct job, n + 1);
    const struct selected **of = arena_array(&q->arena, const struct selected *, n + 1);
    list_jobs(q, jobs, of);
    struct side_by_side s = {.q = q, .jobs = jobs, .of = of};
    struct jobs_spec spec = {
        .at_once = (int)q->jobs, .options = options_of(q), .shown = on_shown, .arg = &s};
    tell_headway(q, NULL, 0);
    if (!prepare_all(q)) {
        tally_add(t, EXIT_INTERRUPTED, &q->selection.v[0]);
        return;
    }
    if (jobs_run(jobs, n, &spec, &err) < 0) {
        fprintf(stderr, "rankquake run: %s\n", err.msg);
        tally_add(t, EXIT_BROKEN, &q->selection.v[0]);
    }
    for (size_t i = 0; i < n; i++)
        if (jobs[i].code >= 0)
            tally_add(t, jobs[i].code, of[i]);
}

static bool tally_has(const struct run_tally *t, int code) {
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].code == code)
            return true;
    return false;
}

static void run_one_by_one(struct run_request *q, struct run_tally *t) {
    for (size_t i = 0; i < q->selection.n; i++) {
        struct selected *l = &q->selection.v[i];
        l->left_out |= q->budget_ns && clock_monotonic_ns() - q->began_ns >= q->budget_ns;
        if (l->left_out)
            continue;
        run_file(q, l, t);
        if (is_last(q, t) || tally_has(t, EXIT_USAGE_ERROR))
            break;
    }
}

static void choose(struct run_request *q) {
    struct selection *s = &q->selection;
    for (size_t i = 0; i < s->n; i++)
        s->v[i].alone = job_must_be_alone(s->v[i].scenario);
    if (!q->budget_ns)
        return;
    budget_sort(s);
    budget_choose(s, q->budget_ns, (int)q->jobs, runs_in_all, q);
}

/* What was left out counts as skipped. */
static int code_of_all(struct run_request *q, struct run_tally *t) {
    for (size_t i = 0; i < q->selection.n; i++)
        if (q->selection.v[i].left_out)
            tally_add(t, q->suite.strict ? EXIT_FAIL : EXIT_SKIPPED, &q->selection.v[i]);
    int *codes = arena_array(&q->arena, int, t->n + 1);
    for (size_t i = 0; i < t->n; i++)
        codes[i] = t->v[i].code;
    return suite_exit_code(codes, t->n);
}

static void print_curves(const struct run_request *q) {
    bool terminal = str_eq(q->suite.format, "terminal");
    struct curves_request r = {.selection = &q->selection,
                               .out = q->suite.out,
                               .since_ns = q->began_ns,
                               .table = terminal ? stdout : NULL,
                               .said = terminal ? stdout : stderr};
    if (!q->suite.beside)
        curves_tell(&r);
}

/* ---- for a CI server ---- */

static const char *why_missing(const struct selected *l, int code) {
    return l->left_out            ? "left out: the budget is spent"
           : code == EXIT_SKIPPED ? "skipped: this host cannot do it; what was printed says why"
                                  : "the run broke before there was anything to judge; what was "
                                    "printed says why";
}

static bool has_directory(const struct ended *e) {
    return e->code != EXIT_SKIPPED && !e->of->left_out;
}

/* Runs that have left nothing to be read are told by their code. */
static void tell_missing(struct run_request *q, const struct run_tally *t) {
    for (size_t i = 0; i < t->n; i++) {
        const struct selected *l = t->v[i].of;
        const char *name = l->scenario->name;
        size_t asked = 0;
        for (size_t k = 0; k <= i; k++)
            asked += str_eq(t->v[k].of->scenario->name, name) && has_directory(&t->v[k]);
        if (!has_directory(&t->v[i]) || pipeline_count(&q->pipeline, name) < asked)
            pipeline_missing(&q->pipeline, name, l->file, t->v[i].code,
                             why_missing(l, t->v[i].code));
    }
    for (size_t i = 0; i < q->changed.left_names.n; i++)
        pipeline_missing(&q->pipeline, q->changed.left_names.v[i], q->changed.left_files.v[i],
                         EXIT_SKIPPED, "left out: nothing that it reads has changed (--changed)");
}

static void take_forgiven(struct run_request *q, const struct run_tally *t) {
    for (size_t k = 0; k < t->n; k++)
        for (size_t i = 0; i < q->pipeline.n && t->v[k].forgiven; i++)
            if (str_eq(q->pipeline.v[i].name, t->v[k].of->scenario->name))
                q->pipeline.v[i].forgiven = q->pipeline.v[i].exit_code == EXIT_FAIL;
}

static void tell_pipeline(struct run_request *q, const struct run_tally *t) {
    pipeline_take_new(&q->pipeline, q->suite.out, !q->selection.untrusted);
    tell_missing(q, t);
    take_forgiven(q, t);
}

static int run_all(struct run_request *q) {
    struct run_tally t = {0};
    q->selection.sets = q->suite.sets;
    q->selection.verb = &verb_run;
    if (!q->suite.beside)
        remains_tell("run", q->suite.out, stderr);
    int bad = selection_read(&q->selection, &q->files);
    if (!bad && q->shard.parts)
        shard_keep(&q->shard, &q->selection, runs_in_all, q, stderr);
    if (!bad && q->changed.asked)
        changed_keep(&q->changed, &q->selection, q->suite.bin, name_commands,
                     str_eq(q->suite.format, "terminal") ? stdout : stderr);
    choose(q);
    if (!bad) {
        count_runs(q);
        begin_headway(q);
    }
    if (!bad && q->jobs > 1)
        run_side_by_side(q, &t);
    else if (!bad)
        run_one_by_one(q, &t);
    headway_end(&q->headway);
    print_tally(q, &t);
    if (!bad)
        print_curves(q);
    print_lost(q, &t);
    if (!bad)
        budget_print(&q->selection, q->budget_ns,
                     str_eq(q->suite.format, "terminal") ? stdout : stderr);
    forgive_all(q, &t);
    int code = bad ? bad : tally_has(&t, EXIT_USAGE_ERROR) ? EXIT_USAGE_ERROR : code_of_all(q, &t);
    tell_pipeline(q, &t);
    free(t.v);
    return code;
}

/* What git bisect run makes of an exit status: 0 good, 125 nobody can tell, 1 to 127 bad, above it
 * ends. A scenario that cannot be read, or a harness that broke, says nothing of the commit. */
static int code_for_bisect(int code) {
    switch (code) {
    case EXIT_PASS:
        return 0;
    case EXIT_FAIL:
    case EXIT_LEFTOVERS:
        return 1;
    case EXIT_INCONCLUSIVE:
    case EXIT_SKIPPED:
        return 125;
    case EXIT_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return 128 + code;
    }
}

static int main_run(const struct arguments *a) {
    struct run_request *q = mem_new(struct run_request);
    q->jobs = 1;
    q->suite = (struct suite_options){.out = "runs", .format = "terminal"};
    q->suite.bin = suite_bin(&q->arena);
    int code = parse(q, a);
    if (code == 0 && q->ci)
        pipeline_begin(&q->pipeline, q->suite.out);
    if (code == 0 && q->selection.untrusted)
        untrusted_clear_environment();
    if (code == 0)
        code = run_all(q);
    code = pipeline_end(&q->pipeline, "run", a->files_n ? a->files[0] : "run", code);
    if (arguments_value(a, "--bisect"))
        code = code_for_bisect(code);
    free(q->tags);
    selection_fini(&q->selection);
    shard_fini(&q->shard);
    changed_fini(&q->changed);
    texts_fini(&q->prepared);
    arena_fini(&q->arena);
    files_fini(&q->files);
    free(q);
    return code;
}

const struct verb verb_run = {
    .name = "run",
    .usage = "run FILE|DIR... [options] [-- CMD...]",
    .summary = "run scenarios, with their job or with yours: break it as they say, judge, report",
    .example = "run scenarios/tour.yaml --seed 7",
    .operands = "SCENARIO|FILE",
    .options = options,
    .run = main_run,
};
