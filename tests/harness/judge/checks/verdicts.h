/* verdicts: what all checks say, word for word, as a text to compare with.
 *
 * A line is a finding: its check, its status, what was seen, and what else it says. */
#pragma once

#include "base/buf.h"
#include "tests/harness/judge/checks/cases.h"

/* Of every history as it was recorded, and of what another promise than the strict one changes. */
void verdicts_of_histories(struct buf *out);

/* Of the cases that are in this file: what each changes of what is said of its history, whichever
 * check says it. */
void verdicts_of_cases(const struct cases *c, const char *file, struct buf *out);

/* Of a history without each of its records, with each of them twice, with each of its numbers one
 * more and one less, with each of its words another one, and each record in the same moment as each
 * of those around it: a line for each record, with the checks that say another thing then and a
 * sum over all that is said. */
void verdicts_of_changes(const char *history, struct buf *out);

/* What those changes of record LINE (1: the first) make the checks say, in full. */
void verdicts_of_record(const char *history, size_t line, struct buf *out);
