/* The names of impairments, of what they do and of planes. */
#include "faults/mechanism/impairment.h"

const char *const impairment_deed_keys[DEEDS_N] = {
#define X(name, key, text) key,
    IMPAIRMENT_DEEDS(X)
#undef X
};

const char *const impairment_names[IMPAIRMENT_NUMBERS_N] = {
#define X(name) #name,
    IMPAIRMENT_NUMBERS(X)
#undef X
};

const char *const plane_names[PLANES_N] = {"store", "bootstrap", "ssh", "data"};
