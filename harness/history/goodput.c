#include "harness/history/goodput.h"

/* The first step that was told, and the last that counts. */
struct goodput_span {
    int64_t first, last; /* -1: none */
    int64_t first_ns, last_ns;
    const struct worker *began, *ended;
};

static void begin(struct goodput_span *s, const struct rounds *rs) {
    for (size_t i = 0; i < rs->workers_n; i++) {
        const struct worker *w = rs->workers[i];
        if (!w->first_step_ns || (s->began && w->first_step_ns >= s->first_ns))
            continue;
        s->began = w;
        s->first = w->first_step;
        s->first_ns = w->first_step_ns;
    }
}

/* The highest step that one of its workers told, and of those who did the one that was first. */
static bool end_with_steps(struct goodput_span *s, const struct round *r) {
    s->ended = NULL;
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        if (w->last_step < 0 ||
            (s->ended && (w->last_step < s->last ||
                          (w->last_step == s->last && w->last_step_ns >= s->last_ns))))
            continue;
        s->ended = w;
        s->last = w->last_step;
        s->last_ns = w->last_step_ns;
    }
    return s->ended != NULL;
}

/* It got to no step: what it had resumed from is all that is left. */
static bool end_with_resume(struct goodput_span *s, const struct round *r) {
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        if (!w->resume_ns || w->resume_step < 0)
            continue;
        s->ended = w;
        s->last = w->resume_step;
        s->last_ns = w->resume_ns;
        return true;
    }
    return false;
}

static struct goodput_span span_of(const struct rounds *rs) {
    struct goodput_span s = {.first = -1, .last = -1};
    begin(&s, rs);
    for (size_t i = rs->n; i-- > 0;)
        if (end_with_steps(&s, rs->v[i]) || end_with_resume(&s, rs->v[i]))
            break;
    return s;
}

/* A job that did not end well was at it, or stood still, until somebody ended it. */
static void count_the_end(struct goodput_span *s, const struct history *h,
                          const struct rounds *rs) {
    const struct round *last = rounds_last_complete(rs);
    const struct record *end = history_newest(h, SOURCE_HARNESS, "job-end");
    if (s->ended && end && end->t_ns > s->last_ns && !(last && round_ended_well(last)))
        s->last_ns = end->t_ns;
}

static bool is_measured(const struct goodput_span *s) {
    return s->began && s->ended && s->first >= 0 && s->last > s->first && s->last_ns > s->first_ns;
}

/* A damaged history may hold any number. */
static double seconds(const struct goodput_span *s) {
    return ((double)s->last_ns - (double)s->first_ns) / 1e9;
}

int64_t goodput_pace_ns(const struct rounds *rs) {
    struct goodput_span s = span_of(rs);
    return is_measured(&s) ? (int64_t)(seconds(&s) * 1e9 / (double)(s.last - s.first)) : 0;
}

static int64_t seq_of(const struct history *h, const struct worker *w, int64_t t_ns) {
    history_each(r, h) {
        if (r->pid == w->pid && r->t_ns == t_ns && r->source == SOURCE_JOB)
            return r->seq;
    }
    return 0;
}

/* Histories of before the pace was recorded tell the median time of a step. */
static int64_t control_pace_ns(const struct record *control) {
    int64_t pace_ns = record_i64(control, "pace_ns", 0);
    return pace_ns > 0 ? pace_ns : record_i64(control, "step_ns", 0);
}

void goodput_measure(struct goodput *ret, const struct history *h, const struct rounds *rs) {
    const struct record *control = history_newest(h, SOURCE_HARNESS, "control");
    int64_t pace_ns = control ? control_pace_ns(control) : 0;
    struct goodput_span s = span_of(rs);
    int64_t last_ns = s.last_ns;
    count_the_end(&s, h, rs);
    *ret = (struct goodput){.printed = rs->printed};
    if (!is_measured(&s))
        ret->unknown = "the job told no two steps";
    else if (pace_ns <= 0)
        ret->unknown = "the control run does not tell how long a step takes";
    if (ret->unknown)
        return;
    ret->steps = s.last - s.first;
    ret->span_s = seconds(&s);
    ret->control_s = (double)ret->steps * (double)pace_ns / 1e9;
    ret->percent = 100 * ret->control_s / ret->span_s;
    ret->first_seq = seq_of(h, s.began, s.first_ns);
    ret->last_seq = seq_of(h, s.ended, last_ns);
}
