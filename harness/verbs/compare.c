/* Runs the same scenarios under several launchers and compares the verdicts. */
#include "harness/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/printing.h"
#include "harness/plan/plan.h"
#include "harness/play/cell.h"
#include "harness/play/files.h"
#include "harness/play/selection.h"
#include "harness/play/suite.h"
#include "harness/verbs/typed.h"
#include "reports/comparison/comparison.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { LAUNCHERS_MAX = 32 };

struct compare_request {
    struct arena arena;
    struct scenario_files files;
    struct comparison_launcher launchers[LAUNCHERS_MAX];
    size_t launchers_n;
    const char **sets; /* NULL-ended */
    const char *seed, *out, *format;
    bool fresh, strict;
    char dir[4096];
    struct texts said; /* what is started on this host */
    struct comparison comparison;
};

/* ---- launchers ---- */

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A path, or the name of a tree that ci/peers has built. NULL: there is none. */
static const char *find_tree(struct arena *a, const char *name) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (strchr(name, '/'))
        return is_directory(name) ? name : NULL;
    const char *tree = xdg && *xdg == '/' ? arena_printf(a, "%s/rankquake/peers/%s", xdg, name)
                                          : arena_printf(a, "%s/.cache/rankquake/peers/%s",
                                                         home ? home : "", name);
    return is_directory(tree) ? tree : NULL;
}

/* Columns are told apart by their names: a second one of a name gets a number. */
static const char *name_of(struct compare_request *q, const char *words, const char *tree) {
    size_t first = strcspn(words, " {");
    const char *program = str_base(arena_strndup(&q->arena, words, first ? first : strlen(words)));
    const char *name = tree ? arena_printf(&q->arena, "%s@%s", program, str_base(tree)) : program;
    size_t n = strlen(name);
    int same = 1;
    for (size_t i = 0; i < q->launchers_n; i++)
        same += strncmp(q->launchers[i].name, name, n) == 0 &&
                strchr("-", q->launchers[i].name[n]) != NULL; /* it, or one with a number */
    return same > 1 ? arena_printf(&q->arena, "%s-%d", name, same) : name;
}

static int add_launcher(struct compare_request *q, const struct verb *verb, const char *text) {
    const char *at = strrchr(text, '@'), *words = text, *tree = NULL;
    if (q->launchers_n == LAUNCHERS_MAX)
        return verb_usage_error(verb, "more than %d launchers", LAUNCHERS_MAX);
    if (at && at[1] && !strchr(at, ' ') && !strchr(at, '}')) {
        words = arena_strndup(&q->arena, text, (size_t)(at - text));
        tree = find_tree(&q->arena, at + 1);
        if (!tree)
            return verb_usage_error(verb,
                                    strchr(at, '/')
                                        ? "--launcher %s: there is no directory %s"
                                        : "--launcher %s: no tree %s has been built; sudo ci/peers "
                                          "builds those of Debian, and a path names any other",
                                    text, at + 1);
    }
    if (!*words)
        return verb_usage_error(verb, "--launcher %s: name the launcher in front of the @", text);
    q->launchers[q->launchers_n] = (struct comparison_launcher){
        .name = name_of(q, words, tree), .words = words, .rootfs = tree, .version = ""};
    q->launchers_n++;
    return 0;
}

/* ---- options ---- */

static const struct verb_option options[] = {
    {"--launcher", "X",
     "rankrun, torchrun, a command or a template; X@DIR: in nodes whose root file system is DIR, "
     "or a "
     "tree of ci/peers (torchrun@sid); give it for each one"},
    {"--seed", "N", "the seed of all draws (default: the file's, else 1)"},
    {"--set", "KEY=VALUE", "overrides a value of every file; may be repeated"},
    {"--out", "DIR", "where the comparison's folder is made (default: runs)"},
    {"--format", "REPORT", "what is printed at the end: terminal (default), json or html"},
    {"--fresh", NULL, "make the control runs again, whatever the cache holds"},
    {"--strict", NULL, "the exit code is that of run: whatever has not passed counts"},
    {0},
};

static int take_options(struct compare_request *q, const struct arguments *a) {
    const char *out = arguments_value(a, "--out"), *format = arguments_value(a, "--format");
    int64_t number;
    q->out = out ? out : "runs";
    q->format = format ? format : "terminal";
    q->seed = arguments_value(a, "--seed");
    q->fresh = arguments_value(a, "--fresh");
    q->strict = arguments_value(a, "--strict");
    q->sets = arguments_all(a, "--set");
    if (!comparison_report_find(q->format))
        return verb_usage_error(a->verb, "--format %s: terminal, json or html", q->format);
    if (q->seed && !str_to_i64(q->seed, 0, INT64_MAX, &number))
        return verb_usage_error(a->verb, "--seed %s: write a whole number, 0 or more", q->seed);
    const char **launchers = arguments_all(a, "--launcher");
    int r = 0;
    for (size_t i = 0; launchers[i] && r == 0; i++)
        r = add_launcher(q, a->verb, launchers[i]);
    free(launchers);
    if (r == 0 && q->launchers_n < 2)
        r = verb_usage_error(a->verb, "name at least two launchers, as in --launcher rankrun "
                                      "--launcher torchrun");
    return r;
}

static int parse(struct compare_request *q, const struct arguments *a) {
    int r = take_options(q, a);
    q->files.trusted = true;
    for (size_t i = 0; i < a->files_n && r == 0; i++)
        r = files_add(&q->files, a->verb, a->files[i]);
    if (r == 0 && !q->files.n)
        r = verb_usage_error(a->verb, "name a scenario file or a folder of them");
    return r;
}

/* ---- everything is read and planned before anything is done ---- */

/* The overrides of a column, NULL-ended. */
static const char **sets_of(struct compare_request *q, const struct comparison_launcher *l) {
    const char *own[3] = {arguments_set(&q->arena, "launcher", l->words)};
    if (l->rootfs)
        own[1] = arguments_set(&q->arena, "cluster.rootfs", l->rootfs);
    return sets_join(&q->arena, q->sets, own);
}

/* Whether this host can run it at all; fills the cell where it cannot. */
static int check_host(struct compare_request *q, struct plan *p, struct comparison_launcher *l,
                      struct comparison_cell *cell) {
    struct err err = {0};
    BUF_FINI struct buf outside = {0};
    plan_put_outside(p, &q->said, &outside);
    fputs(buf_str(&outside), stderr);
    int r = plan_check_host(p, &err);
    if (r == -ENOENT) {
        fprintf(stderr, "rankquake compare: %s under %s: %s\n", p->scenario->file, l->name,
                err.msg);
        return EXIT_USAGE_ERROR;
    }
    if (*p->python.torch)
        l->version =
            arena_printf(&q->arena, "torch %s, Python %s", p->python.torch, p->python.version);
    else if (str_eq(l->words, "rankrun"))
        l->version = "version " RANKQUAKE_VERSION;
    cell->exit_code = r ? EXIT_SKIPPED : -1;
    cell->why = r ? arena_strdup(&q->arena, err.msg) : "";
    return 0;
}

static int prepare(struct compare_request *q, size_t row, size_t column) {
    struct comparison_launcher *l = &q->launchers[column];
    struct comparison_row *r = &q->comparison.rows[row];
    struct diagnostics d = {0};
    struct scenario *s = plan_load(q->files.v[row], sets_of(q, l), &d);
    struct plan *p = s ? plan_make(s, s->has_seed ? s->seed : 1, &d) : NULL;
    int code = EXIT_USAGE_ERROR;
    if (p) {
        r->scenario = arena_strdup(&q->arena, s->name);
        r->about = s->about ? arena_strdup(&q->arena, s->about) : "";
        code = check_host(q, p, l, &r->cells[column]);
    } else {
        fprintf(stderr, "under %s:\n%s", l->name, buf_str(&d.out));
    }
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
    return code;
}

static int prepare_all(struct compare_request *q) {
    struct comparison *c = &q->comparison;
    int code = 0;
    *c = (struct comparison){.launchers = q->launchers,
                             .launchers_n = q->launchers_n,
                             .rows = arena_array(&q->arena, struct comparison_row, q->files.n),
                             .rows_n = q->files.n};
    for (size_t i = 0; i < c->rows_n; i++) {
        c->rows[i].cells = arena_array(&q->arena, struct comparison_cell, q->launchers_n);
        for (size_t k = 0; k < q->launchers_n; k++) {
            int r = prepare(q, i, k);
            code = r ? r : code;
        }
    }
    return code;
}

static const char *command_of(struct compare_request *q, char **argv) {
    BUF_FINI struct buf text = {0};
    buf_puts(&text, "rankquake ");
    typed_print(argv, &text);
    return arena_strdup(&q->arena, buf_str(&text));
}

/* ---- running ---- */

static int make_dir(struct compare_request *q) {
    char when[32];
    time_t now = time(NULL);
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", localtime(&now));
    for (int i = 1; i < 1000; i++) {
        snprintf(q->dir, sizeof(q->dir), i > 1 ? "%s/compare-%s-%d" : "%s/compare-%s", q->out, when,
                 i);
        mkdir(q->out, 0777);
        if (mkdir(q->dir, 0777) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    fprintf(stderr,
            "rankquake compare: make the folder %s: %s; another place is named with --out\n",
            q->dir, strerror(errno));
    return EXIT_BROKEN;
}

static FILE *stage_of(const struct compare_request *q) {
    return str_eq(q->format, "terminal") ? stdout : stderr;
}

static int run_one(struct compare_request *q, size_t row, size_t column) {
    struct comparison_row *r = &q->comparison.rows[row];
    struct comparison_cell *cell = &r->cells[column];
    struct cell_spec spec = {
        .file = q->files.v[row],
        .dir = q->dir,
        .name = arena_printf(&q->arena, "%s.%s", r->scenario, q->launchers[column].name),
        .seed = q->seed,
        .sets = sets_of(q, &q->launchers[column]),
        .fresh = q->fresh};
    BUF_FINI struct buf text = {0};
    fprintf(stage_of(q), "%s under %s\n", r->scenario, q->launchers[column].name);
    fflush(stage_of(q));
    cell_run(&spec, &q->arena, cell);
    comparison_put_cell(cell, &text);
    fprintf(stage_of(q), "    %s, after %.0f s%s%s\n", buf_str(&text), (double)cell->took_ns / 1e9,
            cell->judged ? "" : ": ", cell->judged ? "" : cell->why);
    return cell->exit_code;
}

static volatile sig_atomic_t interrupted;

/* Ctrl-C is the run's to handle; it ends the comparison after it, and when there is none. */
static void on_interrupt(int signo) {
    interrupted = signo;
}

static void run_all(struct compare_request *q) {
    struct sigaction taken = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &taken, NULL);
    bool stopped = false;
    for (size_t i = 0; i < q->comparison.rows_n; i++)
        for (size_t k = 0; k < q->launchers_n; k++) {
            struct comparison_cell *cell = &q->comparison.rows[i].cells[k];
            if (stopped || interrupted)
                *cell = (struct comparison_cell){.exit_code = EXIT_INTERRUPTED, .why = "not begun"};
            else if (cell->exit_code < 0)
                stopped = run_one(q, i, k) == EXIT_INTERRUPTED;
        }
}

/* ---- the whole ---- */

/* A launcher that fails a scenario is what was asked about, so it is no error of the comparison. */
static int exit_code_of(const struct compare_request *q) {
    size_t n = 0;
    int *codes = mem_array(int, q->comparison.rows_n * q->launchers_n + 1);
    for (size_t i = 0; i < q->comparison.rows_n; i++)
        for (size_t k = 0; k < q->launchers_n; k++) {
            int code = q->comparison.rows[i].cells[k].exit_code;
            bool soft = code == EXIT_INCONCLUSIVE || code == EXIT_SKIPPED;
            codes[n++] = code == EXIT_FAIL && !q->strict ? EXIT_PASS
                         : soft && q->strict             ? EXIT_FAIL
                                                         : code;
        }
    int code = suite_exit_code(codes, n);
    for (size_t i = 0; i < n && code == EXIT_PASS; i++)
        code = codes[i]; /* one that could not be run is a hole in the table */
    free(codes);
    return code;
}

static int report(const struct compare_request *q) {
    const struct report_style plain = {.unicode = true};
    int code = 0;
    for (size_t i = 0; comparison_reports[i]; i++)
        if (cell_write_report(q->dir, comparison_reports[i], &q->comparison, &plain) < 0)
            code = EXIT_BROKEN;
    struct report_style style = report_style_of(stdout);
    BUF_FINI struct buf text = {0};
    comparison_report_find(q->format)->render(&q->comparison, &style, &text);
    if (str_eq(q->format, "terminal"))
        putchar('\n');
    printing_put(stdout, buf_str(&text), text.len);
    if (str_eq(q->format, "terminal"))
        printf("report: %s/comparison.html\n", q->dir);
    return code;
}

static int main_compare(const struct arguments *a) {
    struct compare_request *q = mem_new(struct compare_request);
    int code = parse(q, a);
    if (code == 0)
        code = prepare_all(q);
    q->comparison.command = command_of(q, a->argv);
    if (code == 0)
        code = make_dir(q);
    if (code == 0) {
        run_all(q);
        code = report(q);
        code = code ? code : exit_code_of(q);
    }
    files_fini(&q->files);
    texts_fini(&q->said);
    arena_fini(&q->arena);
    free(q->sets);
    free(q);
    return code;
}

const struct verb verb_compare = {
    .name = "compare",
    .usage = "compare --launcher X --launcher Y ... FILE|DIR... [options]",
    .summary =
        "run scenarios under several launchers, one after the other, and show where they differ",
    .example =
        "compare --launcher rankrun --launcher torchrun scenarios/restart/worker-killed.yaml",
    .operands = "SCENARIO|FILE",
    .options = options,
    .run = main_compare,
};
