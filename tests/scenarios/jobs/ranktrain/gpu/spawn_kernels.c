/* Holds the kernels of a GPU library against the CPU, and against the same source compiled for it.
 *
 *     spawn_kernels [LIBRARY]
 *
 * Prints for each network its worst layers, "layer lenet 3 (conv) off 1.2e-07 of 2.31", those that
 * are off by too much, and "bits lenet same" or "bits lenet differ": whether all sums are, bit for
 * bit, those of the library that runs on the fake runtime; last, "bits same" where all are. Without
 * LIBRARY it is the one beside ranktrain. Exit: 0 all is well, 1 something differs, 3 there is no
 * library or no device. */
#include "layers.h"

static int open_library(const struct layers *l, const char *path, const struct gpu_backend **ret,
                        void **ret_c, char label[COMPUTE_LABEL], struct err *err) {
    setenv(BACKEND_VARIABLE, path, 1);
    int r = backend_open(ret, err);
    return r == 0 ? (*ret)->compute->open(&l->place, ret_c, label, err) : r;
}

static void print(const struct layers *l, const struct difference *d) {
    printf("layer %s off %.2g of %.3g%s\n", d->name, d->error, d->largest,
           layers_agree(l, d) ? "" : ": too much");
}

/* Keeps the worst of a network, and prints those that are too far off. */
static void take(const struct layers *l, const struct difference *d, struct difference *worst,
                 int *bad) {
    if (!layers_agree(l, d)) {
        print(l, d);
        ++*bad;
    } else if (d->error * worst->largest >= worst->error * d->largest)
        *worst = *d;
}

static int compare_layers(struct layers *l, const struct gpu_backend *gpu, void *c, int *bad,
                          struct err *err) {
    struct difference d[LAYERS_ROWS], worst = {.largest = 1};
    int n = 0, r = layers_compute(l, gpu, c, 0, err);
    for (int i = LAYER_IMAGES; r == 0 && n >= 0 && i < l->model->n; i++) {
        n = layers_look(l, gpu, c, i, d, err);
        for (int k = 0; k < n; k++)
            take(l, &d[k], &worst, bad);
    }
    if (r < 0 || n < 0)
        return r < 0 ? r : n;
    print(l, &worst);
    layers_look_at_sums(l, d);
    for (int k = 0; k < 2; k++) {
        print(l, &d[k]);
        *bad += !layers_agree(l, &d[k]);
    }
    return layers_sum(l, gpu, c, 0, 2, l->sums, err);
}

static int compare_bits(struct layers *l, int *bad, struct err *err) {
    size_t bytes = (l->model->values + 1) * sizeof(*l->sums);
    int64_t *device = malloc(bytes);
    char path[PATH_MAX], label[COMPUTE_LABEL];
    const struct gpu_backend *fake;
    void *c;
    memcpy(device, l->sums, bytes);
    unsetenv("CUDA_VISIBLE_DEVICES"); /* it names real ones */
    layers_fake(path);
    int r = open_library(l, path, &fake, &c, label, err);
    if (r < 0)
        return r;
    r = layers_sum(l, fake, c, 0, 2, l->sums, err);
    fake->compute->close(c, NULL);
    bool same = r == 0 && memcmp(device, l->sums, bytes) == 0;
    printf("bits %s %s\n", l->model->name, same ? "same" : "differ");
    *bad += !same;
    free(device);
    return r;
}

static int try_network(const char *path, int i, int *bad, struct err *err) {
    const struct gpu_backend *gpu;
    struct layers *l = layers_new(&layers_networks[i]);
    char label[COMPUTE_LABEL], *visible = getenv("CUDA_VISIBLE_DEVICES");
    void *c = NULL;
    visible = visible ? strdup(visible) : NULL;
    int r = open_library(l, path, &gpu, &c, label, err);
    if (r == 0 && i == 0)
        printf("label %s\n", label);
    if (r == 0)
        r = compare_layers(l, gpu, c, bad, err);
    if (c)
        gpu->compute->close(c, NULL);
    if (r == 0)
        r = compare_bits(l, bad, err);
    if (visible)
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    free(visible);
    layers_free(l);
    return r;
}

int main(int argc, char **argv) {
    struct err err = {0};
    char path[PATH_MAX];
    int bad = 0, r = 0;
    layers_fake(path);
    char *tests = strstr(path, "/release/tests/");
    if (tests)
        snprintf(tests, 64, "/bin/ranktrain_cuda.so");
    for (int i = 0; i < LAYERS_NETWORKS && r == 0; i++)
        r = try_network(argc > 1 ? argv[1] : path, i, &bad, &err);
    if (r < 0) {
        fprintf(stderr, "spawn_kernels: %s\n", err.msg);
        return 3;
    }
    printf("bits %s\n", bad ? "differ" : "same");
    return bad > 0;
}
