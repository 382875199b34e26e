/* All runs as annotations of GitHub Actions. */
#include "reports/annotations.h"
#include "reports/batch/batch.h"

static void put(void *arg, const struct judged *const *v, size_t n) {
    github_put(arg, v, n);
}

static void render(const struct batch *b, struct buf *out) {
    batch_each(b, put, out);
}

const struct batch_report batch_github = {
    .name = "github",
    .summary = "annotations for GitHub Actions",
    .render = render,
};
