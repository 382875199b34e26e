#include "harness/verbs/run/beside.h"

#include "base/str.h"
#include "harness/play/budget.h"
#include "harness/play/jobs.h"
#include "harness/verbs/run/host.h"
#include "harness/verbs/run/todo.h"

#include <limits.h>
#include <stdio.h>

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

/* Control runs are made one after another before all else: each writes down what files of the tree its job
 * opens, and nobody can tell whose opens those beside it are. Scenarios of one job share one. False: it
 * was interrupted. */
static bool prepare_one(struct run_request *q, struct selected *l) {
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
    if (!prepare_all(q)) {
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
