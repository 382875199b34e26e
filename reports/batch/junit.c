/* All runs as one JUnit file: a suite for each scenario. */
#include "reports/batch/batch.h"
#include "reports/junit.h"

static void put_suite(void *arg, const struct judged *const *v, size_t n) {
    junit_put_suite(arg, v, n);
}

static void render(const struct batch *b, struct buf *out) {
    buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rankquake\">\n");
    batch_each(b, put_suite, out);
    buf_puts(out, "</testsuites>\n");
}

const struct batch_report batch_junit = {
    .name = "junit",
    .summary = "JUnit XML: a suite per scenario, a case per check",
    .file = "junit.xml",
    .render = render,
};
