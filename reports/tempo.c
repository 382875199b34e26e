#include "reports/tempo.h"

static const int64_t first_gap_ns = 50000000;

void tempo_begin(struct tempo *t, int64_t now_ns, int64_t done) {
    *t = (struct tempo){.newest = {now_ns, done}, .n = 1, .gap_ns = first_gap_ns};
    t->v[0] = t->newest;
}

/* Every other one is enough of what is long ago. */
static void thin_out(struct tempo *t) {
    for (size_t i = 0; 2 * i < t->n; i++)
        t->v[i] = t->v[2 * i];
    t->n = (t->n + 1) / 2;
    t->gap_ns *= 2;
}

void tempo_note(struct tempo *t, int64_t now_ns, int64_t done) {
    if (!t->n || done < t->newest.done) {
        tempo_begin(t, now_ns, done);
        return;
    }
    if (done == t->newest.done)
        return;
    t->newest = (struct tempo_sample){now_ns, done};
    if (now_ns - t->v[t->n - 1].t_ns < t->gap_ns)
        return;
    if (t->n == TEMPO_SAMPLES)
        thin_out(t);
    t->v[t->n++] = t->newest;
}

static double rate_since(const struct tempo *t, const struct tempo_sample *s) {
    int64_t ns = t->newest.t_ns - s->t_ns;
    return ns > 0 ? (double)(t->newest.done - s->done) * 1e9 / (double)ns : 0;
}

double tempo_rate(const struct tempo *t) {
    if (!t->n)
        return 0;
    int64_t middle_ns = t->v[0].t_ns + (t->newest.t_ns - t->v[0].t_ns) / 2;
    const struct tempo_sample *from = &t->v[0];
    for (size_t i = 0; i < t->n && t->v[i].t_ns <= middle_ns; i++)
        from = &t->v[i];
    return rate_since(t, from);
}

int64_t tempo_left_ns(const struct tempo *t, int64_t now_ns, int64_t total) {
    double rate = tempo_rate(t);
    int64_t since_ns = t->n ? now_ns - t->newest.t_ns : 0;
    if (rate <= 0 || total < t->newest.done)
        return -1;
    double left_ns = (double)(total - t->newest.done) / rate * 1e9, one_ns = 1e9 / rate;
    left_ns -= (double)since_ns < one_ns ? (double)since_ns : one_ns;
    return left_ns < 0 ? 0 : left_ns > 9e18 ? INT64_MAX : (int64_t)left_ns;
}
