/* The recorded run as workflow commands of GitHub Actions (docs.github.com, "Workflow commands"): an
 * annotation of the scenario's file for each check that did not pass. */
#include "reports/annotations.h"

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

static void put(struct buf *out, const char *command, const struct judged *j, const char *check,
                const char *text) {
    BUF_FINI struct buf title = {0};
    buf_printf(&title, "%s: %s", j->name, check);
    buf_printf(out, "::%s file=", command);
    put_data(out, j->file, true);
    buf_puts(out, ",title=");
    put_data(out, buf_str(&title), true);
    buf_puts(out, "::");
    put_data(out, text, false);
    buf_putc(out, '\n');
}

static void put_check(struct buf *out, const char *command, const struct judged *j,
                      const struct judged_check *c) {
    BUF_FINI struct buf text = {0};
    const struct finding *f = c->shown;
    judged_put_check(c, &text);
    if (*f->where)
        buf_printf(&text, "; look at %s", f->where);
    put(out, command, j, c->name, buf_str(&text));
}

void github_put(struct buf *out, const struct judged *const *v, size_t n) {
    struct judged_check c;
    for (size_t k = 0; judged_check(v, n, k, &c); k++) {
        if (c.shown->status == FINDING_FAIL)
            put_check(out, c.forgiven ? "warning" : "error", v[0], &c);
        else if (c.shown->status == FINDING_UNKNOWN)
            put_check(out, "warning", v[0], &c);
        else if (c.shown->loud)
            put_check(out, "notice", v[0], &c);
    }
    for (size_t i = 0; i < n; i++)
        if (*v[i]->why)
            put(out, v[i]->exit_code == 4 ? "notice" : "error", v[i], "run", v[i]->why);
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    ARENA_FINI struct arena a = {0};
    struct judged one;
    judged_take(&one, run, run->dir, &a);
    github_put(out, (const struct judged *const[]){&one}, 1);
    return 0;
}

const struct report report_github = {
    .name = "github",
    .summary = "annotations for GitHub Actions: one for each check that did not pass",
    .render = render,
};
