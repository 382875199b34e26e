#include "harness/verbs/run/telling.h"

#include "base/str.h"

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

void telling_end(struct run_request *q, const struct run_tally *t) {
    pipeline_take_new(&q->pipeline, q->suite.out, !q->selection.untrusted);
    tell_missing(q, t);
    take_forgiven(q, t);
}
