/* The recorded run as JUnit XML. */
#include "reports/junit.h"

#include "reports/escape.h"
#include "reports/story.h"

static void put_attribute(struct buf *out, const char *name, const char *value) {
    buf_printf(out, " %s=\"", name);
    escape_put(out, value);
    buf_putc(out, '"');
}

static void put_property(struct buf *out, const char *name, const char *value) {
    buf_puts(out, "    <property");
    put_attribute(out, "name", name);
    put_attribute(out, "value", value);
    buf_puts(out, "/>\n");
}

static void put_property_known(struct buf *out, const char *name, const char *value) {
    if (*value)
        put_property(out, name, value);
}

static void put_property_number(struct buf *out, const char *name, double value) {
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "%.4g", value);
    put_property(out, name, buf_str(&text));
}

static void put_line(struct buf *out, const char *name, const char *text) {
    if (!*text)
        return;
    buf_printf(out, "%-9s ", name);
    escape_put(out, text);
    buf_putc(out, '\n');
}

/* ---- one check ---- */

static void put_text(struct buf *out, const struct finding *f) {
    put_line(out, "broken", f->broken);
    put_line(out, "expected", f->expected);
    put_line(out, "seen", f->seen);
    put_line(out, "look at", f->where);
}

static void put_bad(struct buf *out, const struct finding *f, const char *element,
                    const char *message) {
    buf_printf(out, "    <%s", element);
    put_attribute(out, "type", finding_status_name(f->status));
    put_attribute(out, "message", message);
    buf_puts(out, ">");
    put_text(out, f);
    buf_printf(out, "</%s>\n", element);
}

static void put_skipped(struct buf *out, const struct finding *f) {
    BUF_FINI struct buf message = {0};
    buf_printf(&message, "%s%s", f->lost ? "it was answered before; now: " : "", f->seen);
    buf_puts(out, "    <skipped");
    put_attribute(out, "message", buf_str(&message));
    buf_puts(out, "/>\n");
}

/* Each run that did not pass, of a check that others passed. */
static void put_flaky(struct buf *out, const struct judged *const *v, size_t n,
                      const struct judged_check *c) {
    for (size_t i = 0; i < n; i++) {
        const struct finding *f = judged_finding(v[i], c->name);
        if (f && (f->status == FINDING_FAIL || f->status == FINDING_UNKNOWN))
            put_bad(out, f, f->status == FINDING_FAIL ? "flakyFailure" : "flakyError", f->seen);
    }
}

/* What Jenkins and GitLab show as files of the case. */
static void put_attachment(struct buf *out, const struct judged *j, const char *name) {
    buf_puts(out, "[[ATTACHMENT|");
    escape_put(out, j->dir);
    buf_printf(out, "/%s]]\n", name);
}

/* Once for each run that failed: of the case by which it did. */
static void put_output(struct buf *out, const struct judged *j) {
    buf_puts(out, "    <system-out>");
    if (*j->output_of) {
        escape_printf(out, "--- last lines of %s/%s\n", j->dir, j->output_of);
        escape_put(out, j->output);
        buf_putc(out, '\n');
    }
    put_attachment(out, j, "report.html");
    put_attachment(out, j, "history.jsonl");
    buf_puts(out, "</system-out>\n");
}

static const struct finding *first_bad(const struct judged *j) {
    for (size_t i = 0; i < j->n; i++)
        if (j->v[i].status == FINDING_FAIL)
            return &j->v[i];
    for (size_t i = 0; i < j->n; i++)
        if (j->v[i].status == FINDING_UNKNOWN)
            return &j->v[i];
    return NULL;
}

static void put_outputs(struct buf *out, const struct judged *const *v, size_t n,
                        const char *check) {
    for (size_t i = 0; i < n; i++) {
        const struct finding *f = judged_finding(v[i], check);
        if (f && *v[i]->dir && v[i]->exit_code && f == first_bad(v[i]))
            put_output(out, v[i]);
    }
}

static void put_bad_check(struct buf *out, const struct judged *const *v, size_t n,
                          const struct judged_check *c) {
    BUF_FINI struct buf message = {0};
    const struct finding *f = c->shown;
    if (judged_is_flaky(c)) {
        judged_put_rate(c, &message);
        buf_printf(&message, "; the first: %s", f->seen);
    }
    if (!c->forgiven)
        put_bad(out, f, f->status == FINDING_FAIL ? "failure" : "error",
                message.len ? buf_str(&message) : f->seen);
    if (judged_is_flaky(c))
        put_flaky(out, v, n, c);
    put_outputs(out, v, n, c->name);
}

static void put_case(struct buf *out, const struct judged *const *v, size_t n,
                     const struct judged_check *c) {
    buf_puts(out, "  <testcase");
    put_attribute(out, "classname", v[0]->name);
    put_attribute(out, "name", c->name);
    if (!c->failed && c->shown->status == FINDING_PASS) {
        buf_puts(out, "/>\n");
        return;
    }
    buf_puts(out, ">\n");
    if (c->failed)
        put_bad_check(out, v, n, c);
    else
        put_skipped(out, c->shown);
    buf_puts(out, "  </testcase>\n");
}

/* A run that was not made, or of which nothing is recorded, is a case of its own. */
static void put_missing(struct buf *out, const struct judged *j) {
    bool skipped = j->exit_code == 4;
    buf_puts(out, "  <testcase");
    put_attribute(out, "classname", j->name);
    put_attribute(out, "name", "run");
    buf_printf(out, ">\n    <%s", skipped ? "skipped" : "error");
    if (!skipped)
        put_attribute(out, "type", report_outcome(j->exit_code));
    put_attribute(out, "message", j->why);
    buf_puts(out, "/>\n  </testcase>\n");
}

/* ---- one scenario ---- */

struct counts {
    size_t tests, failures, errors, skipped;
};

static struct counts count(const struct judged *const *v, size_t n) {
    struct counts all = {0};
    struct judged_check c;
    for (size_t k = 0; judged_check(v, n, k, &c); k++) {
        bool bad = c.failed && !c.forgiven;
        all.tests++;
        all.failures += bad && c.shown->status == FINDING_FAIL;
        all.errors += bad && c.shown->status == FINDING_UNKNOWN;
        all.skipped += !c.failed && c.shown->status == FINDING_SKIP;
    }
    for (size_t i = 0; i < n; i++) {
        all.tests += *v[i]->why != '\0';
        all.skipped += *v[i]->why && v[i]->exit_code == 4;
        all.errors += *v[i]->why && v[i]->exit_code != 4;
    }
    return all;
}

static void put_repeats(struct buf *out, const struct judged *const *v, size_t n) {
    size_t failed = 0, judged = 0;
    for (size_t i = 0; i < n; i++) {
        failed += v[i]->exit_code == 1 || v[i]->exit_code == 5;
        judged += v[i]->exit_code == 1 || v[i]->exit_code == 5 || v[i]->exit_code == 0;
    }
    if (n < 2 || !judged)
        return;
    struct judged_rate r = judged_rate(failed, judged);
    put_property_number(out, "runs", (double)n);
    put_property_number(out, "failed_runs", (double)failed);
    put_property_number(out, "failure_rate", r.rate);
    put_property_number(out, "failure_rate_low", r.low);
    put_property_number(out, "failure_rate_high", r.high);
}

static void put_properties(struct buf *out, const struct judged *const *v, size_t n) {
    BUF_FINI struct buf text = {0};
    const struct judged *j = v[0];
    for (size_t i = 0; i < n; i++) /* of the first that is not well */
        if (v[i]->exit_code) {
            j = v[i];
            break;
        }
    buf_puts(out, "  <properties>\n");
    put_property(out, "outcome", report_outcome(j->exit_code));
    buf_printf(&text, "%d", j->exit_code);
    put_property(out, "exit_code", buf_str(&text));
    put_property(out, "reproduce", j->command);
    put_property(out, "version", j->version);
    put_property(out, "launcher", j->launcher);
    put_property_known(out, "isolation", j->isolation);
    put_property_known(out, "directory", j->dir);
    put_property_known(out, "fewer", j->lost);
    put_property_known(out, "beware", j->loud);
    for (const char **c = j->clocks; c && *c; c += 2)
        put_property(out, c[0], c[1]);
    put_repeats(out, v, n);
    buf_puts(out, "  </properties>\n");
}

void junit_put_suite(struct buf *out, const struct judged *const *v, size_t n) {
    struct counts all = count(v, n);
    struct judged_check c;
    double seconds = 0;
    for (size_t i = 0; i < n; i++)
        seconds += v[i]->duration_s;
    buf_puts(out, "<testsuite");
    put_attribute(out, "name", v[0]->name);
    buf_printf(out,
               " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
               all.tests, all.failures, all.errors, all.skipped, seconds);
    put_properties(out, v, n);
    for (size_t k = 0; judged_check(v, n, k, &c); k++)
        put_case(out, v, n, &c);
    for (size_t i = 0; i < n; i++)
        if (*v[i]->why)
            put_missing(out, v[i]);
    buf_puts(out, "</testsuite>\n");
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    ARENA_FINI struct arena a = {0};
    struct judged one;
    judged_take(&one, run, run->dir, &a);
    buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    junit_put_suite(out, (const struct judged *const[]){&one}, 1);
    return 0;
}

const struct report report_junit = {
    .name = "junit",
    .summary = "JUnit XML: one test case per check",
    .file = "junit.xml",
    .render = render,
};
