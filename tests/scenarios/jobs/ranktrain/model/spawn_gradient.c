/* One batch through a network, for another program to compute again.
 *
 *     spawn_gradient NETWORK WIDTH
 *
 * Writes, in the machine's order: the number of values and of trained ones (int64), the values
 * (float32), eight images (784 bytes each), eight labels (a byte each), the loss (float64), the
 * gradient with the batch's statistics behind it (float32). */
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/model/pass.h"
#include "tests/scenarios/jobs/ranktrain/model/fashion.h"

static uint8_t pixels[LAYER_BATCH][FASHION_PIXELS], labels[LAYER_BATCH];
static const uint8_t *images[LAYER_BATCH];

static void draw_batch(void) {
    uint64_t seed = 17;
    for (int n = 0; n < LAYER_BATCH; n++) {
        images[n] = pixels[n];
        labels[n] = (uint8_t)draw_below(&seed, FASHION_CLASSES);
        for (int i = 0; i < FASHION_PIXELS; i++)
            pixels[n][i] = (uint8_t)draw_below(&seed, 256);
    }
}

int main(int argc, char **argv) {
    struct blas blas;
    struct err err;
    if (argc != 3)
        return 64;
    if (blas_open(&blas, &err) < 0) {
        fprintf(stderr, "spawn_gradient: %s\n", err.msg);
        return 1;
    }
    struct model *m = fashion_model(argv[1], atoi(argv[2]));
    struct pass *p = pass_new(m, &blas);
    float *values = calloc(m->values, sizeof(*values));
    float *gradient = calloc(m->values, sizeof(*gradient));
    int64_t sizes[2] = {(int64_t)m->values, (int64_t)m->trained};
    draw_batch();
    model_init(m, 5, values);
    double loss = pass_gradient(p, values, images, labels, gradient, NULL);
    fwrite(sizes, sizeof(sizes), 1, stdout);
    fwrite(values, sizeof(*values), m->values, stdout);
    fwrite(pixels, sizeof(pixels), 1, stdout);
    fwrite(labels, sizeof(labels), 1, stdout);
    fwrite(&loss, sizeof(loss), 1, stdout);
    fwrite(gradient, sizeof(*gradient), m->values, stdout);
    free(values);
    free(gradient);
    pass_free(p);
    model_free(m);
    blas_close(&blas);
    return fflush(stdout) != 0;
}
