#include "harness/play/announcement.h"

#include "agent/sys/printing.h"
#include "reports/overview.h"

void announcement_say(const char *fmt, ...) {
    struct buf out = {0}, text = {0};
    struct page p = {.out = &out, .style = overview_style(stdout)};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    page_wrap(&p, 2, INK_PLAIN, buf_str(&text));
    printing_put(stdout, buf_str(&out), out.len);
    buf_fini(&out);
    buf_fini(&text);
}

void announcement_ended(const char *name, int exit_code, const char *what) {
    struct buf out = {0};
    struct report_style style = overview_style(stdout);
    overview_put_ended(name, exit_code, what, &style, &out);
    printing_put(stdout, buf_str(&out), out.len);
    buf_fini(&out);
}

/* What nodes are and what becomes of what the job writes, once. */
static void say_isolation(const struct announcement *a) {
    bool undone = a->base->job.writes_undone;
    if (a->plan->isolation == ISOLATION_PROCESSES)
        announcement_say("- nodes are processes of this host: %s%s",
                         a->plan->isolation_why ? a->plan->isolation_why : "as asked for",
                         undone ? "; each run works in a copy of this directory, and what is "
                                  "written elsewhere stays"
                                : "");
    if (!undone)
        announcement_say("- what the job writes into this directory stays, and the next run finds "
                         "it%s%s",
                         a->not_undone->code ? ": " : "",
                         a->not_undone->code ? a->not_undone->msg : "");
}

void announcement_plan(const struct announcement *a) {
    const struct sketch *d = a->sketch;
    struct buf words = {0};
    for (int i = 0; i < SKETCH_FAULTS; i++)
        buf_printf(&words, "%s%s", i ? "; " : "", sketch_faults[i].words);
    announcement_say("%s under %s: %d nodes, %d worker%s on each, emulated on this machine",
                     d->command->name, a->base->job.launcher, d->nodes, d->workers,
                     d->workers == 1 ? "" : "s");
    announcement_say("first a control run without faults, then five runs with one fault each: %s",
                     buf_str(&words));
    announcement_say("every run is kept in %s%s", a->dir,
                     a->base->job.writes_undone
                         ? "; what the job writes into this directory is undone after each"
                         : "");
    say_isolation(a);
    for (size_t i = 0; d->command->notes[i]; i++)
        announcement_say("- %s", d->command->notes[i]);
    for (size_t i = 0; d->notes[i]; i++)
        announcement_say("- %s", d->notes[i]);
    buf_fini(&words);
}
