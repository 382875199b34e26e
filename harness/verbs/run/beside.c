#include "harness/verbs/run/beside.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/play/budget.h"
#include "harness/play/jobs.h"
#include "harness/verbs/run/host.h"
#include "harness/verbs/run/todo.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

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

/* What it took the last time, else what its job takes undisturbed, else a guess. With a budget the order
 * is that of what is most worth it: 0. */
static int64_t expected_ns(const struct run_request *q, const struct selected *l) {
    struct control c;
    char key[65], dir[PATH_MAX];
    int64_t ns;
    if (q->budget_ns)
        return 0;
    if (budget_measured(l, &ns))
        return ns;
    if (control_key(l->plan, q->suite.bin, key, NULL) == 0 &&
        control_dir(key, dir, sizeof(dir), NULL) == 0 && control_read(dir, &c, NULL) == 0)
        return c.start_ns + c.train_ns;
    return budget_guess_ns(l->scenario);
}

/* ret and of may be NULL. */
static size_t list_jobs(const struct run_request *q, struct job *ret, const struct selected **of) {
    size_t n = 0;
    for (size_t i = 0; i < q->selection.n; i++) {
        const struct selected *l = &q->selection.v[i];
        int64_t ns = ret ? expected_ns(q, l) : 0;
        for (uint64_t seed = l->seed_first; seed <= l->seed_last && !l->left_out; seed++)
            for (int64_t k = 0; k < todo_each(q, l); k++, n++)
                if (ret) {
                    ret[n] = (struct job){.file = l->file,
                                          .sets = l->sets,
                                          .seed = seed,
                                          .code = -1,
                                          .alone = l->alone,
                                          .expected_ns = ns};
                    of[n] = l;
                }
    }
    return n;
}

/* ---- control runs ---- */

/* Those that are made side by side, and which files tell them from others. */
struct controls {
    struct job *v;
    const char **files;
    size_t n;
};

static void put_file_of(struct buf *out, const char *word) {
    const char *value = strchr(word, '=');
    if (file_exists(word) || (value && file_exists(value + 1)))
        buf_printf(out, "%s\n", word);
}

/* What a job names of the tree: those that name the same read the same, as far as anybody can tell. */
static const char *files_of(struct run_request *q, const struct job_spec *job) {
    BUF_FINI struct buf out = {0};
    buf_printf(&out, "%s\n", job->run[0]);
    for (size_t i = 1; i < job->run_n; i++)
        put_file_of(&out, job->run[i]);
    for (size_t i = 0; i < job->env_n; i++)
        buf_printf(&out, "%s=%s\n", job->env[i].key, job->env[i].value);
    return arena_strdup(&q->arena, buf_str(&out));
}

/* Control runs are made one after another before all else: each writes down what files of the tree its job
 * opens, and nobody can tell whose opens those beside it are; and how fast its job is, undisturbed. Under a
 * scheduler of their own they mostly wait for that: there those that name the same files are made side by side,
 * unless times are judged. */
static bool may_be_beside(const struct selected *l) {
    return l->scenario->cluster.scheduler != SCHEDULER_NONE && !suite_judges_pace(l->scenario);
}

static void add_control(struct run_request *q, const struct selected *l, uint64_t seed,
                        struct controls *to) {
    to->files[to->n] = files_of(q, &l->scenario->job);
    to->v[to->n++] = (struct job){.file = l->file,
                                  .sets = l->sets,
                                  .seed = seed,
                                  .code = -1,
                                  .expected_ns = expected_ns(q, l)};
}

/* Scenarios of one job share one. False: it was interrupted. */
static bool prepare_one(struct run_request *q, struct selected *l, struct controls *beside) {
    char before[65] = "", key[65];
    bool goes_on = true;
    if (plan_check_host(l->plan, NULL) < 0)
        return true; /* its run says why */
    host_name_commands(l);
    for (uint64_t seed = l->seed_first; seed <= l->seed_last && goes_on; seed++) {
        l->plan->seed = seed;
        if (control_key(l->plan, q->suite.bin, key, NULL) < 0 || str_eq(key, before))
            break;
        str_copy(before, sizeof(before), key);
        bool is_made = texts_has(&q->prepared, key);
        if (is_made)
            continue;
        texts_add(&q->prepared, "%s", key);
        if (beside && may_be_beside(l))
            add_control(q, l, seed, beside);
        else
            goes_on = suite_prepare(l->plan, &q->suite) != EXIT_INTERRUPTED;
    }
    l->plan->seed = l->seed_first;
    return goes_on;
}

static void on_prepared(void *arg, struct job *j) {
    (void)arg, (void)j; /* what is wrong with it each run tells that needs it */
}

/* Of one set of files after another. */
static bool prepare_beside(struct run_request *q, const struct controls *c) {
    const char *const options[] = {"--out", q->suite.out, "--control",
                                   q->suite.fresh ? "--fresh" : NULL, NULL};
    struct jobs_spec spec = {.at_once = (int)q->jobs, .options = options, .ended = on_prepared};
    struct job *alike = arena_array(&q->arena, struct job, c->n + 1);
    bool *done = arena_array(&q->arena, bool, c->n + 1);
    struct err ignored; /* the runs come to the same */
    for (size_t first = 0; first < c->n; first++) {
        size_t n = 0;
        for (size_t i = first; i < c->n; i++)
            if (!done[i] && str_eq(c->files[i], c->files[first])) {
                alike[n++] = c->v[i];
                done[i] = true;
            }
        if (n && jobs_run(alike, n, &spec, &ignored) == 0)
            for (size_t i = 0; i < n; i++)
                if (alike[i].code == EXIT_INTERRUPTED)
                    return false;
    }
    return true;
}

static bool prepare_all(struct run_request *q, bool beside) {
    size_t most = list_jobs(q, NULL, NULL) + 1;
    struct controls c = {.v = arena_array(&q->arena, struct job, most),
                         .files = arena_array(&q->arena, const char *, most)};
    for (size_t i = 0; i < q->selection.n; i++)
        if (!q->selection.v[i].left_out && !prepare_one(q, &q->selection.v[i], beside ? &c : NULL))
            return false;
    return prepare_beside(q, &c);
}

void beside_prepare(struct run_request *q, struct run_tally *t) {
    if (!prepare_all(q, false))
        tally_add(t, EXIT_INTERRUPTED, &q->selection.v[0]);
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
    todo_less(s->q, s->of[j - s->jobs]);
    todo_tell(s->q, s->of[j - s->jobs], ++s->done);
}

void beside_run(struct run_request *q, struct run_tally *t) {
    struct err err = {0};
    size_t n = list_jobs(q, NULL, NULL);
    struct job *jobs = arena_array(&q->arena, struct job, n + 1);
    const struct selected **of = arena_array(&q->arena, const struct selected *, n + 1);
    struct side_by_side s = {.q = q, .jobs = jobs, .of = of};
    struct jobs_spec spec = {
        .at_once = (int)q->jobs, .options = options_of(q), .shown = on_shown, .arg = &s};
    todo_tell(q, NULL, 0);
    if (!prepare_all(q, true)) {
        tally_add(t, EXIT_INTERRUPTED, &q->selection.v[0]);
        return;
    }
    list_jobs(q, jobs, of); /* when it is known how long they take undisturbed */
    if (jobs_run(jobs, n, &spec, &err) < 0) {
        fprintf(stderr, "rankquake run: %s\n", err.msg);
        tally_add(t, EXIT_BROKEN, &q->selection.v[0]);
    }
    for (size_t i = 0; i < n; i++)
        if (jobs[i].code >= 0)
            tally_add(t, jobs[i].code, of[i]);
}
