#include "reports/html.h"
#include "reports/story.h"

/* ---- the verdict, and what is wrong ---- */

static void put_labelled(struct html *h, const char *label, const char *text) {
    if (!*text)
        return;
    html_raw(h, "<dt>%s</dt><dd>", label);
    html_text(h, text);
    html_raw(h, "</dd>\n");
}

static void put_where(struct html *h, const char *where) {
    if (!*where)
        return;
    html_raw(h, "<dt>look at</dt><dd><code>");
    html_printf(h, "%s%s%s", h->run->dir, *h->run->dir ? "/" : "", where);
    html_raw(h, "</code></dd>\n");
}

static void put_first(struct html *h, const struct finding *f) {
    html_raw(h, "<dl class=\"first\">\n");
    put_labelled(h, "broken", f->broken);
    put_labelled(h, "expected", *f->expected ? f->expected : "evidence that answers the question");
    put_labelled(h, "seen", f->seen);
    put_where(h, f->where);
    html_raw(h, "</dl>\n");
}

static void put_about(struct html *h) {
    if (!h->run->scenario->about)
        return;
    html_raw(h, "<p class=\"about\">");
    html_text(h, h->run->scenario->about);
    html_raw(h, "</p>\n");
}

static void put_command(struct html *h) {
    struct buf command = {0};
    story_command(h->run, &command);
    html_raw(h, "<p class=\"again\"><span>run it again</span><code>");
    html_text(h, buf_str(&command));
    html_raw(h, "</code></p>\n");
    buf_fini(&command);
}

/* ---- figures ---- */

/* The figure is put between the two. */
static void begin_fact(struct html *h) {
    html_raw(h, "<li><b>");
}

static void end_fact(struct html *h, const char *label) {
    html_raw(h, "</b><span>");
    html_text(h, label);
    html_raw(h, "</span></li>\n");
}

static void put_checks_passed(struct html *h) {
    size_t passed = 0, skipped = 0;
    const struct verdict *v = h->run->verdict;
    for (size_t i = 0; i < v->n; i++) {
        passed += v->v[i].status == FINDING_PASS;
        skipped += v->v[i].status == FINDING_SKIP;
    }
    begin_fact(h);
    html_raw(h, "%zu<i>/%zu</i>", passed, v->n - skipped);
    end_fact(h, "checks passed");
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
    begin_fact(h);
    html_raw(h, "%zu", in_force);
    struct buf label = {0};
    buf_printf(&label, "fault%s took effect, %zu ended a round", html_plural(in_force), ended);
    end_fact(h, buf_str(&label));
    buf_fini(&label);
    if (longest_ns < 0)
        return;
    begin_fact(h);
    html_duration(h, longest_ns);
    end_fact(h, "longest recovery");
}

/* Steps that a round made and the next one made again. */
static uint64_t steps_again(const struct recorded_run *run) {
    uint64_t again = 0; /* unsigned: a damaged history may hold any number */
    for (size_t i = 0; i + 1 < run->rounds->n; i++) {
        int64_t from = story_resume_step(run->rounds->v[i + 1]);
        int64_t last = html_last_step(run->rounds->v[i]);
        again += from >= 0 && last > from ? (uint64_t)(last - from) : 0;
    }
    return again;
}

static void put_rounds(struct html *h) {
    const struct rounds *rs = h->run->rounds;
    if (!rs->n)
        return;
    begin_fact(h);
    for (size_t i = 0; i < rs->n; i++)
        if (rs->n <= 4 || i == 0 || i + 1 == rs->n)
            html_raw(h, "%s%d", i ? rs->n <= 4 ? "<i>\u2192</i>" : "<i>\u2026</i>" : "",
                     rs->v[i]->world_size);
    struct buf label = {0};
    buf_printf(&label, "workers, in %zu round%s", rs->n, html_plural(rs->n));
    end_fact(h, buf_str(&label));
    buf_fini(&label);
}

static void put_steps(struct html *h) {
    uint64_t again = steps_again(h->run);
    size_t seen = 0;
    for (size_t i = 0; i < h->bars_n; i++)
        seen += h->bars[i].seen;
    if (!seen)
        return;
    begin_fact(h);
    html_raw(h, "%lld", (long long)h->last_step);
    struct buf label = {0};
    if (again)
        buf_printf(&label, "steps, %llu of them made again", (unsigned long long)again);
    else
        buf_puts(&label, "steps, none made again");
    end_fact(h, buf_str(&label));
    buf_fini(&label);
}

static void put_facts(struct html *h) {
    html_raw(h, "<ul class=\"facts\">\n");
    put_checks_passed(h);
    put_faults(h);
    put_rounds(h);
    put_steps(h);
    if (h->bars_n) {
        begin_fact(h);
        html_duration(h, h->end_ns - h->begin_ns);
        end_fact(h, "from the first record to the end of the job");
    }
    html_raw(h, "</ul>\n");
}

void html_head(struct html *h) {
    const struct finding *first = verdict_first(h->run->verdict);
    int code = h->run->verdict->exit_code;
    enum finding_status status = report_status(code);
    html_raw(h, "<header class=\"%s\">\n<h1><span class=\"mark\">%s</span> ", html_tone(status),
             html_mark(status));
    html_text(h, h->run->scenario->name);
    html_raw(h, " <em>");
    html_text(h, report_outcome(code));
    html_raw(h, "</em>");
    if (first) {
        html_raw(h, "<small>");
        html_printf(h, "%s, exit code %d", first->check, code);
        html_raw(h, "</small>");
    }
    html_raw(h, "</h1>\n");
    if (first)
        put_first(h, first);
    else
        put_about(h);
    put_command(h);
    html_raw(h, "</header>\n");
    put_facts(h);
    if (first)
        put_about(h);
}
