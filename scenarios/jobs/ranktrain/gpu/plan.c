#include "scenarios/jobs/ranktrain/gpu/plan.h"
#include "scenarios/jobs/ranktrain/gpu/kernels.h"

#include <assert.h>
#include <string.h>

/* What the elements of a kernel are, and when it is needed. */
enum elements { NONE, OUT, IN, CHANNELS, TRAINED };
enum when { ALWAYS, ASKED, RELU, BIAS }; /* ASKED: somebody wants the gradient of what came in */

struct row {
    struct plan_kernel kernel;
    enum elements elements;
    enum when when;
};

#define K(name)                                                                                    \
    { "kernel_" #name, (const void *)kernel_##name }

static const struct {
    const char *kind;
    struct row forward[2], backward[3];
} table[] = {
    {"add", {{K(add), OUT, ALWAYS}}, {{K(add_in), OUT, ALWAYS}}},
    {"average", {{K(average), OUT, ALWAYS}}, {{K(average_in), IN, ASKED}}},
    {"conv",
     {{K(conv), OUT, ALWAYS}},
     {{K(conv_gradient), TRAINED, ALWAYS}, {K(conv_in), IN, ASKED}}},
    {"dense",
     {{K(dense), OUT, ALWAYS}},
     {{K(cut), OUT, RELU}, {K(dense_gradient), TRAINED, ALWAYS}, {K(dense_in), IN, ASKED}}},
    {"flatten", {{K(flatten), OUT, ALWAYS}}, {{K(flatten_in), OUT, ASKED}}},
    {"norm",
     {{K(norm_measure), CHANNELS, ALWAYS}, {K(norm), OUT, ALWAYS}},
     {{K(cut), OUT, RELU}, {K(norm_gradient), CHANNELS, ALWAYS}, {K(norm_in), IN, ASKED}}},
    {"pool",
     {{K(pool), OUT, ALWAYS}},
     {{K(pool_gradient), CHANNELS, BIAS}, {K(pool_in), OUT, ASKED}}},
};

static const struct plan_kernel sum = K(sum), sum_statistics = K(sum_statistics), check = K(check);
static const struct plan_kernel load = K(load), loss = K(loss), loss_sum = K(loss_sum);
static const struct plan_kernel classify = K(classify);

static size_t count(const struct model_layer *l, enum elements what) {
    switch (what) {
    case OUT:
        return layer_floats(&l->out);
    case IN:
        return layer_floats(&l->in);
    case CHANNELS:
        return (size_t)l->in.channels;
    case TRAINED:
        return l->trained;
    case NONE:
        break;
    }
    return 0;
}

static bool is_needed(const struct model_layer *l, const struct row *r) {
    return r->elements != NONE && (r->when == ALWAYS || (r->when == ASKED && l->input >= 0) ||
                                   (r->when == RELU && l->relu) || (r->when == BIAS && l->bias));
}

static int take(const struct model_layer *l, const struct row *rows, int n, struct plan_step *ret) {
    int steps = 0;
    for (int i = 0; i < n; i++)
        if (is_needed(l, &rows[i]))
            ret[steps++] = (struct plan_step){&rows[i].kernel, count(l, rows[i].elements), false};
    return steps;
}

static int row_of(const struct model_layer *l) {
    int i = 0, n = sizeof(table) / sizeof(*table);
    while (i < n && strcmp(table[i].kind, l->kind->name) != 0)
        i++;
    assert(i < n);
    return i;
}

int plan_layer(const struct model_layer *l, enum plan_way way, struct plan_step ret[PLAN_STEPS]) {
    int i = row_of(l), n = 0;
    switch (way) {
    case PLAN_FORWARD:
        return take(l, table[i].forward, 2, ret);
    case PLAN_STATISTICS:
        ret[0] = (struct plan_step){&sum_statistics, l->running, true};
        return l->running > 0;
    case PLAN_BACKWARD:
        n = take(l, table[i].backward, 3, ret);
        ret[n] = (struct plan_step){&sum, l->trained, true};
        return n + (l->trained > 0);
    case PLAN_CHECK:
        ret[0] = (struct plan_step){&check, 1, false};
        return 1;
    }
    return 0;
}

struct plan_step plan_network(const struct model *m, enum plan_of_network what) {
    const struct layer_shape images = {
        .channels = m->data.channels, .side = m->data.side, .batch = m->data.batch};
    switch (what) {
    case PLAN_LOAD:
        return (struct plan_step){&load, layer_floats(&images), false};
    case PLAN_LOSS:
        return (struct plan_step){&loss, (size_t)m->data.batch, false};
    case PLAN_LOSS_SUM:
        return (struct plan_step){&loss_sum, 1, true};
    case PLAN_CLASSIFY:
        break;
    }
    return (struct plan_step){&classify, (size_t)m->data.batch, false};
}
