/* verdicts: what all checks say, word for word, as a text to compare with.
 *
 * A line is a finding: its check, its status, what was seen, and what else it says. */
#pragma once

#include "base/buf.h"
#include "tests/harness/judge/checks/cases.h"

#include <stdint.h>

/* Of every history as it was recorded, and of what another promise than the strict one changes. */
void verdicts_of_histories(struct buf *out);

/* Of the cases that are in this file: what each changes of what is said of its history, whichever
 * check says it. */
void verdicts_of_cases(const struct cases *c, const char *file, struct buf *out);

/* Of a history with each of its records altered in each way (alterations.h): a line for each record,
 * with the checks that say another thing then and a sum over all that is said. */
void verdicts_of_changes(const char *history, struct buf *out);

/* One finding, and a line break. */
void verdicts_put(struct buf *out, const struct finding *f);

/* What v says and base does not: both have the same checks in the same order. */
void verdicts_put_difference(struct buf *out, const struct verdict *base, const struct verdict *v);

/* A sum over texts, one after the other. */
uint64_t verdicts_sum(uint64_t so_far, const char *text);
#define VERDICTS_SUM_OF_NOTHING UINT64_C(14695981039346656037)

/* What those changes of record LINE (1: the first) make the checks say, in full. */
void verdicts_of_record(const char *history, size_t line, struct buf *out);
