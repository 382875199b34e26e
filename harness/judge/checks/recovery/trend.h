/* trend: one thing measured again and again, and whether it only ever gets more. */
#pragma once

#include "harness/judge/checks/check.h"

enum { READINGS_MAX = 4096 };

struct readings {
    int64_t v[READINGS_MAX], seq[READINGS_MAX];
    size_t n;
};

void readings_add(struct readings *r, int64_t value, int64_t seq); /* below 0: nobody knows */
int64_t readings_lowest(const int64_t *v, size_t n);
int64_t readings_highest(const int64_t *v, size_t n);
/* Every one of the last third lies above every one of the first by so much: 0, if not. */
int64_t readings_growth(const struct readings *r);
/* What has grown went on to do so in the second half. */
bool readings_goes_on(const struct readings *r);
/* Each is more than the one before, from that one on. */
bool readings_rise(const struct readings *r, size_t from);
void readings_prove(struct finding *f, const struct readings *r);
