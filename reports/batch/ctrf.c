/* All runs in the Common Test Report Format. */
#include "reports/batch/batch.h"
#include "reports/ctrf.h"

struct tests {
    struct json_writer w;
    struct ctrf_counts counts;
};

static void put_tests(void *arg, const struct judged *const *v, size_t n) {
    struct tests *t = arg;
    ctrf_put_tests(&t->w, v, n, &t->counts);
}

static void put_extra(struct json_writer *w, const void *arg) {
    const struct batch *b = arg;
    json_put_string(w, "outcome", report_outcome(b->exit_code));
    json_put_i64(w, "exit_code", b->exit_code);
    json_put_i64(w, "runs", (int64_t)b->n);
}

static void render(const struct batch *b, struct buf *out) {
    BUF_FINI struct buf tests = {0};
    struct tests t = {.w = {.out = &tests}};
    json_array(&t.w, NULL);
    batch_each(b, put_tests, &t);
    json_end_array(&t.w);
    ctrf_put(out, &t.counts, RANKQUAKE_VERSION, b->took_s, &tests, put_extra, b);
}

const struct batch_report batch_ctrf = {
    .name = "ctrf",
    .summary = "Common Test Report Format",
    .file = "ctrf.json",
    .render = render,
};
