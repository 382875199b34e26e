/* Which trouble a job was never put through, and scenarios of the next that is worth it. */
#include "harness/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/texts.h"
#include "faults/fault.h"
#include "harness/trend/trouble.h"
#include "harness/verbs/trend/worth_scenario.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { NEXT = 5 };

struct coverage_request {
    struct trouble trouble;
    struct recording
        *last; /* the newest that could be read: the job that scenarios are written of */
    bool all;
};

/* ---- reading ---- */

static int read_runs(struct coverage_request *q, const struct arguments *a) {
    for (size_t i = 0; i < a->files_n; i++) {
        struct recording *r = mem_new(struct recording);
        BUF_FINI struct buf complaint = {0};
        struct recording_source from = {.dir = a->files[i]};
        if (recording_read(r, &from, &complaint) < 0) {
            fprintf(stderr, "rankquake coverage: %s", buf_str(&complaint));
            free(r);
            return EXIT_USAGE_ERROR;
        }
        if (q->last && !worth_same_job(q->last->scenario, r->scenario))
            fprintf(stderr,
                    "rankquake coverage: %s runs another command than %s: both are counted as one "
                    "job\n",
                    a->files[i], q->last->dir);
        trouble_add(&q->trouble, &r->run);
        if (q->last)
            recording_fini(q->last);
        free(q->last);
        q->last = r;
    }
    return 0;
}

/* ---- the table ---- */

/* The targets on which it was tried then: "0" rank 0, "a" another, "m" several, "s" store. */
static void put_cell(const struct trouble *t, size_t fault, enum trouble_phase p) {
    static const char letters[TROUBLE_TARGETS] = {'0', 'a', 'm', 's'};
    char text[TROUBLE_TARGETS + 1] = "";
    size_t n = 0;
    for (int on = 0; on < TROUBLE_TARGETS; on++)
        if (trouble_tried(t, fault, p, (enum trouble_target)on))
            text[n++] = letters[on];
    printf(" %-10s", n ? text : ".");
}

static bool is_told(const struct coverage_request *q, size_t fault) {
    return q->all || trouble_tried(&q->trouble, fault, TROUBLE_PHASES, TROUBLE_TARGETS);
}

static void print_family(const struct coverage_request *q, const char *family) {
    TEXTS_FINI struct texts never = {0};
    for (size_t f = 0; f < faults_n; f++) {
        if (!str_eq(fault_family(faults[f]), family))
            continue;
        if (!is_told(q, f)) {
            texts_add(&never, "%s", faults[f]->name);
            continue;
        }
        printf("  %-20s", faults[f]->name);
        for (int p = 0; p < TROUBLE_PHASES; p++)
            put_cell(&q->trouble, f, (enum trouble_phase)p);
        putchar('\n');
    }
    if (never.n)
        printf("  never tried:");
    for (size_t i = 0; i < never.n; i++)
        printf("%s %s", i ? "," : "", never.v[i]);
    if (never.n)
        putchar('\n');
}

static void print_table(const struct coverage_request *q) {
    static const char *const families[] = {"process", "node",  "network",  "clock",
                                           "disk",    "store", "scheduler"};
    printf("%zu run%s\n%-22s", q->trouble.runs, q->trouble.runs == 1 ? "" : "s", "");
    for (int p = 0; p < TROUBLE_PHASES; p++)
        printf(" %-10s", trouble_phase_name((enum trouble_phase)p));
    putchar('\n');
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
        puts(families[i]);
        print_family(q, families[i]);
    }
    puts("tried on: 0 rank 0, its node or agent; a another; m several; s the store; . never");
}

/* ---- what is next ---- */

static int write_next(const char *folder, const struct buf *text, const char *name,
                      struct err *err) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s.yaml", folder, name) >= (int)sizeof(path))
        return err_say(err, -ENAMETOOLONG, "%s/%s.yaml: the name is too long", folder, name);
    if (file_exists(path))
        return err_say(err, -EEXIST, "%s is there already: name another folder, or move it", path);
    int r = file_write_atomic(path, text->data, text->len, err);
    if (r == 0)
        printf("             %s\n", path);
    return r;
}

static int tell_next(const struct coverage_request *q, const char *folder, struct err *err) {
    struct worth next[NEXT];
    struct worth_job job;
    struct worth_filter filter = {worth_is_written, &job};
    int r = worth_job_take(&job, &q->last->run, err);
    if (r < 0)
        return r;
    size_t n = worth_choose(&q->trouble, &filter, next, NEXT);
    puts(n ? "\nworth trying next" : "\nnothing more can be written for this job");
    if (folder && n)
        r = file_make_dirs(folder, 0777, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        BUF_FINI struct buf text = {0};
        const char *name = worth_name(&job, &next[i]);
        printf("  %-10s %s on %s while %s: %s\n", fault_family(faults[next[i].fault]),
               faults[next[i].fault]->name, trouble_target_name(next[i].target),
               trouble_phase_name(next[i].phase), faults[next[i].fault]->summary);
        if (!folder)
            continue;
        worth_write(&job, &next[i], &text);
        r = write_next(folder, &text, name, err);
    }
    worth_job_fini(&job);
    return r;
}

static int coverage(const struct arguments *a) {
    struct coverage_request q = {.all = arguments_value(a, "--all")};
    struct err err = {0};
    int code = a->files_n ? 0 : verb_usage_error(a->verb, "of which runs?");
    if (code)
        return code;
    trouble_init(&q.trouble);
    code = read_runs(&q, a);
    if (code == 0) {
        print_table(&q);
        int r = tell_next(&q, arguments_value(a, "--write"), &err);
        code = r == -EEXIST || r == -ERANGE ? verb_usage_error(a->verb, "%s", err.msg)
               : r < 0                      ? verb_broken(a->verb, &err)
                                            : EXIT_PASS;
    }
    if (q.last)
        recording_fini(q.last);
    free(q.last);
    trouble_fini(&q.trouble);
    return code;
}

const struct verb verb_coverage = {
    .name = "coverage",
    .usage = "coverage RUN... [--all] [--write DIR]",
    .summary = "which faults never struck what of a job in which phase, and what to try next",
    .example = "coverage runs/tour-1-20260105-093000",
    .operands = "DIR",
    .options =
        (const struct verb_option[]){
            {"--all", NULL, "a line for each fault, those that were never tried too"},
            {"--write", "DIR", "write the next five as scenarios, which lint takes and run runs"},
            {0}},
    .run = coverage,
};
