/* The recorded run as JUnit XML. */
#include "reports/escape.h"
#include "reports/report.h"
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

static void put_line(struct buf *out, const char *name, const char *text) {
    if (!*text)
        return;
    buf_printf(out, "%-9s ", name);
    escape_put(out, text);
    buf_putc(out, '\n');
}

static void put_case(struct buf *out, const struct recorded_run *run, const struct finding *f) {
    BUF_FINI struct buf message = {0};
    const char *element = f->status == FINDING_FAIL ? "failure" : "error";
    buf_puts(out, "  <testcase");
    put_attribute(out, "classname", run->scenario->name);
    put_attribute(out, "name", f->check);
    if (f->status == FINDING_PASS) {
        buf_puts(out, "/>\n");
        return;
    }
    buf_puts(out, ">\n    ");
    if (f->status == FINDING_SKIP) {
        buf_puts(out, "<skipped");
        buf_printf(&message, "%s%s", f->lost ? "it was answered before; now: " : "", f->seen);
        put_attribute(out, "message", buf_str(&message));
        buf_puts(out, "/>\n");
    } else {
        buf_printf(out, "<%s", element);
        put_attribute(out, "type", finding_status_name(f->status));
        put_attribute(out, "message", f->seen);
        buf_puts(out, ">");
        put_line(out, "broken", f->broken);
        put_line(out, "expected", f->expected);
        put_line(out, "seen", f->seen);
        put_line(out, "look at", f->where);
        buf_printf(out, "</%s>\n", element);
    }
    buf_puts(out, "  </testcase>\n");
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    const struct verdict *v = run->verdict;
    BUF_FINI struct buf text = {0};
    buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite");
    put_attribute(out, "name", run->scenario->name);
    buf_printf(out,
               " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
               v->n, story_count(v, FINDING_FAIL), story_count(v, FINDING_UNKNOWN),
               story_count(v, FINDING_SKIP), story_duration_s(run));
    buf_puts(out, "  <properties>\n");
    put_property(out, "outcome", report_outcome(v->exit_code));
    buf_printf(&text, "%d", v->exit_code);
    put_property(out, "exit_code", buf_str(&text));
    buf_clear(&text);
    story_command(run, &text);
    put_property(out, "reproduce", buf_str(&text));
    put_property(out, "version", story_run_text(run, "version"));
    put_property(out, "launcher", story_run_text(run, "launcher"));
    if (*story_run_text(run, "isolation"))
        put_property(out, "isolation", story_run_text(run, "isolation"));
    buf_clear(&text);
    story_lost(v, &text);
    if (text.len)
        put_property(out, "fewer", buf_str(&text));
    buf_clear(&text);
    story_loud(v, &text);
    if (text.len)
        put_property(out, "beware", buf_str(&text));
    buf_puts(out, "  </properties>\n");
    for (size_t i = 0; i < v->n; i++)
        put_case(out, run, &v->v[i]);
    buf_puts(out, "</testsuite>\n");
    return 0;
}

const struct report report_junit = {
    .name = "junit",
    .summary = "JUnit XML: one test case per check",
    .file = "junit.xml",
    .render = render,
};
