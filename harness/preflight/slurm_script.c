#include "harness/preflight/slurm_script.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SENTENCE_MAX = 320 };

struct script_reading {
    struct arena arena;
    slurm_betrayal_fn *fn;
    void *arg;
    int n;               /* said */
    bool keeps, elastic; /* sbatch is told to; a step could go on with fewer hosts */
    const char *tasks;   /* of sbatch, a host; NULL: it does not say */
    int steps;           /* that srun starts rankrun in */
};

static void say(struct script_reading *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct script_reading *r, const char *fmt, ...) {
    char text[SENTENCE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    r->fn(r->arg, text);
    r->n++;
}

/* ---- words ---- */

/* Parted at blanks; quotes that belong to the shell are taken off the ends. */
static char **words_of(struct script_reading *r, const char *line, size_t *ret_n) {
    size_t n = 0, kept = 0;
    char *copy = arena_strdup(&r->arena, line);
    for (char *c = copy; *c; c++)
        if (strchr("\t\"'", *c))
            *c = ' ';
    char **v = str_split(&r->arena, copy, ' ', &n);
    for (size_t i = 0; i < n; i++)
        if (*v[i])
            v[kept++] = v[i];
    *ret_n = kept;
    return v;
}

/* The value of --NAME VALUE or --NAME=VALUE; NULL: it is not among them. */
static const char *value_of(char *const *v, size_t n, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(v[i], name, length) == 0 && v[i][length] == '=')
            return v[i] + length + 1;
        if (str_eq(v[i], name))
            return i + 1 < n ? v[i + 1] : "";
    }
    return NULL;
}

/* -k among the letters of "-Qk"; --no-kill, but not --no-kill=off. */
static bool says_no_kill(char *const *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool letters =
            v[i][0] == '-' && v[i][1] != '-' && strspn(v[i] + 1, "QuvXlOsHEZk") == strlen(v[i] + 1);
        if (str_eq(v[i], "--no-kill") || (letters && strchr(v[i], 'k')))
            return true;
    }
    return false;
}

/* Where a program is called so, by whatever path; n: nowhere. */
static size_t find_program(char *const *v, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(str_base(v[i]), name))
            return i;
    return n;
}

/* ---- lines ---- */

static bool are_several(const char *tasks) {
    int64_t is;
    return tasks && str_to_i64(tasks, 2, INT32_MAX, &is);
}

static void read_order(struct script_reading *r, const char *line) {
    size_t n;
    char **v = words_of(r, line + strlen("#SBATCH"), &n);
    const char *tasks = value_of(v, n, "--ntasks-per-node");
    r->keeps |= says_no_kill(v, n);
    r->tasks = tasks ? tasks : r->tasks;
}

/* From srun to rankrun are srun's words, then come rankrun's. */
static void read_step(struct script_reading *r, const char *line, size_t at) {
    size_t n;
    char **v = words_of(r, line, &n);
    size_t srun = find_program(v, n, "srun"), agent = find_program(v, n, "rankrun");
    if (agent < srun) /* `rankrun outcome srun ... rankrun ...` */
        agent = srun + find_program(v + srun, n - srun, "rankrun");
    if (srun == n || agent >= n)
        return;
    char *const *own = v + srun;
    const char *nodes = value_of(v + agent, n - agent, "--nnodes");
    const char *tasks = value_of(own, agent - srun, "--ntasks-per-node");
    bool elastic = nodes && strchr(nodes, ':');
    r->steps++;
    r->elastic |= elastic;
    if (elastic && !says_no_kill(own, agent - srun))
        say(r,
            "srun in line %zu is without --no-kill: when a node fails Slurm ends the step, which "
            "could go "
            "on with the others (--nnodes %s)",
            at, nodes);
    tasks = tasks ? tasks : r->tasks;
    if (are_several(tasks))
        say(r,
            "srun in line %zu starts %s agents on each host, which rankrun refuses: give it "
            "--ntasks-per-node=1, and the workers to rankrun, by --nproc-per-node",
            at, tasks);
}

/* A line with those that it goes on in; from is behind them then. */
static const char *join(struct script_reading *r, char *const *lines, size_t n, size_t *from) {
    BUF_FINI struct buf whole = {0};
    for (;;) {
        const char *line = lines[(*from)++];
        size_t length = strlen(line);
        bool goes_on = length && line[length - 1] == '\\' && *from < n;
        buf_put(&whole, line, goes_on ? length - 1 : length);
        if (!goes_on)
            return arena_strdup(&r->arena, buf_str(&whole));
    }
}

int slurm_script_judge(const char *text, slurm_betrayal_fn *fn, void *arg) {
    struct script_reading r = {.fn = fn, .arg = arg};
    size_t n = 0;
    char **lines = str_split(&r.arena, text, '\n', &n);
    for (size_t i = 0; i < n;) {
        size_t at = i + 1;
        const char *line = join(&r, lines, n, &i);
        if (str_starts(line, "#SBATCH"))
            read_order(&r, line);
        else if (line[strspn(line, " \t")] != '#')
            read_step(&r, line, at);
    }
    if (r.elastic && !r.keeps)
        say(&r, "it has no #SBATCH --no-kill: when a node fails Slurm ends the job, which could go "
                "on with "
                "the others");
    arena_fini(&r.arena);
    return r.steps ? r.n : -1;
}
