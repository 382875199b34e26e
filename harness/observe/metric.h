/* metric: one number out of a page of metrics, in the text format that Prometheus scrapes
 * (exposition format 0.0.4; of OpenMetrics what is the same). */
#pragma once

#include "base/err.h"

/* wanted: "name" or "name{label="value",...}"; a series that has more labels than these is meant
 * too. *ret is the text of its value. 0, or negative with a sentence: -EINVAL wanted is no metric,
 * -ENOENT no series is meant, -ENOTUNIQ more than one, -EDOM its value is not a number. */
int metric_read(const char *page, const char *wanted, char ret[64], struct err *err);
