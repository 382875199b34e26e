#include "scenarios/jobs/ranktrain/model/model.h"
#include "scenarios/jobs/ranktrain/model/networks.h"

#include "scenarios/jobs/ranktrain/data/draw.h"

#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int model_add(struct model *m, struct model_layer l) {
    mem_push(m->layers, m->n) = l;
    return m->n - 1;
}

static struct layer_shape shape_of(const struct model *m, int layer) {
    if (layer == LAYER_IMAGES)
        return (struct layer_shape){
            .channels = m->data.channels, .side = m->data.side, .batch = m->data.batch};
    return m->layers[layer].out;
}

static int plan_layer(struct model *m, int i, struct err *err) {
    struct model_layer *l = &m->layers[i];
    l->in = shape_of(m, l->input);
    if (l->kind->plan(l))
        return 0;
    return err_say(err, -EINVAL,
                   "%s cannot take images of %dx%d pixels: its layer %d (%s) is given %d channels "
                   "of %dx%d",
                   m->name, m->data.side, m->data.side, i + 1, l->kind->name, l->in.channels,
                   l->in.side, l->in.side);
}

static int plan(struct model *m, struct err *err) {
    for (int i = 0; i < m->n; i++) {
        int r = plan_layer(m, i, err);
        if (r < 0)
            return r;
        m->layers[i].trained_at = m->trained;
        m->trained += m->layers[i].trained;
    }
    m->values = m->trained;
    for (int i = 0; i < m->n; i++) {
        m->layers[i].running_at = m->values;
        m->values += m->layers[i].running;
    }
    return 0;
}

struct model *model_new(const char *network, int width, const struct model_data *data,
                        struct err *err) {
    const struct architecture *k = network_find(network, err);
    if (!k)
        return NULL;
    struct model *m = mem_new(struct model);
    m->data = *data;
    m->width = width ? width : k->width;
    snprintf(m->name, sizeof(m->name), "%s", k->name);
    k->build(m, k);
    return plan(m, err) < 0 ? model_free(m) : m;
}

struct model *model_free(struct model *m) {
    if (m)
        free(m->layers);
    free(m);
    return NULL;
}

/* Of the values from lo on and below hi, those that are asked for. */
struct drawing {
    size_t lo, hi;
    float *ret;
};

static void put(const struct drawing *d, size_t at, float value) {
    if (at >= d->lo && at < d->hi)
        d->ret[at - d->lo] = value;
}

/* The first half of a norm's numbers is 1 where no batch has been seen: scale; the second half of
 * its statistics: variance. */
static void init_norm(const struct model_layer *l, const struct drawing *d) {
    size_t channels = (size_t)l->in.channels;
    for (size_t c = 0; c < 2 * channels; c++) {
        put(d, l->trained_at + c, c < channels);
        put(d, l->running_at + c, c >= channels);
    }
}

/* A bias that lies with the layer behind it is drawn as the weights are. */
void model_init_part(const struct model *m, uint64_t seed, size_t lo, size_t hi, float *ret) {
    const struct drawing d = {.lo = lo, .hi = hi, .ret = ret};
    uint64_t state = draw_stream(seed, 1);
    double bound = 0;
    for (int i = 0; i < m->n; i++) {
        const struct model_layer *l = &m->layers[i];
        if (l->kind == &layer_norm) {
            init_norm(l, &d);
            continue;
        }
        if (l->fan_in)
            bound = 1 / sqrt(l->fan_in);
        for (size_t k = 0; k < l->trained; k++)
            put(&d, l->trained_at + k, (float)((2 * draw_unit(&state) - 1) * bound));
    }
}

void model_init(const struct model *m, uint64_t seed, float *ret_values) {
    model_init_part(m, seed, 0, m->values, ret_values);
}
