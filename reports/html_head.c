/* The head of the page: the verdict, why, and the figures of the run. */
#include "reports/html.h"
#include "reports/story.h"

/* ---- the verdict, and what is wrong ---- */

static void put_where(struct html *h, const char *where) {
    if (!*where)
        return;
    html_put(h, "<dt>look at</dt><dd><code>%s%s%s</code></dd>\n", h->run->dir,
             *h->run->dir ? "/" : "", where);
}

static void put_first(struct html *h, const struct finding *f) {
    html_put(h, "<dl class=\"first\">\n");
    html_labelled(h, "broken", f->broken);
    html_labelled(h, "expected", *f->expected ? f->expected : "evidence that answers the question");
    html_labelled(h, "seen", f->seen);
    put_where(h, f->where);
    html_put(h, "</dl>\n");
}

static void put_about(struct html *h) {
    if (!h->run->scenario->about)
        return;
    html_put(h, "<p class=\"about\">%s</p>\n", h->run->scenario->about);
}

static void put_command(struct html *h) {
    BUF_FINI struct buf command = {0};
    story_command(h->run, &command);
    html_put(h, "<p class=\"again\"><span>run it again</span><code>%s</code></p>\n",
             buf_str(&command));
}

/* ---- figures ---- */

static void put_checks_passed(struct html *h) {
    size_t passed = 0, skipped = 0;
    const struct verdict *v = h->run->verdict;
    for (size_t i = 0; i < v->n; i++) {
        passed += v->v[i].status == FINDING_PASS;
        skipped += v->v[i].status == FINDING_SKIP;
    }
    html_put(h, "<li><b>%zu<i>/%zu</i></b><span>checks passed</span></li>\n", passed,
             v->n - skipped);
}

static void put_time(struct html *h, int64_t ns, const char *label) {
    html_put(h, "<li><b>");
    html_duration(h, ns);
    html_put(h, "</b><span>%s</span></li>\n", label);
}

static void put_faults(struct html *h) {
    const struct incidents *is = &h->incidents;
    size_t in_force = 0, ended = 0;
    int64_t longest_ns = -1;
    for (size_t i = 0; i < is->n; i++) {
        in_force += is->v[i]->in_force;
        ended += is->v[i]->ended_round;
        longest_ns = is->v[i]->recover_ns > longest_ns ? is->v[i]->recover_ns : longest_ns;
    }
    html_put(h, "<li><b>%zu</b><span>fault%s took effect, %zu ended a round</span></li>\n",
             in_force, html_plural(in_force), ended);
    if (longest_ns >= 0)
        put_time(h, longest_ns, "longest recovery");
}

/* Steps that a round made and the next one made again. */
static uint64_t steps_again(const struct rounds *rs) {
    uint64_t again = 0; /* unsigned: a damaged history may hold any number */
    for (size_t i = 0; i + 1 < rs->n; i++) {
        int64_t steps = story_steps_again(rs->v[i], rs->v[i + 1]);
        again += steps > 0 ? (uint64_t)steps : 0;
    }
    return again;
}

static void put_rounds(struct html *h) {
    const struct rounds *rs = h->run->rounds;
    if (!rs->n)
        return;
    html_put(h, "<li><b>%d", rs->v[0]->world_size);
    for (size_t i = 1; i < rs->n; i++)
        if (rs->n <= 4 || i + 1 == rs->n)
            html_put(h, "<i>%s</i>%d", rs->n <= 4 ? "\u2192" : "\u2026", rs->v[i]->world_size);
    html_put(h, "</b><span>workers, in %zu round%s</span></li>\n", rs->n, html_plural(rs->n));
}

static void put_steps(struct html *h) {
    uint64_t again = steps_again(h->run->rounds);
    size_t seen = 0;
    for (size_t i = 0; i < h->bars_n; i++)
        seen += h->bars[i].seen;
    if (!seen)
        return;
    html_put(h, "<li><b>%lld</b><span>steps, ", (long long)h->last_step);
    if (again)
        html_put(h, "%llu of them", (unsigned long long)again);
    html_put(h, "%s made again</span></li>\n", again ? "" : "none");
}

static void put_goodput(struct html *h) {
    const struct goodput *g = &h->run->verdict->goodput;
    if (!goodput_is_known(g))
        return;
    html_put(h,
             "<li><b>%.0f<i>\u00a0%%</i></b><span>goodput: %lld steps that count, at the control "
             "run's pace</span></li>\n",
             g->percent, (long long)g->steps);
}

static void put_facts(struct html *h) {
    html_put(h, "<ul class=\"facts\">\n");
    put_checks_passed(h);
    put_faults(h);
    put_rounds(h);
    put_steps(h);
    put_goodput(h);
    if (h->bars_n)
        put_time(h, h->end_ns - h->begin_ns, "from the first record to the end of the job");
    html_put(h, "</ul>\n");
}

void html_head(struct html *h) {
    const struct finding *first = verdict_first(h->run->verdict);
    int code = h->run->verdict->exit_code;
    enum finding_status status = report_status(code);
    html_put(h,
             "<header class=\"%s\">\n<h1><span class=\"mark\">%s</span> %s <em>%s"
             "</em>",
             html_tone(status), html_mark(status), h->run->scenario->name, report_outcome(code));
    if (first) {
        html_put(h, "<small>%s, exit code %d</small>", first->check, code);
    }
    html_put(h, "</h1>\n");
    if (first)
        put_first(h, first);
    else
        put_about(h);
    put_command(h);
    html_put(h, "</header>\n");
    put_facts(h);
    if (first)
        put_about(h);
}
