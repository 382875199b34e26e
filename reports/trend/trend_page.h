/* trend_page: a trend file as one page, with a chart for each measure over the runs, commit by
 * commit, in which the first bad commit is marked. It needs nothing but itself. */
#pragma once

#include "harness/trend/series.h"

/* series_find_bad has been asked of each. */
void trend_page(const struct series_list *s, const struct logbook *l, struct buf *out);
