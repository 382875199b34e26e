/* The page's recoveries, phase by phase. */
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
    html_put(h, "<ol class=\"fall\">\n");
    for (int p = 0; p < PHASE_N; p++) {
        int64_t ns = i->phase_ns[p];
        if (ns < 0)
            continue;
        html_put(h,
                 "<li class=\"p%d\"><b>%s</b><span class=\"until\">%s</span>"
                 "<span class=\"bar\"><i style=\"left:%.2f%%;width:%.2f%%\"></i></span><span "
                 "class=\"ms\">",
                 p, phase_name((enum phase)p), meaning((enum phase)p), at_ns / all_ns * 100,
                 (double)ns / all_ns * 100);
        html_duration(h, ns);
        html_bound(h, i->phase_bound_ns[p]);
        html_put(h, "</span></li>\n");
        at_ns += (double)ns;
    }
    html_put(h, "</ol>\n");
}

static void put_what(struct html *h, const struct incident *i) {
    BUF_FINI struct buf targets = {0};
    story_targets(i, &targets);
    html_put(h, "<b>%s</b> %s%s<small>%s", *i->fault ? i->fault : "fault", targets.len ? "on " : "",
             buf_str(&targets), i->id);
    if (i->n > 1)
        html_put(h, " (time %d)", i->n);
    if (i->step >= 0)
        html_put(h, ", at step %lld", (long long)i->step);
    BUF_FINI struct buf when = {0};
    if (i->in_force)
        story_in_force(h->run, i, &when);
    html_put(h, "%s", buf_str(&when));
    html_put(h, "</small>");
}

/* "training again after 937 ms, from step 130: 3 steps were made again" */
static void put_outcome(struct html *h, const struct incident *i) {
    if (!i->in_force) {
        html_put(h, "<p class=\"bad\">Not in force%s%s.", i->failed ? ": " : "",
                 i->failed ? i->failed : "");
    } else if (i->recover_ns >= 0) {
        html_put(h, "<p>%s again after <b>",
                 i->phase_ns[PHASE_FIRST_STEP] >= 0 ? "Training" : "Started");
        html_duration(h, i->recover_ns);
        html_bound(h, i->recover_bound_ns);
        html_put(h, "</b>");
        int64_t again = story_steps_again(i->round, i->next);
        if (again > 0)
            html_put(h, ", from step %lld: %lld step%s made again",
                     (long long)story_resume_step(i->next), (long long)again,
                     again == 1 ? " was" : "s were");
        html_put(h, ".");
    } else if (!i->ended_round) {
        html_put(h, "<p>It ended no round.");
    } else {
        html_put(h, "<p class=\"bad\">The job did not train again.");
    }
    if (i->evidence_seq) {
        html_put(h, " <span class=\"soft\">Evidence: %s (record %lld).</span>", i->evidence,
                 (long long)i->evidence_seq);
    } else if (i->in_force) {
        html_put(h, " <span class=\"doubt\">No evidence that it took effect.</span>");
    }
    html_put(h, "</p>\n");
}

void html_recoveries(struct html *h) {
    const struct incidents *is = &h->incidents;
    if (!is->n)
        return;
    html_put(h, "<section id=\"faults\">\n<h2>Faults, and the way back</h2>\n");
    for (size_t k = 0; k < is->n && k < HTML_FAULTS; k++) {
        html_put(h, "<article id=\"fault-%zu\">\n<h3><span class=\"pin\">%zu</span><span>", k + 1,
                 k + 1);
        put_what(h, is->v[k]);
        html_put(h, "</span></h3>\n");
        put_outcome(h, is->v[k]);
        put_waterfall(h, is->v[k]);
        html_put(h, "</article>\n");
    }
    if (is->n > HTML_FAULTS)
        html_put(h, "<p class=\"soft\">%zu more are in report.json.</p>\n", is->n - HTML_FAULTS);
    html_put(h, "</section>\n");
}
