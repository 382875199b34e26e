#include "scenarios/jobs/ranktrain/model/pass.h"
#include "scenarios/jobs/ranktrain/model/loss.h"

#include "base/mem.h"

#include "scenarios/jobs/ranktrain/wide.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each a block of its own, so that who watches memory sees where one ends. */
struct pass_room {
    float *out, *d_out, *kept;
    int32_t *choice;
};

struct pass {
    const struct model *m;
    const struct blas *blas;
    /* A pixel's byte, less the mean and divided by the deviation. */
    float grey[MODEL_CHANNELS][256];
    float *images;
    struct pass_room *rooms;
    float *borrowed, *added[2]; /* of one layer at a time */
    size_t bytes;
    bool *begun; /* its output's gradient */
};

enum { CACHE_LINE = 64 };

static void *zeroed(size_t bytes) {
    void *p = memalign(CACHE_LINE, bytes); /* of which it need be no multiple */
    if (!p)
        abort();
    return memset(p, 0, bytes);
}

/* Counted by the lines that they lie in. */
static float *floats(struct pass *p, size_t n) {
    size_t bytes = n * sizeof(float);
    p->bytes += (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    return zeroed(bytes);
}

static int32_t *choices(struct pass *p, size_t n) {
    p->bytes += n * sizeof(int32_t);
    return zeroed(n * sizeof(int32_t));
}

static size_t largest(size_t a, size_t b) {
    return a > b ? a : b;
}

static void give_out(struct pass *p) {
    const struct model *m = p->m;
    struct layer_shape images = {
        .channels = m->data.channels, .side = m->data.side, .batch = m->data.batch};
    size_t borrowed = 0, added = 0;
    p->images = floats(p, layer_floats(&images));
    for (int i = 0; i < m->n; i++) {
        const struct model_layer *l = &m->layers[i];
        p->rooms[i] = (struct pass_room){.out = floats(p, layer_floats(&l->out)),
                                         .d_out = floats(p, layer_floats(&l->out)),
                                         .kept = floats(p, l->kept),
                                         .choice = choices(p, l->choices)};
        borrowed = largest(borrowed, l->borrowed);
        added = largest(added, layer_floats(&l->in));
    }
    p->borrowed = floats(p, borrowed);
    for (int i = 0; i < 2; i++)
        p->added[i] = floats(p, added);
}

struct pass *pass_new(const struct model *m, const struct blas *b) {
    struct pass *p = mem_new(struct pass);
    p->m = m;
    p->blas = b;
    p->rooms = mem_array(struct pass_room, (size_t)m->n);
    p->begun = mem_array(bool, (size_t)m->n);
    give_out(p);
    for (int c = 0; c < m->data.channels; c++)
        for (int i = 0; i < 256; i++)
            p->grey[c][i] = ((float)i / 255.0f - m->data.mean[c]) / m->data.deviation[c];
    return p;
}

struct pass *pass_free(struct pass *p) {
    if (!p)
        return NULL;
    for (int i = 0; i < p->m->n; i++) {
        free(p->rooms[i].out);
        free(p->rooms[i].d_out);
        free(p->rooms[i].kept);
        free(p->rooms[i].choice);
    }
    for (int i = 0; i < 2; i++)
        free(p->added[i]);
    free(p->borrowed);
    free(p->images);
    free(p->rooms);
    free(p->begun);
    free(p);
    return NULL;
}

/* An image is a byte for each pixel, channel by channel. */
static void load_images(struct pass *p, const uint8_t *const *images) {
    size_t pixels = (size_t)(p->m->data.side * p->m->data.side);
    float *dst = p->images;
    for (size_t c = 0; c < (size_t)p->m->data.channels; c++)
        for (int n = 0; n < p->m->data.batch; n++)
            for (size_t i = 0; i < pixels; i++)
                *dst++ = p->grey[c][images[n][c * pixels + i]];
}

static const float *out_of(const struct pass *p, int layer) {
    return layer == LAYER_IMAGES ? p->images : layer == LAYER_NONE ? NULL : p->rooms[layer].out;
}

static struct layer_pass look_at(const struct pass *p, int i, const struct pass_values *v) {
    const struct model_layer *l = &p->m->layers[i];
    const struct pass_room *r = &p->rooms[i];
    return (struct layer_pass){.l = l,
                               .blas = p->blas,
                               .learning = v->learning,
                               .in = out_of(p, l->input),
                               .second = out_of(p, l->second),
                               .trained = v->trained,
                               .running = v->running,
                               .out = r->out,
                               .kept = r->kept,
                               .choice = r->choice,
                               .ret_statistics = v->ret_statistics,
                               .d_out = r->d_out,
                               .ret_d_trained = v->ret_d_trained,
                               .borrowed = p->borrowed};
}

size_t pass_bytes(const struct pass *p) {
    return p->bytes;
}

void pass_begin(struct pass *p, const uint8_t *const *images) {
    load_images(p, images);
    memset(p->begun, 0, (size_t)p->m->n * sizeof(*p->begun));
}

void pass_forward(struct pass *p, int layer, const struct pass_values *v) {
    struct layer_pass l = look_at(p, layer, v);
    l.l->kind->forward(&l);
}

WIDE static void add_to(float *sum, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        sum[i] += x[i];
}

/* Where a layer is to put the gradient of what it takes: whoever comes first writes, and whoever
 * comes later adds. NULL: nobody asks for that of the images. */
static float *gradient_of(struct pass *p, int layer, float *added) {
    if (layer < 0)
        return NULL;
    return p->begun[layer] ? added : p->rooms[layer].d_out;
}

static void take_gradient(struct pass *p, int layer, const float *written) {
    if (layer >= 0 && p->begun[layer])
        add_to(p->rooms[layer].d_out, written, layer_floats(&p->m->layers[layer].out));
    if (layer >= 0)
        p->begun[layer] = true;
}

double pass_loss(struct pass *p, const uint8_t *labels) {
    const struct pass_room *logits = &p->rooms[p->m->n - 1];
    return loss_cross_entropy(logits->out, labels, p->m->data.batch, p->m->data.classes,
                              logits->d_out);
}

void pass_backward(struct pass *p, int layer, const struct pass_values *v) {
    struct layer_pass l = look_at(p, layer, v);
    l.ret_d_in = gradient_of(p, l.l->input, p->added[0]);
    l.ret_d_second = gradient_of(p, l.l->second, p->added[1]);
    if (l.ret_d_in || l.l->trained)
        l.l->kind->backward(&l);
    take_gradient(p, l.l->input, l.ret_d_in);
    take_gradient(p, l.l->second, l.ret_d_second);
}

void pass_classes(const struct pass *p, uint8_t *ret_classes) {
    int classes = p->m->data.classes;
    for (int n = 0; n < p->m->data.batch; n++) {
        const float *logits = p->rooms[p->m->n - 1].out + n * classes;
        int best = 0;
        for (int k = 1; k < classes; k++)
            best = logits[k] > logits[best] ? k : best;
        ret_classes[n] = (uint8_t)best;
    }
}

/* Where the numbers of a layer lie when all are at hand. */
static struct pass_values values_of(const struct pass *p, int layer, const float *values,
                                    float *gradient) {
    const struct model_layer *l = &p->m->layers[layer];
    return (struct pass_values){.learning = gradient != NULL,
                                .trained = values + l->trained_at,
                                .running = values + l->running_at,
                                .ret_statistics = gradient ? gradient + l->running_at : NULL,
                                .ret_d_trained = gradient ? gradient + l->trained_at : NULL};
}

static void forward(struct pass *p, const float *values, const uint8_t *const *images,
                    float *gradient) {
    pass_begin(p, images);
    for (int i = 0; i < p->m->n; i++) {
        struct pass_values v = values_of(p, i, values, gradient);
        pass_forward(p, i, &v);
    }
}

void pass_classify(struct pass *p, const float *values, const uint8_t *const *images,
                   uint8_t *ret_classes) {
    forward(p, values, images, NULL);
    pass_classes(p, ret_classes);
}

double pass_gradient(struct pass *p, const float *values, const uint8_t *const *images,
                     const uint8_t *labels, float *ret_gradient, const struct pass_watch *watch) {
    forward(p, values, images, ret_gradient);
    double loss = pass_loss(p, labels);
    for (int i = p->m->n - 1; i >= 0; i--) {
        struct pass_values v = values_of(p, i, values, ret_gradient);
        pass_backward(p, i, &v);
        if (watch)
            watch->layer(watch->arg, i);
    }
    return loss;
}

int pass_first_bad(const struct pass *p) {
    for (int i = 0; i < p->m->n; i++)
        for (size_t k = 0; k < layer_floats(&p->m->layers[i].out); k++)
            if (!isfinite(p->rooms[i].out[k]))
                return i;
    return -1;
}

struct pass_layer pass_look(const struct pass *p, int layer) {
    if (layer == LAYER_IMAGES)
        return (struct pass_layer){.out = p->images};
    return (struct pass_layer){.out = p->rooms[layer].out,
                               .d_out = p->rooms[layer].d_out,
                               .choice = p->rooms[layer].choice};
}
