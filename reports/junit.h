/* junit: runs as JUnit XML, in the words of Jenkins' and of Surefire's schema. */
#pragma once

#include "reports/judged.h"

/* <testsuite>: runs that are alike, a case for each check. Of a check that has passed in one and not in
 * another each that did not is a flakyFailure; it counts as failed unless all those are forgiven. */
void junit_put_suite(struct buf *out, const struct judged *const *v, size_t n);
