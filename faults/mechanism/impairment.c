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

bool impairment_is_down(const struct impairment *how, int64_t in_force_ns) {
    return how->flap_period_ns && in_force_ns % how->flap_period_ns < how->flap_down_ns;
}

unsigned impairment_does(const struct impairment *how) {
    const struct {
        int64_t number;
        unsigned does;
    } rows[] = {{how->delay_ns, 1U << DEED_DELAYED},
                {how->loss_ppm, 1U << DEED_LOST},
                {how->duplicate_ppm, 1U << DEED_DUPLICATED},
                {how->reorder_ppm, 1U << DEED_REORDERED},
                {how->corrupt_ppm, 1U << DEED_CORRUPTED},
                {how->rate_bit_s, 1U << DEED_THROTTLED},
                {how->rate_in_bit_s, 1U << DEED_THROTTLED},
                {how->rate_out_bit_s, 1U << DEED_THROTTLED},
                {how->mtu_bytes, 1U << DEED_OVERSIZE},
                {how->resets, 1U << DEED_RESET},
                {how->refuses, 1U << DEED_REFUSED},
                {how->blocks, 1U << DEED_REFUSED},
                {how->hushes, 1U << DEED_HUSHED},
                {how->answers, 1U << DEED_ANSWER_LOST},
                {how->names, 1U << DEED_NAME_FAILED},
                {how->flap_period_ns, IMPAIRMENT_CUTS}};
    unsigned does = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        does |= rows[i].number ? rows[i].does : 0;
    return does;
}

bool impairment_covers(struct impairment_reach outer, struct impairment_reach inner, int n) {
    const struct impairment *a = outer.how, *b = inner.how;
    if (b->planes & ~a->planes || (a->tcp_port && a->tcp_port != b->tcp_port))
        return false;
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            if (impairment_is_between(b, inner.group[from], inner.group[to]) &&
                !impairment_is_between(a, outer.group[from], outer.group[to]))
                return false;
    return true;
}
