/* kernels: the computation of network.h, as functions that a GPU runs many threads of.
 *
 * Every kernel takes the address of the one struct network in device memory. Thread x of a grid's
 * row y computes element x of shard y, alone, in an order that the source fixes: no thread adds to
 * what another one adds to. So the bits depend neither on how many threads run at a time nor on how
 * many shards there are; and since they are compiled without contraction (-fmad=false), with exp
 * and log of their own and IEEE arithmetic for the rest, not on the device either: a C compiler
 * makes the same bits of the same source on a CPU, which is how they are tested. */
#pragma once

#include "scenarios/jobs/ranktrain/gpu/network.h"

#ifdef __cplusplus
#define KERNEL extern "C" __global__
#else
#define KERNEL
#endif

enum { KERNELS_BLOCK = 128 }; /* threads */

/* In the order of the computation: the name and the elements of one shard. */
#define KERNELS_FORWARD(X)                                                                         \
    X(kernel_load, NETWORK_BATCH *NETWORK_PADDED *NETWORK_PADDED)                                  \
    X(kernel_conv1, 6 * NETWORK_BATCH * 14 * 14)                                                   \
    X(kernel_conv2, NETWORK_BATCH * 16 * 5 * 5)                                                    \
    X(kernel_dense1, NETWORK_BATCH * 120)                                                          \
    X(kernel_dense2, NETWORK_BATCH * 84)                                                           \
    X(kernel_dense3, NETWORK_BATCH *LENET_CLASSES)

#define KERNELS_BACKWARD(X)                                                                        \
    X(kernel_loss, NETWORK_BATCH)                                                                  \
    X(kernel_d_hidden2, NETWORK_BATCH * 84)                                                        \
    X(kernel_d_hidden1, NETWORK_BATCH * 120)                                                       \
    X(kernel_d_pooled2, NETWORK_BATCH * 16 * 5 * 5)                                                \
    X(kernel_d_pooled1, 6 * NETWORK_BATCH * 14 * 14)                                               \
    X(kernel_d_conv1, NETWORK_BATCH *NETWORK_CONV1)                                                \
    X(kernel_gradient, LENET_PARAMETERS)

#define KERNELS_DECLARE(name, elements) KERNEL void name(struct network *n);
KERNELS_FORWARD(KERNELS_DECLARE)
KERNELS_BACKWARD(KERNELS_DECLARE)
#undef KERNELS_DECLARE

/* One row: classes of every sample of every shard; sums over the shards, one element per parameter
 * and one for the loss. */
KERNEL void kernel_classify(struct network *n);
KERNEL void kernel_sum(struct network *n);
