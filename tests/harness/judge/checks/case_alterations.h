/* case_alterations: what a check says of a planted case when one of its records is another. */
#pragma once

#include "tests/harness/judge/checks/cases.h"

#include <stdint.h>

struct case_alterations {
    size_t asked, otherwise; /* so often; so often it then had another answer */
    uint64_t sum;            /* of all that was said */
};

/* The records by which the case differs from its history in every way (alterations.h), and of those
 * that prove what is found and of all others what a generator draws that is seeded by the name of the
 * case; and at which times of the former the answer turns. told: takes all in full; NULL. */
void case_alterations(struct case_alterations *ret, const struct planted_case *c, struct buf *told);
