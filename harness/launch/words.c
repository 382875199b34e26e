#include "harness/launch/words.h"

#include "base/str.h"

#include <stdarg.h>
#include <string.h>

void words_add(struct words *w, const char *word) {
    if (w->n + 1 >= w->cap) {
        w->cap = w->cap ? w->cap * 2 : 32;
        const char **grown = arena_array(w->arena, const char *, w->cap);
        if (w->n)
            memcpy(grown, w->v, w->n * sizeof(*grown));
        w->v = grown;
    }
    w->v[w->n++] = word;
}

void words_add_all(struct words *w, const char *const *words) {
    for (; words && *words; words++)
        words_add(w, *words);
}

void words_put(struct words *w, const char *fmt, ...) {
    BUF_FINI struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    words_add(w, arena_strdup(w->arena, buf_str(&text)));
}

enum run_form run_form_of(const char *const *run) {
    if (str_eq(run[0], "-m"))
        return RUN_MODULE;
    return str_ends(run[0], ".py") ? RUN_SCRIPT : RUN_PROGRAM;
}

void words_put_job(struct words *w, const struct launch *l) {
    const struct job_spec *job = &l->plan->scenario->job;
    if (l->plan->endpoint) {
        words_add(w, "--nnodes");
        words_put(w, "%d:%d", job->min_nodes, job->max_nodes);
        words_add(w, "--rdzv_id");
        words_add(w, l->plan->scenario->name);
        words_add(w, "--rdzv_backend");
        words_add(w, l->plan->backend);
        words_add(w, "--rdzv_endpoint");
        words_add(w, l->plan->endpoint);
    } else {
        words_add(w, "--standalone");
        if (job->rdzv_backend) {
            words_add(w, "--rdzv_backend");
            words_add(w, job->rdzv_backend);
        }
    }
    words_add(w, "--nproc_per_node");
    words_put(w, "%d", job->workers_per_node);
    words_add(w, "--max_restarts");
    words_put(w, "%d", job->max_restarts);
}

void words_put_worker(struct words *w, const struct launch *l) {
    if (run_form_of(l->run) == RUN_PROGRAM) {
        words_add(w, "--no_python");
        words_put(w, "%s/rankprobe", l->bin);
    }
    words_add_all(w, l->run);
}

const char *words_python(const struct plan *p) {
    return plan_python(&p->scenario->job, p->python.path ? p->python.path : "python3");
}

const char *const *words_worker_env(struct arena *a, const struct launch *l) {
    struct words w = {.arena = a};
    if (run_form_of(l->run) != RUN_PROGRAM) {
        words_put(&w, "PYTHON_EXEC=%s/rankprobe", l->bin);
        words_put(&w, "RANKQUAKE_PYTHON=%s", words_python(l->plan));
    }
    return w.v;
}
