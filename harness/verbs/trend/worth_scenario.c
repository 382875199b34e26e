#include "harness/verbs/trend/worth_scenario.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "faults/fault.h"
#include "harness/plan/plan.h"
#include "harness/play/suite.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* So many times the job may be started again, where trouble follows trouble. */
enum { RESTARTS_LEAST = 3 };

/* ---- the job ---- */

static bool tells_resume(const struct history *h) {
    history_each(r, h) {
        if (r->source == SOURCE_JOB && record_is(r, "resume"))
            return true;
    }
    return false;
}

int worth_job_take(struct worth_job *ret, const struct recorded_run *run, struct err *err) {
    struct control c;
    struct worth_job j = {.base = control_scenario(run->scenario),
                          .resumes = tells_resume(run->history)};
    int nodes =
        j.base.job.max_nodes < j.base.cluster.nodes ? j.base.job.max_nodes : j.base.cluster.nodes;
    control_take(run->history, run->rounds, &c);
    /* Its texts are c's. */
    j.run = suite_generate_run(&c);
    j.run.saves = arena_strdup(&j.arena, c.saves);
    j.cluster = (struct generated){
        .nodes = nodes, .min_nodes = j.base.job.min_nodes, .workers = j.base.job.workers_per_node};
    if (j.base.job.max_restarts < RESTARTS_LEAST)
        j.base.job.max_restarts = RESTARTS_LEAST;
    if (!generate_moment(&j.run, &j.moment, err)) {
        arena_fini(&j.arena);
        return err_wrap(err, "%s", run->dir);
    }
    *ret = j;
    return 0;
}

void worth_job_fini(struct worth_job *j) {
    arena_fini(&j->arena);
}

static bool same_words(const char *const *a, const char *const *b) {
    size_t i = 0;
    for (; a && b && a[i] && b[i]; i++)
        if (!str_eq(a[i], b[i]))
            return false;
    return a && b && !a[i] && !b[i];
}

bool worth_same_job(const struct scenario *a, const struct scenario *b) {
    return same_words(a->job.run, b->job.run);
}

/* ---- the fault ---- */

static struct generate_known known_of(const struct fault *f) {
    struct fault_course c = {.lasts_ns = 0};
    if (!f->course)
        c = fault_course(f, NULL);
    return (struct generate_known){f->name,    f->summary, f->example,
                                   f->effects, c.lasts_ns, c.follow_ns};
}

/* NULL: it cannot be said of this fault. */
static const char *target_words(const struct worth_job *j, const struct worth *w) {
    bool workers = faults[w->fault]->targets & TARGET_WORKER;
    switch (w->target) {
    case TROUBLE_RANK_0:
        return workers ? "rank 0" : "node of rank 0";
    case TROUBLE_ANOTHER:
        return j->cluster.nodes < 2 ? NULL : workers ? "n%/0" : "n%";
    case TROUBLE_SEVERAL:
        return j->cluster.nodes < 3 ? NULL : workers ? "random 2 of workers" : "random 2 of nodes";
    case TROUBLE_STORE:
    case TROUBLE_TARGETS:
        break;
    }
    return NULL;
}

/* The entry with that behind its on:; NULL: it has none. */
static const char *aimed(struct arena *a, const char *entry, const char *at) {
    const char *on = strstr(entry, ", on: ");
    if (!on)
        return NULL;
    const char *rest = on + strlen(", on: ");
    rest += strcspn(rest, ",");
    return arena_printf(a, "%.*s, on: %s%s", (int)(on - entry), entry, at, rest);
}

static bool aim(struct worth_job *j, const struct worth *w, struct generate_fault *f) {
    if (w->target == TROUBLE_STORE)
        return faults[w->fault]->targets == TARGET_STORE;
    const char *at = target_words(j, w);
    f->entry = at ? aimed(&j->arena, f->entry, at) : NULL;
    return f->entry;
}

/* After a worker that is killed the job comes to these phases again, and can be hit in them. */
static void after_a_kill(struct worth_job *j, struct generate_fault *f, const char *when) {
    f->before = arena_printf(&j->arena, "fault: %s, on: random of workers",
                             fault_that(EFFECT_ENDS_WORKER | EFFECT_LOUD));
    f->when = when;
    if (f->outcome == RESTARTS || f->outcome == MAY_RESTART)
        f->outcome = COMES_BACK;
}

static bool time_it(struct worth_job *j, const struct worth *w, struct generate_fault *f) {
    switch (w->phase) {
    case TROUBLE_TRAINING:
        return true;
    case TROUBLE_SAVING:
        if (!j->run.saves || !*j->run.saves)
            return false;
        f->when = arena_printf(&j->arena, "{event: %s, nth: 2%s}", j->run.saves,
                               j->run.saves_told ? "" : ", hold: false");
        return true;
    case TROUBLE_RECOVERING:
        after_a_kill(j, f, "{after: before}");
        return true;
    case TROUBLE_STARTING:
        after_a_kill(j, f, "{after: before, round: 2}");
        return true;
    case TROUBLE_LOADING:
        after_a_kill(j, f, "{after: before, event: resume}");
        return j->resumes;
    case TROUBLE_MEETING:
    case TROUBLE_ENDING:
    case TROUBLE_PHASES:
        break;
    }
    return false;
}

/* On files of the job: when they are written or read is what decides. */
static bool put_on_disk(struct worth_job *j, const struct worth *w, struct generate_fault *f) {
    bool lasts = f->lasts_ns > 0;
    generate_on_disk(&j->arena, &j->base, &j->run, f);
    return !f->on_disk && w->target == TROUBLE_RANK_0 &&
           w->phase == (lasts && f->when ? TROUBLE_SAVING : TROUBLE_TRAINING);
}

static bool survives(const struct worth_job *j, const struct worth *w,
                     const struct generate_fault *f) {
    bool moves_node = f->outcome == LOSES_NODE || f->outcome == TAKES_NODE;
    return !moves_node || (j->cluster.min_nodes < j->cluster.nodes && w->target != TROUBLE_SEVERAL);
}

/* False: it cannot be said of this job. */
static bool fault_of(struct worth_job *j, const struct worth *w, struct generate_fault *ret) {
    const struct fault *fault = faults[w->fault];
    struct generate_known known = known_of(fault);
    if (fault->region || fault->reads || fault->targets == TARGET_RACK)
        return false; /* that asks for more than a job says of itself */
    *ret = generate_also(&j->arena, &known);
    bool own_moment = ret->when;
    if (own_moment || !survives(j, w, ret))
        return false;
    bool said = ret->on_disk ? put_on_disk(j, w, ret) : aim(j, w, ret) && time_it(j, w, ret);
    ret->name = worth_name(j, w);
    ret->about =
        arena_printf(&j->arena, "%s on %s while %s: %s", fault->name,
                     trouble_target_name(w->target), trouble_phase_name(w->phase), fault->summary);
    ret->restarts = 0;
    return said;
}

const char *worth_name(struct worth_job *j, const struct worth *w) {
    const char *target = trouble_target_name(w->target);
    return arena_printf(&j->arena, "%s-%s-%s", faults[w->fault]->name,
                        w->target == TROUBLE_RANK_0 ? "rank-0" : target,
                        trouble_phase_name(w->phase));
}

/* ---- the scenario ---- */

static void put(const struct worth_job *j, const struct generate_fault *f, struct buf *out) {
    generate_scenario(f, &j->cluster, &j->base, &j->run, &j->moment, out);
}

/* As run would: read and planned. */
static bool loads(const struct buf *text) {
    FILE_CLOSE int fd = memfd_create("scenario", MFD_CLOEXEC);
    char path[64];
    struct diagnostics d = {0};
    if (fd < 0 || file_write_all(fd, text->data, text->len, NULL) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return false;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct scenario *s = plan_load(path, NULL, &d);
    if (s)
        plan_free(plan_make(s, s->seed, &d));
    bool good = s && !d.errors;
    scenario_free(s);
    diagnostics_fini(&d);
    return good;
}

bool worth_is_written(const void *job, const struct worth *w) {
    struct worth_job *j = (struct worth_job *)(uintptr_t)job; /* its arena alone changes */
    BUF_FINI struct buf text = {0};
    struct generate_fault f;
    if (!fault_of(j, w, &f))
        return false;
    put(j, &f, &text);
    return loads(&text);
}

void worth_write(const struct worth_job *job, const struct worth *w, struct buf *out) {
    struct worth_job *j = (struct worth_job *)(uintptr_t)job;
    struct generate_fault f;
    if (fault_of(j, w, &f))
        put(j, &f, out);
}
