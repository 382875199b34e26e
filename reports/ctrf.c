/* The recorded run in the Common Test Report Format (https://ctrf.io): a test for each check. A
 * history has no clock of the world, so times count from the beginning of the run. */
#include "reports/report.h"
#include "reports/story.h"

static const char *const statuses[] = {[FINDING_PASS] = "passed",
                                       [FINDING_FAIL] = "failed",
                                       [FINDING_UNKNOWN] = "other",
                                       [FINDING_SKIP] = "skipped"};

static void put_summary(const struct recorded_run *run, struct json_writer *w) {
    const struct verdict *v = run->verdict;
    json_object(w, "summary");
    json_put_i64(w, "tests", (int64_t)v->n);
    for (int s = 0; s < 4; s++)
        json_put_i64(w, statuses[s], (int64_t)story_count(v, (enum finding_status)s));
    json_put_i64(w, "pending", 0);
    json_put_i64(w, "start", 0);
    json_put_i64(w, "stop", (int64_t)(story_duration_s(run) * 1e3));
    json_end_object(w);
}

/* Of one that passed nothing more is to be known. */
static void put_test(const struct recorded_run *run, struct json_writer *w,
                     const struct finding *f) {
    BUF_FINI struct buf trace = {0};
    json_object(w, NULL);
    json_put_string(w, "name", f->check);
    json_put_string(w, "status", statuses[f->status]);
    json_put_string(w, "rawStatus", finding_status_name(f->status));
    json_put_i64(w, "duration", 0);
    json_array(w, "suite");
    json_put_string(w, NULL, run->scenario->name);
    json_end_array(w);
    json_put_string(w, "filePath", story_file(run));
    json_put_string(w, "message", f->seen);
    if (*f->broken)
        buf_printf(&trace, "broken: %s\n", f->broken);
    if (*f->expected)
        buf_printf(&trace, "expected: %s\n", f->expected);
    if (*f->where)
        buf_printf(&trace, "look at: %s\n", f->where);
    if (trace.len)
        json_put_string(w, "trace", buf_str(&trace));
    json_end_object(w);
}

static void put_extra(const struct recorded_run *run, struct json_writer *w) {
    BUF_FINI struct buf command = {0};
    story_command(run, &command);
    json_object(w, "extra");
    json_put_string(w, "outcome", report_outcome(run->verdict->exit_code));
    json_put_i64(w, "exit_code", run->verdict->exit_code);
    json_put_string(w, "reproduce", buf_str(&command));
    json_put_string(w, "launcher", story_run_text(run, "launcher"));
    json_end_object(w);
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_string(&w, "reportFormat", "CTRF");
    json_put_string(&w, "specVersion", "0.0.0");
    json_put_string(&w, "generatedBy", "rankquake");
    json_object(&w, "results");
    json_object(&w, "tool");
    json_put_string(&w, "name", "rankquake");
    json_put_string(&w, "version", story_run_text(run, "version"));
    json_end_object(&w);
    put_summary(run, &w);
    json_array(&w, "tests");
    for (size_t i = 0; i < run->verdict->n; i++)
        put_test(run, &w, &run->verdict->v[i]);
    json_end_array(&w);
    put_extra(run, &w);
    json_end_object(&w);
    json_end_object(&w);
    buf_putc(out, '\n');
    return 0;
}

const struct report report_ctrf = {
    .name = "ctrf",
    .summary = "Common Test Report Format: one test per check",
    .render = render,
};
