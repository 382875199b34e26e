/* The recorded run as GitLab's code quality report (docs.gitlab.com, "Code Quality", the subset of
 * Code Climate's format): an issue in the scenario's file for each check that did not pass. */
#include "reports/report.h"
#include "reports/story.h"

#include "base/sha256.h"

/* The same finding of another run is the same issue: nothing of this run is in it. */
static void put_fingerprint(struct json_writer *w, const char *scenario, const char *check) {
    BUF_FINI struct buf text = {0};
    char hex[65];
    buf_printf(&text, "%s\n%s", scenario, check);
    sha256_of(buf_str(&text), text.len, hex);
    json_put_string(w, "fingerprint", hex);
}

static void put_issue(const struct recorded_run *run, struct json_writer *w,
                      const struct finding *f) {
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "%s: %s%s%s", f->check, f->broken, *f->broken ? " " : "", f->seen);
    json_object(w, NULL);
    json_put_string(w, "description", buf_str(&text));
    json_put_string(w, "check_name", f->check);
    put_fingerprint(w, run->scenario->name, f->check);
    json_put_string(w, "severity", f->status == FINDING_FAIL ? "critical" : "minor");
    json_object(w, "location");
    json_put_string(w, "path", story_file(run));
    json_object(w, "lines");
    json_put_i64(w, "begin", 1);
    json_end_object(w);
    json_end_object(w);
    json_end_object(w);
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    struct json_writer w = {.out = out};
    json_array(&w, NULL);
    for (size_t i = 0; i < run->verdict->n; i++) {
        const struct finding *f = &run->verdict->v[i];
        if (f->status == FINDING_FAIL || f->status == FINDING_UNKNOWN)
            put_issue(run, &w, f);
    }
    json_end_array(&w);
    buf_putc(out, '\n');
    return 0;
}

const struct report report_gitlab = {
    .name = "gitlab",
    .summary = "GitLab's code quality report: an issue for each check that did not pass",
    .render = render,
};
