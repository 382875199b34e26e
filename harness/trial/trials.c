#include "harness/trial/trials.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "harness/play/jobs.h"
#include "harness/run/presence.h"
#include "harness/trial/subject.h"
#include "harness/verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PRINTED_MAX = 1 << 20 };
static const uint64_t seed = 1;

struct one {
    struct fault_trial trial;
    size_t fault; /* its number */
    struct trial_outcome outcome;
    bool read;
};

struct trying_all {
    struct trials *t;
    struct arena *arena;
    struct folder dir;
    struct one *v;
    struct job *jobs; /* as v; code 0: it is not run */
    size_t n, done;
};

const char *trials_place(void) {
    return file_temp_base();
}

/* ---- before ---- */

static void make_all(struct trying_all *y, const bool *wanted) {
    const char *path = getenv("PATH");
    bool etcd = path && file_in_path(path, "etcd");
    y->t->outcomes = arena_array(y->arena, struct trial_outcome, faults_n);
    y->v = arena_array(y->arena, struct one, TRIALS_OF_FAULT * faults_n);
    y->jobs = arena_array(y->arena, struct job, TRIALS_OF_FAULT * faults_n);
    for (size_t i = 0; i < faults_n; i++) {
        struct fault_trial some[TRIALS_OF_FAULT];
        size_t n = wanted && !wanted[i] ? 0 : trials_of(y->arena, faults[i], etcd, some);
        y->t->outcomes[i].kind = TRIAL_UNTRIED;
        for (size_t k = 0; k < n; k++)
            y->v[y->n++] = (struct one){.trial = some[k], .fault = i};
    }
}

/* What would keep a run from being made is asked as a run asks it. */
static int check(const char *file, const char *const *sets, struct err *err) {
    struct diagnostics d = {0};
    struct scenario *s = plan_load(file, sets, &d);
    struct plan *p = s ? plan_make(s, seed, &d) : NULL;
    int r = p ? plan_check_host(p, err) : err_say(err, -EINVAL, "%s", buf_str(&d.out));
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
    return r;
}

/* A plan names the entry and its nodes, "it (net-delay), with nodes that are processes: ...", of
 * which there are no others here. */
static const char *reason_of(struct arena *a, const char *text) {
    const char *colon = strstr(text, ": ");
    return arena_strdup(a, str_starts(text, TRIAL_ID " (") && colon ? colon + 2 : text);
}

static int prepare(struct trying_all *y, size_t i, const char *const *sets, struct err *err) {
    BUF_FINI struct buf text = {0};
    struct one *o = &y->v[i];
    struct err why = {0};
    const char *name = arena_printf(y->arena, "%s.yaml", o->trial.name);
    trial_scenario(&o->trial, y->t->program, &text);
    int r = folder_write(&y->dir, name, text.data, text.len, err);
    if (r)
        return r;
    const char *file = arena_printf(y->arena, "%s/%s", y->dir.path, name);
    y->jobs[i] =
        (struct job){.file = file,
                     .sets = sets,
                     .seed = seed,
                     .printed = arena_printf(y->arena, "%s/%s.txt", y->dir.path, o->trial.name),
                     .code = -1};
    if (check(file, sets, &why) != 0) {
        o->outcome = (struct trial_outcome){
            .kind = TRIAL_CANNOT, .refused = true, .why = reason_of(y->arena, why.msg)};
        o->read = true;
        y->jobs[i].code = EXIT_SKIPPED;
        y->done++;
    }
    return 0;
}

/* ---- after ---- */

static const char *find_run(struct trying_all *y, const char *name) {
    const char *prefix = arena_printf(y->arena, "%s-%llu-", name, (unsigned long long)seed);
    TEXTS_FINI struct texts names = {0};
    const char *found = NULL;
    folder_list(&y->dir, ".", NULL, &names, NULL);
    for (size_t i = 0; i < names.n; i++)
        if (str_starts(names.v[i], prefix))
            found = arena_strdup(y->arena, names.v[i]);
    return found;
}

/* The last line that a run which came to nothing has printed. */
static const char *last_words(struct trying_all *y, const struct one *o) {
    BUF_FINI struct buf text = {0};
    const char *name = arena_printf(y->arena, "%s.txt", o->trial.name), *last = NULL;
    folder_read_last(&y->dir, name, 1, PRINTED_MAX, &text, NULL);
    if (text.len)
        last = arena_strndup(y->arena, buf_str(&text), strcspn(buf_str(&text), "\n"));
    return last && *last ? last : "its run has said nothing";
}

static void read_one(struct trying_all *y, struct one *o, int code) {
    const char *run = find_run(y, o->trial.name);
    const char *file = run ? arena_printf(y->arena, "%s/history.jsonl", run) : NULL;
    struct history h = {0};
    struct err err = {0};
    int fd = file && code != EXIT_BROKEN ? folder_open_file(&y->dir, file, &err) : -1;
    o->read = true;
    if (fd < 0 || history_load_from(&h, fd, file, &err) != 0) {
        o->outcome = (struct trial_outcome){.kind = TRIAL_UNTRIED, .why = last_words(y, o)};
        return;
    }
    struct trial_outcome out = trial_read(y->arena, o->trial.fault, &h);
    out.why = out.why ? arena_strdup(y->arena, out.why) : NULL;
    out.seen = out.seen ? arena_strdup(y->arena, out.seen) : NULL;
    o->outcome = out;
    history_fini(&h);
}

static void on_ended(void *arg, struct job *j) {
    struct trying_all *y = arg;
    if (j->code == EXIT_INTERRUPTED)
        return;
    read_one(y, &y->v[j - y->jobs], j->code);
    y->done++;
    if (y->t->told)
        y->t->told(y->t->arg, y->done, y->n);
}

/* A fault on the store has one more of another store. */
static void sum_up(struct trying_all *y) {
    for (size_t i = 0; i < y->n; i++) {
        struct one *o = &y->v[i];
        struct trial_outcome *sum = &y->t->outcomes[o->fault];
        bool second = i && y->v[i - 1].fault == o->fault;
        if (!o->read)
            o->outcome.kind = TRIAL_UNTRIED;
        *sum = second ? trial_both(y->arena, *sum, o->outcome, "etcd") : o->outcome;
        bool alone = o->trial.fault->targets & TARGET_STORE && !o->trial.etcd &&
                     (i + 1 == y->n || y->v[i + 1].fault != o->fault);
        if (alone && sum->kind == TRIAL_WORKS) {
            sum->kind = TRIAL_LESS;
            sum->why = "tried on rankrun's own store alone, as there is no etcd in PATH";
            sum->fix = "install etcd, or put it into PATH";
        }
    }
}

/* ---- the whole ---- */

static int make_folder(struct trying_all *y, struct err *err) {
    char *path = arena_printf(y->arena, "%s/" TRIALS_FOLDER "XXXXXX", trials_place());
    struct presence own;
    if (!mkdtemp(path))
        return err_set(err, -errno, "make a folder in %s for what is tried", trials_place());
    int r = folder_open(&y->dir, path, err);
    presence_own(&own, y->t->keep);
    return r ? r : presence_write(&y->dir, &own, err);
}

static int run_all(struct trying_all *y, struct err *err) {
    const char *options[] = {"--alone", "--out", y->dir.path, NULL};
    struct jobs_spec spec = {
        .at_once = y->t->at_once, .options = options, .ended = on_ended, .arg = y};
    int r = jobs_run(y->jobs, y->n, &spec, err);
    for (size_t i = 0; i < y->n; i++)
        y->t->interrupted |= y->jobs[i].code == EXIT_INTERRUPTED || y->jobs[i].code < 0;
    return r;
}

int trials_run(struct trials *t, const bool *wanted, struct err *err) {
    struct trying_all y = {.t = t, .arena = &t->arena, .dir = FOLDER_NONE};
    int r = make_folder(&y, err);
    const char *sets[] = {arena_printf(&t->arena, "cluster.isolation=%s", t->isolation), NULL};
    if (r == 0)
        make_all(&y, wanted);
    for (size_t i = 0; i < y.n && r == 0; i++)
        r = prepare(&y, i, sets, err);
    r = r ? r : run_all(&y, err);
    if (r == 0)
        sum_up(&y);
    if (t->keep && y.dir.path) {
        presence_remove(&y.dir);
        t->dir = arena_strdup(&t->arena, y.dir.path);
    } else if (y.dir.path) {
        file_remove_tree(y.dir.path, NULL);
    }
    folder_close(&y.dir);
    return r;
}

void trials_fini(struct trials *t) {
    arena_fini(&t->arena);
}
