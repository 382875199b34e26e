/* operator: one kind of slip, and where in a source it can happen. */
#pragma once

#include "tests/mutate/point.h"

struct operator{
    const char *name;
    const char *summary; /* for people */
    /* Finds what is at this one node; is asked for each of them. */
    void (*find)(const struct finding *f, const struct node *n);
};

#define X(name) extern const struct operator operator_##name;
#include "tests/mutate/operators.h"
#undef X

extern const struct operator* const operators[]; /* NULL-ended */
