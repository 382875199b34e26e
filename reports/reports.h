/* reports: the table, in alphabetical order. A report is a file that ends in `const struct report
 * report_NAME` and a line here. */
#pragma once

#include "reports/report.h"

#define REPORTS(X)                                                                                 \
    X(csv)                                                                                         \
    X(ctrf)                                                                                        \
    X(github)                                                                                      \
    X(gitlab)                                                                                      \
    X(html)                                                                                        \
    X(json)                                                                                        \
    X(junit)                                                                                       \
    X(markdown)                                                                                    \
    X(prometheus)                                                                                  \
    X(svg)                                                                                         \
    X(tap)                                                                                         \
    X(terminal)                                                                                    \
    X(trace)

#define X(name) extern const struct report report_##name;
REPORTS(X)
#undef X
