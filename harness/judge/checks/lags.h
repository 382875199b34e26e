/* lags: by how much the harness's own loop was late, and when. */
#pragma once

#include "harness/history/history.h"

struct lags;

struct lags *lags_new(const struct history *h); /* whose records it keeps; freed by lags_free */
struct lags *lags_free(struct lags *l);         /* NULL is allowed; returns NULL */

/* The most it was late at any moment between two; 0: not at all. */
int64_t lags_most_ns(const struct lags *l, int64_t from_ns, int64_t to_ns);
