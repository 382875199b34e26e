/* memory: what a model takes of a GPU's memory, all of it in one piece, and of the host's beside it.
 *
 * Whole: all values of the model and the sums of all. Layered: those of one layer. Each shard has a
 * room of its own for activations (network.h). */
#pragma once

#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/gpu/device.h"
#include "scenarios/jobs/ranktrain/gpu/network.h"
#include "scenarios/jobs/ranktrain/model/model.h"

enum { GPU_MEMORY_SHARDS = 64 };

struct gpu_memory {
    const struct model *model;
    int shards; /* there can be */
    bool layered;
    size_t room;                    /* floats of a shard */
    size_t image;                   /* bytes */
    int numbers[GPU_MEMORY_SHARDS]; /* of the shards in use, for messages */
    struct compute_memory held;

    /* On the device. */
    char *all;
    size_t bytes;
    struct network *network;
    struct network_layer *layers;
    uint8_t *images, *labels, *answers;
    float *input, *values, *gradient, *statistics;
    double *losses;
    int64_t *sums, *statistics_sums, *loss;
    int32_t *bad, *wrong;          /* one behind the other */
    size_t bad_bytes, wrong_bytes; /* bad_bytes: of both */

    /* Pinned, but for the layers, whose addresses are the device's. */
    struct {
        char *all;
        size_t bytes;
        struct network_layer *layers;
        struct network_step *step;
        uint8_t *images, *labels, *answers;
        float *values;
        int64_t *sums;
        int32_t *bad, *wrong;
    } host;
};

/* Counts: nothing is allocated yet. */
void gpu_memory_plan(struct gpu_memory *ret, const struct model *m, int shards, bool layered);

/* In the device's thread. gpu_memory_close in either case. */
int gpu_memory_open(struct gpu_memory *m, struct device *d, struct err *err);
void gpu_memory_close(struct gpu_memory *m);
