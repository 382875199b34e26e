/* kernels: the computation of network.h, as functions that a GPU runs many threads of.
 *
 * Every kernel takes the address of one struct in device memory. Thread x of a grid's row y computes
 * element x of shard y, alone, in an order that the source fixes: no thread adds to what another one
 * adds to. So the bits depend neither on how many threads run at a time nor on how many shards there
 * are; and since they are compiled without contraction (-fmad=false), with exp and log of their own
 * and IEEE arithmetic for the rest, not on the device either: a C compiler makes the same bits of
 * the same source on a CPU, which is how they are tested. */
#pragma once

#include "scenarios/jobs/ranktrain/gpu/network.h"

#ifdef __cplusplus
#define KERNEL extern "C" __global__
#else
#define KERNEL
#endif

enum { KERNELS_BLOCK = 128 }; /* threads */

/* Of struct network: images become numbers; the loss and its gradient; sums of it; answers. */
KERNEL void kernel_load(struct network *n);
KERNEL void kernel_loss(struct network *n);
KERNEL void kernel_loss_sum(struct network *n);
KERNEL void kernel_classify(struct network *n);

/* Of a layer, each with what its elements are. */
#define KERNELS_LAYER(X)                                                                           \
    X(conv)           /* out */                                                                    \
    X(conv_gradient)  /* trained */                                                                \
    X(conv_in)        /* in */                                                                     \
    X(dense)          /* out */                                                                    \
    X(dense_gradient) /* trained */                                                                \
    X(dense_in)       /* in */                                                                     \
    X(cut)            /* out: its gradient is none where it was cut off */                         \
    X(norm_measure)   /* channels */                                                               \
    X(norm)           /* out */                                                                    \
    X(norm_gradient)  /* channels */                                                               \
    X(norm_in)        /* in */                                                                     \
    X(pool)           /* out */                                                                    \
    X(pool_gradient)  /* channels */                                                               \
    X(pool_in)        /* out: each has four pixels of in */                                        \
    X(add)            /* out */                                                                    \
    X(add_in)         /* out */                                                                    \
    X(average)        /* out */                                                                    \
    X(average_in)     /* in */                                                                     \
    X(flatten)        /* out */                                                                    \
    X(flatten_in)     /* out */                                                                    \
    X(check)          /* one: whether out has what is no number */                                 \
    X(sum)            /* trained; all shards in one row */                                         \
    X(sum_statistics) /* running; likewise */

#define KERNELS_DECLARE(name) KERNEL void kernel_##name(struct network_layer *l);
KERNELS_LAYER(KERNELS_DECLARE)
#undef KERNELS_DECLARE
