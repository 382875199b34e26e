/* The recorded run in the Test Anything Protocol, version 14 (https://testanything.org/tap-version-14-
 * specification.html): a test point for each check, and what is to be known of one that did not pass
 * as a YAML block. */
#include "reports/report.h"
#include "reports/story.h"

#include "base/printable.h"

/* A description or a directive ends with its line, and '#' begins a directive. */
static void put_words(struct buf *out, const char *s) {
    BUF_FINI struct buf clean = {0};
    printable_puts(&clean, s);
    for (const char *c = buf_str(&clean); *c; c++) {
        if (*c == '#' || *c == '\\')
            buf_putc(out, '\\');
        buf_putc(out, *c);
    }
}

/* JSON's strings are YAML's too. */
static void put_line(struct buf *out, const char *key, const char *value) {
    struct json_writer w = {.out = out};
    if (!*value)
        return;
    buf_printf(out, "  %s: ", key);
    json_put_string(&w, NULL, value);
    buf_putc(out, '\n');
}

static void put_point(struct buf *out, size_t number, const struct finding *f) {
    bool good = f->status == FINDING_PASS || f->status == FINDING_SKIP;
    buf_printf(out, "%sok %zu - ", good ? "" : "not ", number);
    put_words(out, f->check);
    if (f->status == FINDING_SKIP) {
        buf_puts(out, " # SKIP ");
        put_words(out, f->seen);
    }
    buf_putc(out, '\n');
    if (good)
        return;
    buf_puts(out, "  ---\n");
    put_line(out, "status", finding_status_name(f->status));
    put_line(out, "broken", f->broken);
    put_line(out, "expected", f->expected);
    put_line(out, "seen", f->seen);
    put_line(out, "look_at", f->where);
    buf_puts(out, "  ...\n");
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    BUF_FINI struct buf command = {0};
    story_command(run, &command);
    buf_printf(out, "TAP version 14\n1..%zu\n# ", run->verdict->n);
    put_words(out, run->scenario->name);
    buf_printf(out, ": %s\n# again: ", report_outcome(run->verdict->exit_code));
    put_words(out, buf_str(&command));
    buf_putc(out, '\n');
    for (size_t i = 0; i < run->verdict->n; i++)
        put_point(out, i + 1, &run->verdict->v[i]);
    return 0;
}

const struct report report_tap = {
    .name = "tap",
    .summary = "TAP 14: one test point per check",
    .render = render,
};
