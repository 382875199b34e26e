/* victim_line: what became of a node or rack that was struck, in a line. */
#pragma once

#include "base/json.h"

/* Appends "2 of 3 runs passed, recovered in 1.20 s (1.10 to 6.00 s); slower in node-killed: 6.00 s, its peers 1.10 s", of an
 * element of a certificate's nodes or racks. */
void victim_line(const struct json *victim, struct buf *out);

/* Whether all of its runs passed and it is in nothing slower than its peers. */
bool victim_is_well(const struct json *victim);

/* Appends "1.20 s (1.10 to 6.00 s)"; nothing where it never recovered. */
void victim_put_times(const struct json *victim, struct buf *out);
