/* All runs as GitLab's code quality report. */
#include "reports/annotations.h"
#include "reports/batch/batch.h"

static void put(void *arg, const struct judged *const *v, size_t n) {
    gitlab_put(arg, v, n);
}

static void render(const struct batch *b, struct buf *out) {
    struct json_writer w = {.out = out};
    json_array(&w, NULL);
    batch_each(b, put, &w);
    json_end_array(&w);
    buf_putc(out, '\n');
}

const struct batch_report batch_gitlab = {
    .name = "gitlab",
    .summary = "GitLab's code quality report",
    .file = "gl-code-quality-report.json",
    .render = render,
};
