/* The recorded run as workflow commands of GitHub Actions (docs.github.com, "Workflow commands"): an
 * annotation of the scenario's file for each check that did not pass. */
#include "reports/report.h"
#include "reports/story.h"

#include "base/printable.h"

/* A message ends with its line; in a property ':' and ',' end the value. */
static void put_data(struct buf *out, const char *s, bool property) {
    BUF_FINI struct buf clean = {0};
    printable_puts(&clean, s);
    for (const char *c = buf_str(&clean); *c; c++) {
        if (*c == '%' || (property && (*c == ':' || *c == ',')))
            buf_printf(out, "%%%02X", (unsigned char)*c);
        else
            buf_putc(out, *c);
    }
}

static void put_annotation(const struct recorded_run *run, struct buf *out, const char *command,
                           const struct finding *f) {
    BUF_FINI struct buf title = {0}, text = {0};
    buf_printf(&title, "%s: %s", run->scenario->name, f->check);
    buf_printf(&text, "%s%s%s", f->broken, *f->broken ? " " : "", f->seen);
    if (*f->expected)
        buf_printf(&text, "; expected %s", f->expected);
    if (*f->where)
        buf_printf(&text, "; look at %s", f->where);
    buf_printf(out, "::%s file=", command);
    put_data(out, story_file(run), true);
    buf_puts(out, ",title=");
    put_data(out, buf_str(&title), true);
    buf_puts(out, "::");
    put_data(out, buf_str(&text), false);
    buf_putc(out, '\n');
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    for (size_t i = 0; i < run->verdict->n; i++) {
        const struct finding *f = &run->verdict->v[i];
        if (f->status == FINDING_FAIL)
            put_annotation(run, out, "error", f);
        else if (f->status == FINDING_UNKNOWN)
            put_annotation(run, out, "warning", f);
        else if (f->loud)
            put_annotation(run, out, "notice", f);
    }
    return 0;
}

const struct report report_github = {
    .name = "github",
    .summary = "annotations for GitHub Actions: one for each check that did not pass",
    .render = render,
};
