#include "scenarios/jobs/ranktrain/lenet.h"
#include "scenarios/jobs/ranktrain/conv.h"
#include "scenarios/jobs/ranktrain/dense.h"
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { B = LENET_BATCH, PADDED = LENET_SIDE + 4 };

static const struct conv conv1 = {.in = 1, .out = 6, .size = PADDED, .side = 28, .batch = B};
static const struct conv conv2 = {.in = 6, .out = 16, .size = 14, .side = 10, .batch = B};
static const struct dense dense1 = {.in = 400, .out = 120, .batch = B, .relu = true};
static const struct dense dense2 = {.in = 120, .out = 84, .batch = B, .relu = true};
static const struct dense dense3 = {.in = 84, .out = LENET_CLASSES, .batch = B};

struct lenet {
    float grey[256]; /* a pixel's byte, less the mean and divided by the deviation */
    float input[B * PADDED * PADDED];
    float unfolded1[25 * B * 28 * 28], out1[6 * B * 28 * 28], pooled1[6 * B * 14 * 14];
    float unfolded2[150 * B * 10 * 10], out2[16 * B * 10 * 10], pooled2[16 * B * 5 * 5];
    float flat[B * 400], hidden1[B * 120], hidden2[B * 84], logits[B * LENET_CLASSES];
    int32_t choice1[6 * B * 14 * 14], choice2[16 * B * 5 * 5];

    float d_logits[B * LENET_CLASSES], d_hidden2[B * 84], d_hidden1[B * 120], d_flat[B * 400];
    float d_pooled2[16 * B * 5 * 5], d_out2[16 * B * 10 * 10], d_unfolded2[150 * B * 10 * 10];
    float d_pooled1[6 * B * 14 * 14], d_out1[6 * B * 28 * 28];
};

struct lenet *lenet_new(void) {
    size_t size = (sizeof(struct lenet) + 63) / 64 * 64;
    struct lenet *l = aligned_alloc(64, size);
    if (!l)
        abort();
    memset(l, 0, size);
    for (int i = 0; i < 256; i++)
        l->grey[i] = ((float)i / 255.0f - 0.2860f) / 0.3530f;
    return l;
}

struct lenet *lenet_free(struct lenet *l) {
    free(l);
    return NULL;
}

void lenet_init(float parameters[LENET_PARAMETERS], uint64_t seed) {
    static const struct {
        int first, end, inputs;
    } layers[] = {{LENET_CONV1_WEIGHTS, LENET_CONV2_WEIGHTS, 25},
                  {LENET_CONV2_WEIGHTS, LENET_DENSE1_WEIGHTS, 150},
                  {LENET_DENSE1_WEIGHTS, LENET_DENSE2_WEIGHTS, 400},
                  {LENET_DENSE2_WEIGHTS, LENET_DENSE3_WEIGHTS, 120},
                  {LENET_DENSE3_WEIGHTS, LENET_PARAMETERS, 84}};
    uint64_t state = draw_stream(seed, 1);
    for (size_t l = 0; l < sizeof(layers) / sizeof(*layers); l++) {
        double bound = 1 / sqrt(layers[l].inputs);
        for (int i = layers[l].first; i < layers[l].end; i++)
            parameters[i] = (float)((2 * draw_unit(&state) - 1) * bound);
    }
}

static void load_images(struct lenet *l, const uint8_t *const images[LENET_BATCH]) {
    for (int n = 0; n < B; n++) {
        float *dst = l->input + n * PADDED * PADDED + 2 * PADDED + 2;
        const uint8_t *src = images[n];
        for (int y = 0; y < LENET_SIDE; y++, dst += PADDED, src += LENET_SIDE)
            for (int x = 0; x < LENET_SIDE; x++)
                dst[x] = l->grey[src[x]];
    }
}

/* [channel][sample][pixel] to [sample][channel * pixel] and back. */
static void flatten(const float *pooled, float *ret_flat) {
    for (int c = 0; c < 16; c++)
        for (int n = 0; n < B; n++)
            memcpy(ret_flat + n * 400 + c * 25, pooled + (c * B + n) * 25, 25 * sizeof(*pooled));
}

static void unflatten(const float *flat, float *ret_pooled) {
    for (int c = 0; c < 16; c++)
        for (int n = 0; n < B; n++)
            memcpy(ret_pooled + (c * B + n) * 25, flat + n * 400 + c * 25, 25 * sizeof(*flat));
}

static void forward(struct lenet *l, const struct blas *b, const float *p,
                    const uint8_t *const images[LENET_BATCH]) {
    load_images(l, images);
    conv_unfold(&conv1, l->input, l->unfolded1);
    conv_forward(&conv1, b, p + LENET_CONV1_WEIGHTS, l->unfolded1, l->out1);
    conv_pool(&conv1, l->out1, p + LENET_CONV1_BIAS, l->pooled1, l->choice1);
    conv_unfold(&conv2, l->pooled1, l->unfolded2);
    conv_forward(&conv2, b, p + LENET_CONV2_WEIGHTS, l->unfolded2, l->out2);
    conv_pool(&conv2, l->out2, p + LENET_CONV2_BIAS, l->pooled2, l->choice2);
    flatten(l->pooled2, l->flat);
    dense_forward(&dense1, b, p + LENET_DENSE1_WEIGHTS, p + LENET_DENSE1_BIAS, l->flat, l->hidden1);
    dense_forward(&dense2, b, p + LENET_DENSE2_WEIGHTS, p + LENET_DENSE2_BIAS, l->hidden1,
                  l->hidden2);
    dense_forward(&dense3, b, p + LENET_DENSE3_WEIGHTS, p + LENET_DENSE3_BIAS, l->hidden2,
                  l->logits);
}

static void backward(struct lenet *l, const struct blas *b, const float *p, float *g) {
    dense_backward(&dense3, b, p + LENET_DENSE3_WEIGHTS, l->hidden2, l->logits, l->d_logits,
                   g + LENET_DENSE3_WEIGHTS, g + LENET_DENSE3_BIAS, l->d_hidden2);
    dense_backward(&dense2, b, p + LENET_DENSE2_WEIGHTS, l->hidden1, l->hidden2, l->d_hidden2,
                   g + LENET_DENSE2_WEIGHTS, g + LENET_DENSE2_BIAS, l->d_hidden1);
    dense_backward(&dense1, b, p + LENET_DENSE1_WEIGHTS, l->flat, l->hidden1, l->d_hidden1,
                   g + LENET_DENSE1_WEIGHTS, g + LENET_DENSE1_BIAS, l->d_flat);
    unflatten(l->d_flat, l->d_pooled2);
    conv_unpool(&conv2, l->pooled2, l->choice2, l->d_pooled2, l->d_out2);
    conv_backward(&conv2, b, p + LENET_CONV2_WEIGHTS, l->unfolded2, l->d_out2,
                  g + LENET_CONV2_WEIGHTS, g + LENET_CONV2_BIAS, l->d_unfolded2);
    conv_fold(&conv2, l->d_unfolded2, l->d_pooled1);
    conv_unpool(&conv1, l->pooled1, l->choice1, l->d_pooled1, l->d_out1);
    conv_backward(&conv1, b, p + LENET_CONV1_WEIGHTS, l->unfolded1, l->d_out1,
                  g + LENET_CONV1_WEIGHTS, g + LENET_CONV1_BIAS, NULL);
}

void lenet_classify(struct lenet *l, const struct blas *b, const float *parameters,
                    const uint8_t *const images[LENET_BATCH], uint8_t ret_classes[LENET_BATCH]) {
    forward(l, b, parameters, images);
    for (int n = 0; n < B; n++) {
        const float *logits = l->logits + n * LENET_CLASSES;
        uint8_t best = 0;
        for (uint8_t k = 1; k < LENET_CLASSES; k++)
            best = logits[k] > logits[best] ? k : best;
        ret_classes[n] = best;
    }
}

double lenet_gradient(struct lenet *l, const struct blas *b, const float *parameters,
                      const uint8_t *const images[LENET_BATCH], const uint8_t labels[LENET_BATCH],
                      float ret_gradient[LENET_PARAMETERS]) {
    forward(l, b, parameters, images);
    double loss = loss_cross_entropy(l->logits, labels, B, LENET_CLASSES, l->d_logits);
    backward(l, b, parameters, ret_gradient);
    return loss;
}
