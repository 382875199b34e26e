/* The recorded run in the Common Test Report Format. A history has no clock of the world, so times
 * count from the beginning of the run. */
#include "reports/ctrf.h"

#include "base/printable.h"
#include "reports/story.h"

#include <string.h>

static const char *const statuses[] = {[FINDING_PASS] = "passed",
                                       [FINDING_FAIL] = "failed",
                                       [FINDING_UNKNOWN] = "other",
                                       [FINDING_SKIP] = "skipped"};

/* ---- one check ---- */

static void put_clean(struct json_writer *w, const char *key, const char *text) {
    BUF_FINI struct buf clean = {0};
    printable_put(&clean, text, strlen(text), PRINTABLE_LINES);
    json_put_string(w, key, buf_str(&clean));
}

static void put_trace(struct json_writer *w, const struct finding *f) {
    BUF_FINI struct buf trace = {0};
    if (*f->broken)
        buf_printf(&trace, "broken: %s\n", f->broken);
    if (*f->expected)
        buf_printf(&trace, "expected: %s\n", f->expected);
    if (*f->where)
        buf_printf(&trace, "look at: %s\n", f->where);
    if (trace.len)
        put_clean(w, "trace", buf_str(&trace));
}

static void put_attachments(struct json_writer *w, const struct judged *j) {
    static const char *const files[][2] = {{"report.html", "text/html"},
                                           {"history.jsonl", "application/x-ndjson"}};
    BUF_FINI struct buf path = {0};
    json_array(w, "attachments");
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        buf_clear(&path);
        buf_printf(&path, "%s/%s", j->dir, files[i][0]);
        json_object(w, NULL);
        json_put_string(w, "name", files[i][0]);
        json_put_string(w, "contentType", files[i][1]);
        json_put_string(w, "path", buf_str(&path));
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_stdout(struct json_writer *w, const char *text) {
    json_array(w, "stdout");
    for (const char *end; *text; text = *end ? end + 1 : end) {
        BUF_FINI struct buf line = {0};
        end = strchrnul(text, '\n');
        printable_put(&line, text, (size_t)(end - text), 0);
        json_put_string(w, NULL, buf_str(&line));
    }
    json_end_array(w);
}

/* The run whose finding is shown. */
static const struct judged *shown_run(const struct judged *const *v, size_t n,
                                      const struct judged_check *c) {
    for (size_t i = 0; i < n; i++)
        if (c->shown >= v[i]->v && c->shown < v[i]->v + v[i]->n)
            return v[i];
    return v[0];
}

static void put_attempts(struct json_writer *w, const struct judged *const *v, size_t n,
                         const char *check) {
    int64_t attempt = 1;
    json_put_i64(w, "retries", (int64_t)n - 1);
    json_array(w, "retryAttempts");
    for (size_t i = 0; i < n; i++) {
        const struct finding *f = judged_finding(v[i], check);
        if (!f)
            continue;
        json_object(w, NULL);
        json_put_i64(w, "attempt", attempt++);
        json_put_string(w, "status", statuses[f->status]);
        put_clean(w, "message", f->seen);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_rate(struct json_writer *w, const struct judged_check *c) {
    struct judged_rate r = judged_rate(c->failed, c->failed + c->passed);
    json_object(w, "insights");
    json_object(w, "failRate");
    json_put_double(w, "current", r.rate);
    json_end_object(w);
    json_object(w, "flakyRate");
    json_put_double(w, "current", judged_is_flaky(c) ? r.rate : 0);
    json_end_object(w);
    json_put_i64(w, "executedInRuns", (int64_t)c->runs);
    json_object(w, "extra");
    json_put_double(w, "failRateLow", r.low);
    json_put_double(w, "failRateHigh", r.high);
    json_end_object(w);
    json_end_object(w);
}

static void put_head(struct json_writer *w, const struct judged *j, const char *name,
                     enum finding_status status) {
    json_object(w, NULL);
    put_clean(w, "name", name);
    json_put_string(w, "status", statuses[status]);
    json_put_string(w, "rawStatus", finding_status_name(status));
    json_put_i64(w, "duration", 0);
    json_array(w, "suite");
    put_clean(w, NULL, j->name);
    json_end_array(w);
    put_clean(w, "filePath", j->file);
}

static void put_message(struct json_writer *w, const struct judged_check *c) {
    BUF_FINI struct buf message = {0};
    if (judged_is_flaky(c)) {
        judged_put_rate(c, &message);
        buf_puts(&message, "; the first: ");
    }
    buf_puts(&message, c->shown->seen);
    put_clean(w, "message", buf_str(&message));
}

static void put_test(struct json_writer *w, const struct judged *const *v, size_t n,
                     const struct judged_check *c, struct ctrf_counts *counts) {
    enum finding_status status = c->forgiven ? FINDING_PASS : c->shown->status;
    const struct judged *j = shown_run(v, n, c);
    put_head(w, v[0], c->name, status);
    put_message(w, c);
    put_trace(w, c->shown);
    if (c->failed && *j->dir)
        put_attachments(w, j);
    if (c->failed && *j->output)
        put_stdout(w, j->output);
    if (n > 1)
        put_attempts(w, v, n, c->name);
    if (n > 1 && c->failed + c->passed)
        put_rate(w, c);
    if (judged_is_flaky(c))
        json_put_bool(w, "flaky", true);
    json_end_object(w);
    counts->tests++;
    counts->flaky += judged_is_flaky(c);
    counts->by[status]++;
}

static void put_missing(struct json_writer *w, const struct judged *j, struct ctrf_counts *counts) {
    enum finding_status status = j->exit_code == 4 ? FINDING_SKIP : FINDING_UNKNOWN;
    put_head(w, j, "run", status);
    put_clean(w, "message", j->why);
    json_end_object(w);
    counts->tests++;
    counts->by[status]++;
}

void ctrf_put_tests(struct json_writer *w, const struct judged *const *v, size_t n,
                    struct ctrf_counts *counts) {
    struct judged_check c;
    for (size_t k = 0; judged_check(v, n, k, &c); k++)
        put_test(w, v, n, &c, counts);
    for (size_t i = 0; i < n; i++)
        if (*v[i]->why)
            put_missing(w, v[i], counts);
}

/* ---- the whole ---- */

static void put_summary(struct json_writer *w, const struct ctrf_counts *c, double duration_s) {
    json_object(w, "summary");
    json_put_i64(w, "tests", c->tests);
    for (int s = 0; s < 4; s++)
        json_put_i64(w, statuses[s], c->by[s]);
    json_put_i64(w, "pending", 0);
    json_put_i64(w, "flaky", c->flaky);
    json_put_i64(w, "start", 0);
    json_put_i64(w, "stop", (int64_t)(duration_s * 1e3));
    json_end_object(w);
}

void ctrf_put(struct buf *out, const struct ctrf_counts *counts, const char *version,
              double duration_s, const struct buf *tests,
              void (*put_extra)(struct json_writer *w, const void *arg), const void *arg) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_string(&w, "reportFormat", "CTRF");
    json_put_string(&w, "specVersion", "0.0.0");
    json_put_string(&w, "generatedBy", "rankquake");
    json_object(&w, "results");
    json_object(&w, "tool");
    json_put_string(&w, "name", "rankquake");
    json_put_string(&w, "version", version);
    json_end_object(&w);
    put_summary(&w, counts, duration_s);
    buf_puts(out, ",\"tests\":");
    buf_put(out, tests->data, tests->len);
    json_object(&w, "extra");
    put_extra(&w, arg);
    json_end_object(&w);
    json_end_object(&w);
    json_end_object(&w);
    buf_putc(out, '\n');
}

static void put_extra(struct json_writer *w, const void *arg) {
    const struct judged *j = arg;
    json_put_string(w, "outcome", report_outcome(j->exit_code));
    json_put_i64(w, "exit_code", j->exit_code);
    put_clean(w, "reproduce", j->command);
    json_put_string(w, "launcher", j->launcher);
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf tests = {0};
    struct json_writer w = {.out = &tests};
    struct ctrf_counts counts = {0};
    struct judged one;
    judged_take(&one, run, run->dir, &a);
    json_array(&w, NULL);
    ctrf_put_tests(&w, (const struct judged *const[]){&one}, 1, &counts);
    json_end_array(&w);
    ctrf_put(out, &counts, one.version, one.duration_s, &tests, put_extra, &one);
    return 0;
}

const struct report report_ctrf = {
    .name = "ctrf",
    .summary = "Common Test Report Format: one test per check",
    .render = render,
};
