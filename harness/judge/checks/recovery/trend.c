#include "harness/judge/checks/recovery/trend.h"

void readings_add(struct readings *r, int64_t value, int64_t seq) {
    if (r->n == READINGS_MAX || value < 0)
        return;
    r->v[r->n] = value;
    r->seq[r->n++] = seq;
}

int64_t readings_lowest(const int64_t *v, size_t n) {
    int64_t low = v[0];
    for (size_t i = 1; i < n; i++)
        low = v[i] < low ? v[i] : low;
    return low;
}

int64_t readings_highest(const int64_t *v, size_t n) {
    int64_t high = v[0];
    for (size_t i = 1; i < n; i++)
        high = v[i] > high ? v[i] : high;
    return high;
}

int64_t readings_growth(const struct readings *r) {
    size_t third = r->n / 3;
    if (!third)
        return 0;
    int64_t before = readings_highest(r->v, third);
    int64_t after = readings_lowest(r->v + r->n - third, third);
    return after > before ? after - before : 0;
}

bool readings_goes_on(const struct readings *r) {
    size_t half = r->n / 2;
    return r->n > 1 && r->v[r->n - 1] - r->v[half] > (int64_t)(r->n - half) / 3;
}

bool readings_rise(const struct readings *r, size_t from) {
    for (size_t i = from + 1; i < r->n; i++)
        if (r->v[i] <= r->v[i - 1])
            return false;
    return from + 1 < r->n;
}

void readings_prove(struct finding *f, const struct readings *r) {
    finding_prove(f, r->seq[0], r->seq[r->n / 2], r->seq[r->n - 1]);
}
