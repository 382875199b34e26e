/* markdown: what pages in Markdown (GitHub's) have in common. */
#pragma once

#include "reports/report.h"

/* Text of a cell or a line: no markup of its own, no line of its own. */
void markdown_put_words(struct buf *out, const char *s);
/* The sign of a finding. */
const char *markdown_mark(enum finding_status s);
