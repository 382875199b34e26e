#include "harness/verb.h"

#include "agent/base/str.h"
#include "harness/verbs/suite.h"
#include "reports/report.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 1000, SETS_MAX = 64 };

struct request {
    struct arena arena;
    const char *files[FILES_MAX];
    size_t files_n;
    const char *sets[SETS_MAX + 1];
    size_t sets_n;
    bool has_seed;
    uint64_t seed_first, seed_last;
    int64_t repeat;
    struct suite_options suite;
};

struct loaded {
    struct scenario *scenario;
    struct plan *plan;
};

static int usage(const char *fmt, const char *what) {
    fprintf(stderr, "rankquake run: ");
    fprintf(stderr, fmt, what);
    fprintf(stderr, "; see rankquake run --help\n");
    return EXIT_USAGE_ERROR;
}

/* ---- options ---- */

static bool take_seeds(struct request *q, const char *value) {
    char **range = str_split(&q->arena, value, ':', NULL);
    int64_t a, b;
    bool two = range[1] && !range[2];
    if (!str_to_i64(range[0], 0, INT64_MAX, &a) || (range[1] && !two))
        return false;
    if (!str_to_i64(two ? range[1] : range[0], a, INT64_MAX, &b))
        return false;
    q->seed_first = (uint64_t)a;
    q->seed_last = (uint64_t)b;
    q->has_seed = true;
    return true;
}

static int take_option(struct request *q, const char *name, const char *value) {
    int64_t n;
    bool ok = true;
    if (str_eq(name, "--seed"))
        ok = !strchr(value, ':') && take_seeds(q, value);
    else if (str_eq(name, "--seeds"))
        ok = strchr(value, ':') && take_seeds(q, value);
    else if (str_eq(name, "--repeat"))
        ok = str_to_i64(value, 1, 100000, &n) && (q->repeat = n);
    else if (str_eq(name, "--out"))
        q->suite.out = value;
    else if (str_eq(name, "--format"))
        ok = report_find(q->suite.format = value);
    else if (str_eq(name, "--set"))
        ok = q->sets_n < SETS_MAX && strchr(value, '=') && (q->sets[q->sets_n++] = value);
    if (ok)
        return 0;
    fprintf(stderr, "rankquake run: %s %s: ", name, value);
    return usage("%s", str_eq(name, "--format")  ? "no report of that name; rankquake list reports"
                       : str_eq(name, "--set")   ? "write key=value"
                       : str_eq(name, "--seeds") ? "write FIRST:LAST, whole numbers, 0 or more"
                                                 : "write a whole number");
}

static int add_path(struct request *q, const char *path);

static int only_scenarios(const struct dirent *d) {
    return d->d_name[0] != '.' && (str_ends(d->d_name, ".yaml") || d->d_type == DT_DIR);
}

static int add_folder(struct request *q, const char *path) {
    struct dirent **names;
    int n = scandir(path, &names, only_scenarios, alphasort), r = 0;
    if (n < 0)
        return usage("cannot read the folder %s", path);
    for (int i = 0; i < n; i++) {
        if (r == 0)
            r = add_path(q, arena_printf(&q->arena, "%s/%s", path, names[i]->d_name));
        free(names[i]);
    }
    free(names);
    return r;
}

static int add_path(struct request *q, const char *path) {
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return add_folder(q, path);
    if (q->files_n == FILES_MAX)
        return usage("%s", "more than 1000 scenario files");
    q->files[q->files_n++] = path;
    return 0;
}

static const struct verb_option options[] = {
    {"--seed", "N", "the seed of all draws (default: the file's, else 1)"},
    {"--seeds", "A:B", "once for each seed from A to B"},
    {"--repeat", "N", "the same seed N times; prints how many failed"},
    {"--set", "KEY=VALUE", "overrides a value of the file, job.max_restarts=2; may be repeated"},
    {"--out", "DIR", "where run directories are made (default: runs)"},
    {"--format", "REPORT", "what is printed at the end (default: terminal); see list reports"},
    {"--keep", NULL, "keep the cluster's scratch directories"},
    {"--strict", NULL, "inconclusive and skipped count as failed"},
    {0},
};

static const struct verb_option *find_option(const char *arg, size_t name_len) {
    for (const struct verb_option *o = options; o->name; o++)
        if (strlen(o->name) == name_len && strncmp(o->name, arg, name_len) == 0)
            return o;
    return NULL;
}

static int parse(struct request *q, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            int r = add_path(q, argv[i]);
            if (r)
                return r;
            continue;
        }
        size_t len = strcspn(argv[i], "=");
        const struct verb_option *o = find_option(argv[i], len);
        if (!o)
            return usage("unknown option %s", argv[i]);
        q->suite.keep |= str_eq(o->name, "--keep");
        q->suite.strict |= str_eq(o->name, "--strict");
        if (!o->value)
            continue;
        const char *value = argv[i][len] ? argv[i] + len + 1 : ++i < argc ? argv[i] : NULL;
        if (!value)
            return usage("%s needs a value", o->name);
        int r = take_option(q, o->name, value);
        if (r)
            return r;
    }
    return q->files_n ? 0 : usage("%s", "name a scenario file or a folder of them");
}

/* ---- everything is read and planned before anything is done ---- */

static int load(struct request *q, const char *file, struct loaded *ret) {
    struct diagnostics d = {0};
    int r = 0;
    ret->scenario = scenario_load(file, q->sets_n ? q->sets : NULL, &d);
    if (ret->scenario) {
        uint64_t seed = q->has_seed               ? q->seed_first
                        : ret->scenario->has_seed ? ret->scenario->seed
                                                  : 1;
        ret->plan = plan_make(ret->scenario, seed, &d);
    }
    if (!ret->plan) {
        fputs(buf_str(&d.out), stderr);
        r = EXIT_USAGE_ERROR;
    }
    diagnostics_fini(&d);
    return r;
}

static int check_host(const struct loaded *l) {
    struct err err = {0};
    int r = plan_check_host(l->plan, &err);
    if (r == 0)
        return EXIT_PASS;
    fprintf(stderr, "rankquake run: %s: %s\n", l->scenario->file, err.msg);
    return r == -ENOENT ? EXIT_USAGE_ERROR : EXIT_SKIPPED;
}

/* ---- running ---- */

struct tally {
    int *codes;
    size_t n, cap;
};

static void tally_add(struct tally *t, int code) {
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 16;
        t->codes = realloc(t->codes, t->cap * sizeof(*t->codes));
        if (!t->codes)
            abort();
    }
    t->codes[t->n++] = code;
}

static void run_once(const struct request *q, const struct loaded *l, struct tally *t) {
    struct err err = {0};
    int code = suite_run(l->plan, &q->suite, &err);
    if (err.code)
        fprintf(stderr, "rankquake run: %s: %s\n", l->scenario->file, err.msg);
    tally_add(t, code);
}

/* One file, with every seed, as often as asked; stops when interrupted. */
static void run_file(const struct request *q, const struct loaded *l, struct tally *t) {
    int host = check_host(l);
    if (host != EXIT_PASS) {
        tally_add(t, host);
        return;
    }
    uint64_t first = q->has_seed ? q->seed_first : l->plan->seed;
    uint64_t last = q->has_seed ? q->seed_last : first;
    for (uint64_t seed = first; seed <= last; seed++) {
        l->plan->seed = seed;
        for (int64_t i = 0; i < q->repeat; i++) {
            run_once(q, l, t);
            if (t->codes[t->n - 1] == EXIT_INTERRUPTED)
                return;
        }
    }
}

static void print_tally(const struct request *q, const struct tally *t) {
    size_t by[256] = {0};
    if (t->n < 2 || !str_eq(q->suite.format, "terminal"))
        return;
    for (size_t i = 0; i < t->n; i++)
        by[t->codes[i] & 255]++;
    printf("\n%zu runs: %zu passed, %zu failed, %zu inconclusive, %zu broken, %zu skipped\n", t->n,
           by[EXIT_PASS], by[EXIT_FAIL] + by[EXIT_LEFTOVERS], by[EXIT_INCONCLUSIVE],
           by[EXIT_BROKEN], by[EXIT_SKIPPED]);
}

static int run_all(struct request *q, struct loaded *all) {
    struct tally t = {0};
    int bad = 0;
    for (size_t i = 0; i < q->files_n; i++)
        bad |= load(q, q->files[i], &all[i]);
    for (size_t i = 0; i < q->files_n && !bad; i++) {
        run_file(q, &all[i], &t);
        if (t.n && (t.codes[t.n - 1] == EXIT_INTERRUPTED || t.codes[t.n - 1] == EXIT_USAGE_ERROR))
            break;
    }
    print_tally(q, &t);
    int code = bad ? bad : suite_exit_code(t.codes, t.n);
    if (!bad && t.n && t.codes[t.n - 1] == EXIT_USAGE_ERROR)
        code = EXIT_USAGE_ERROR;
    free(t.codes);
    return code;
}

static const char *own_folder(struct arena *a) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0)
        return ".";
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    return arena_strdup(a, path);
}

static int main_run(int argc, char **argv) {
    struct request *q = calloc(1, sizeof(*q));
    struct loaded *all = calloc(FILES_MAX, sizeof(*all));
    if (!q || !all)
        abort();
    q->repeat = 1;
    q->suite = (struct suite_options){.out = "runs", .format = "terminal"};
    q->suite.bin = own_folder(&q->arena);
    int code = parse(q, argc, argv);
    if (code == 0)
        code = run_all(q, all);
    for (size_t i = 0; i < q->files_n; i++) {
        plan_free(all[i].plan);
        scenario_free(all[i].scenario);
    }
    arena_fini(&q->arena);
    free(all);
    free(q);
    return code;
}

const struct verb verb_run = {
    .name = "run",
    .usage = "run FILE|DIR... [options]",
    .summary = "run scenarios: break the job as they say, judge what happened, report",
    .options = options,
    .main = main_run,
};
