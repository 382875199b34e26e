/* Holds the kernels of a GPU library against the CPU, and against the same source compiled for it.
 *
 *     spawn_kernels [LIBRARY]
 *
 * Prints a line for each layer, "layer pooled1 off 1.2e-07 of 2.31", then "bits same" or "bits
 * differ": whether all sums are, bit for bit, those of the library that runs on the fake runtime.
 * Without LIBRARY it is the one beside ranktrain. Exit: 0 all is well, 1 something differs, 3 there
 * is no library or no device. */
#include "layers.h"

static int open_library(const struct layers *l, const char *path, const struct gpu_backend **ret,
                        void **ret_c, struct err *err) {
    char label[COMPUTE_LABEL];
    setenv(BACKEND_VARIABLE, path, 1);
    int r = backend_open(ret, err);
    if (r == 0)
        r = (*ret)->compute->open(&l->place, ret_c, label, err);
    if (r == 0)
        printf("label %s\n", label);
    return r;
}

static int compare_layers(struct layers *l, const struct gpu_backend *gpu, void *c, int *bad,
                          struct err *err) {
    struct difference layers[LAYERS];
    int r = layers_compute(l, gpu, c, 0, err);
    if (r < 0)
        return r;
    int n = layers_look(l, layers);
    for (int i = 0; i < n; i++) {
        bool agree = layers_agree(&layers[i]);
        printf("layer %s off %.2g of %.3g%s\n", layers[i].name, layers[i].error, layers[i].largest,
               agree ? "" : ": too much");
        *bad += !agree;
    }
    return 0;
}

static int compare_bits(struct layers *l, int *bad, struct err *err) {
    static int64_t device[LENET_PARAMETERS + 1];
    char path[PATH_MAX];
    const struct gpu_backend *fake;
    void *c;
    int shard;
    memcpy(device, l->sums, sizeof(device));
    unsetenv("CUDA_VISIBLE_DEVICES"); /* it names real ones */
    layers_fake(path);
    int r = open_library(l, path, &fake, &c, err);
    if (r < 0)
        return r;
    r = fake->compute->sum(c, l->parameters, l->batches, NETWORK_SHARDS, l->sums, &shard, err);
    fake->compute->close(c, NULL);
    bool same = r == 0 && memcmp(device, l->sums, sizeof(device)) == 0;
    printf("bits %s\n", same ? "same" : "differ");
    *bad += !same;
    return r;
}

int main(int argc, char **argv) {
    const struct gpu_backend *gpu;
    struct layers *l = layers_new();
    struct err err = {0};
    void *c = NULL;
    char path[PATH_MAX];
    int bad = 0;
    layers_fake(path);
    char *tests = strstr(path, "/release/tests/");
    if (tests)
        snprintf(tests, 64, "/bin/ranktrain_cuda.so");
    int r = open_library(l, argc > 1 ? argv[1] : path, &gpu, &c, &err);
    if (r == 0)
        r = compare_layers(l, gpu, c, &bad, &err);
    if (c)
        gpu->compute->close(c, NULL);
    if (r == 0)
        r = compare_bits(l, &bad, &err);
    layers_free(l);
    if (r < 0) {
        fprintf(stderr, "spawn_kernels: %s\n", err.msg);
        return 3;
    }
    return bad > 0;
}
