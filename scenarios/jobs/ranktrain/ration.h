/* ration: the memory of one device, counted as it is allocated, and a limit that it has. What a
 * worker holds of a training run is of four kinds. */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define RATION_KINDS(X)                                                                            \
    X(PARAMETERS, "parameters")                                                                    \
    X(GRADIENTS, "gradients")                                                                      \
    X(OPTIMIZER, "optimizer state")                                                                \
    X(ACTIVATIONS, "activations")

#define RATION_ENUM(name, text) RATION_##name,
enum ration_kind { RATION_KINDS(RATION_ENUM) RATION_COUNT };
#undef RATION_ENUM

struct ration {
    size_t limit; /* 0: none */
    size_t held[RATION_COUNT];
};

/* Counts bytes that are about to be allocated. Returns 0, or -ENOMEM and a sentence when they do not
 * fit; they are not counted then. */
int ration_take(struct ration *r, enum ration_kind kind, size_t bytes, struct err *err);

/* The same, and allocates n of size bytes, zeroed; free(). NULL when they do not fit. */
void *ration_alloc(struct ration *r, enum ration_kind kind, size_t n, size_t size, struct err *err);

/* "parameters 246824, gradients 740480, ... bytes" */
enum { RATION_TEXT = 192 };
void ration_print(const struct ration *r, char ret[RATION_TEXT]);
