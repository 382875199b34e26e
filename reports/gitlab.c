/* The recorded run as GitLab's code quality report (docs.gitlab.com, "Code Quality", the subset of
 * Code Climate's format): an issue in the scenario's file for each check that did not pass. */
#include "reports/annotations.h"

#include "base/printable.h"
#include "base/sha256.h"

/* The same finding of another run is the same issue: nothing of this run is in it. */
static void put_fingerprint(struct json_writer *w, const struct judged *j, const char *check) {
    BUF_FINI struct buf text = {0};
    char hex[65];
    buf_printf(&text, "%s\n%s", j->name, check);
    if (*j->sets)
        buf_printf(&text, "\n%s", j->sets);
    sha256_of(buf_str(&text), text.len, hex);
    json_put_string(w, "fingerprint", hex);
}

static void put_issue(struct json_writer *w, const struct judged *j, const char *check,
                      const char *severity, const char *text) {
    BUF_FINI struct buf clean = {0};
    printable_puts(&clean, text);
    json_object(w, NULL);
    json_put_string(w, "description", buf_str(&clean));
    json_put_string(w, "check_name", check);
    put_fingerprint(w, j, check);
    json_put_string(w, "severity", severity);
    json_object(w, "location");
    json_put_string(w, "path", j->file);
    json_object(w, "lines");
    json_put_i64(w, "begin", 1);
    json_end_object(w);
    json_end_object(w);
    json_end_object(w);
}

static void put_check(struct json_writer *w, const struct judged *j, const struct judged_check *c) {
    BUF_FINI struct buf text = {0};
    const struct finding *f = c->shown;
    bool failed = f->status == FINDING_FAIL && !c->forgiven;
    buf_printf(&text, "%s: ", c->name);
    if (judged_is_flaky(c)) {
        judged_put_rate(c, &text);
        buf_puts(&text, "; the first: ");
    }
    buf_printf(&text, "%s%s%s", f->broken, *f->broken ? " " : "", f->seen);
    put_issue(w, j, c->name, failed ? "critical" : "minor", buf_str(&text));
}

void gitlab_put(struct json_writer *w, const struct judged *const *v, size_t n) {
    struct judged_check c;
    for (size_t k = 0; judged_check(v, n, k, &c); k++)
        if (c.failed)
            put_check(w, v[0], &c);
    for (size_t i = 0; i < n; i++)
        if (*v[i]->why && v[i]->exit_code != 4)
            put_issue(w, v[i], "run", "critical", v[i]->why);
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    ARENA_FINI struct arena a = {0};
    struct json_writer w = {.out = out};
    struct judged one;
    judged_take(&one, run, run->dir, &a);
    json_array(&w, NULL);
    gitlab_put(&w, (const struct judged *const[]){&one}, 1);
    json_end_array(&w);
    buf_putc(out, '\n');
    return 0;
}

const struct report report_gitlab = {
    .name = "gitlab",
    .summary = "GitLab's code quality report: an issue for each check that did not pass",
    .render = render,
};
