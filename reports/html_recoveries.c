#include "reports/html.h"
#include "reports/story.h"

static const char *meaning(enum phase p) {
    static const char *const until[PHASE_N] = {
        "until the rest of the job reacted",
        "until the old round's last worker was gone",
        "until the next round's first worker started",
        "until its last worker started",
        "until all were connected and ready",
        "until all had loaded the checkpoint",
        "until all had made a step",
    };
    return until[p];
}

/* One row for each phase that was seen; every bar begins where the one above it ended. */
static void put_waterfall(struct html *h, const struct incident *i) {
    double all_ns = 0, at_ns = 0;
    for (int p = 0; p < PHASE_N; p++)
        all_ns += i->phase_ns[p] > 0 ? (double)i->phase_ns[p] : 0;
    if (all_ns <= 0)
        return;
    html_raw(h, "<ol class=\"fall\">\n");
    for (int p = 0; p < PHASE_N; p++) {
        int64_t ns = i->phase_ns[p];
        if (ns < 0)
            continue;
        html_raw(h,
                 "<li class=\"p%d\"><b>%s</b><span class=\"until\">%s</span>"
                 "<span class=\"bar\"><i style=\"left:%.2f%%;width:%.2f%%\"></i></span><span "
                 "class=\"ms\">",
                 p, phase_name((enum phase)p), meaning((enum phase)p), at_ns / all_ns * 100,
                 (double)ns / all_ns * 100);
        html_duration(h, ns);
        html_raw(h, "</span></li>\n");
        at_ns += (double)ns;
    }
    html_raw(h, "</ol>\n");
}

static void put_what(struct html *h, const struct incident *i) {
    struct buf targets = {0};
    story_targets(i, &targets);
    html_raw(h, "<b>");
    html_text(h, *i->fault ? i->fault : "fault");
    html_raw(h, "</b> ");
    html_printf(h, "%s%s", targets.len ? "on " : "", buf_str(&targets));
    html_raw(h, "<small>");
    html_text(h, i->id);
    if (i->n > 1)
        html_printf(h, " (time %d)", i->n);
    if (i->step >= 0)
        html_printf(h, ", at step %lld", (long long)i->step);
    if (i->in_force)
        html_printf(h, ", in force at %.3f s", story_seconds(h->run, i->t0_ns));
    html_raw(h, "</small>");
    buf_fini(&targets);
}

/* "training again after 937 ms, from step 130: 3 steps were made again" */
static void put_outcome(struct html *h, const struct incident *i) {
    if (!i->in_force) {
        html_raw(h, "<p class=\"bad\">Not in force");
        html_printf(h, "%s%s.", i->failed ? ": " : "", i->failed ? i->failed : "");
    } else if (i->recover_ns >= 0) {
        html_raw(h, "<p>%s again after <b>",
                 i->phase_ns[PHASE_FIRST_STEP] >= 0 ? "Training" : "Started");
        html_duration(h, i->recover_ns);
        html_raw(h, "</b>");
        int64_t from = i->next ? story_resume_step(i->next) : -1;
        int64_t last = i->round ? html_last_step(i->round) : -1;
        if (from >= 0 && last > from)
            html_raw(h, ", from step %lld: %lld step%s made again", (long long)from,
                     (long long)(last - from), last - from == 1 ? " was" : "s were");
        html_raw(h, ".");
    } else if (!i->ended_round) {
        html_raw(h, "<p>It ended no round.");
    } else {
        html_raw(h, "<p class=\"bad\">The job did not train again.");
    }
    if (i->evidence_seq) {
        html_raw(h, " <span class=\"soft\">Evidence: ");
        html_printf(h, "%s (record %lld).", i->evidence, (long long)i->evidence_seq);
        html_raw(h, "</span>");
    } else if (i->in_force) {
        html_raw(h, " <span class=\"doubt\">No evidence that it took effect.</span>");
    }
    html_raw(h, "</p>\n");
}

void html_recoveries(struct html *h) {
    const struct incidents *is = &h->incidents;
    if (!is->n)
        return;
    html_raw(h, "<section id=\"faults\">\n<h2>Faults, and the way back</h2>\n");
    for (size_t k = 0; k < is->n && k < HTML_FAULTS; k++) {
        html_raw(h, "<article id=\"fault-%zu\">\n<h3><span class=\"pin\">%zu</span><span>", k + 1,
                 k + 1);
        put_what(h, is->v[k]);
        html_raw(h, "</span></h3>\n");
        put_outcome(h, is->v[k]);
        put_waterfall(h, is->v[k]);
        html_raw(h, "</article>\n");
    }
    if (is->n > HTML_FAULTS)
        html_raw(h, "<p class=\"soft\">%zu more are in report.json.</p>\n", is->n - HTML_FAULTS);
    html_raw(h, "</section>\n");
}
