#include "harness/judge/checks/lost.h"

#include "base/str.h"

#include <stdio.h>

/* What came while it was away is read within that time. */
static const int64_t CATCHING_UP_NS = 1000000000;

/* ---- it was away ---- */

/* A lag that says why is one that others had: they waited for the harness. */
static bool is_absence(const struct record *r) {
    return r->source == SOURCE_HARNESS && record_is(r, "lag") && !*record_text(r, "why") &&
           record_i64(r, "max_ns", 0) > HISTORY_AWAY_NS;
}

/* It was there when the window of this record began. */
static int64_t absent_from_ns(const struct record *r) {
    int64_t max = record_i64(r, "max_ns", 0), window = record_i64(r, "window_ns", 0);
    int64_t before = window > max ? window : max;
    return before < r->t_ns ? r->t_ns - before : 0;
}

static const struct record *longest_absence(const struct history *h) {
    const struct record *longest = NULL;
    history_each(r, h) {
        if (is_absence(r) &&
            (!longest || record_i64(r, "max_ns", 0) > record_i64(longest, "max_ns", 0)))
            longest = r;
    }
    return longest;
}

static size_t first_since(const struct history *h, int64_t t_ns) {
    size_t i = 0;
    while (i < h->n && h->records[i]->t_ns < t_ns)
        i++;
    return i;
}

/* It stood still for so long that what lasted was undone by others: from then on it is another run
 * than the one that was asked for. */
static void tell_dead_man(struct lost *l, const struct record *r) {
    l->blind = true;
    l->seq = r->seq;
    snprintf(l->why, sizeof(l->why),
             "the harness stood still for %.1f s, and limits.dead_man had what lasted undone",
             (double)record_i64(r, "silent_ns", 0) / 1e9);
}

static bool find_absence(struct lost *l, const struct history *h) {
    const struct record *longest = longest_absence(h);
    const struct record *dead_man = history_newest(h, SOURCE_HARNESS, "dead-man");
    if (!longest && dead_man) { /* others have found it silent where it has not noticed it */
        int64_t since_ns = dead_man->t_ns - record_i64(dead_man, "silent_ns", 0);
        *l = (struct lost){.any = true, .sound_n = first_since(h, since_ns)};
        tell_dead_man(l, dead_man);
    }
    if (!longest)
        return dead_man;
    bool blind = record_i64(longest, "max_ns", 0) > HISTORY_BLIND_NS;
    *l = (struct lost){.any = true, .blind = blind, .seq = longest->seq, .sound_n = h->n};
    history_each(r, h) {
        size_t sound = is_absence(r) ? first_since(h, absent_from_ns(r)) : h->n;
        l->sound_n = sound < l->sound_n ? sound : l->sound_n;
    }
    snprintf(l->why, sizeof(l->why),
             "the harness itself was away for %.1f s (a host or a process that was stopped)",
             (double)record_i64(longest, "max_ns", 0) / 1e9);
    if (dead_man)
        tell_dead_man(l, dead_man);
    return true;
}

bool lost_spares(const struct history *h, int64_t seq) {
    int64_t t_ns = -1;
    history_each(r, h) if (r->seq == seq) t_ns = r->t_ns;
    history_each(r, h) {
        if (is_absence(r) && t_ns >= absent_from_ns(r) && t_ns <= r->t_ns + CATCHING_UP_NS)
            return false;
    }
    return t_ns >= 0;
}

/* ---- somebody unseen ---- */

/* It says itself that it trains. Its output, where that is read, belongs to somebody seen. */
static bool find_unseen(struct lost *l, const struct history *h, const struct rounds *rs) {
    history_each(r, h) {
        if (r->source != SOURCE_JOB || !record_is(r, "step") || *record_text(r, "from") ||
            !rs->workers_n || rounds_worker(rs, r->pid))
            continue;
        *l = (struct lost){.any = true, .blind = true, .seq = r->seq};
        snprintf(l->why, sizeof(l->why),
                 "process %lld on %s makes steps and was never seen to start: a worker went "
                 "unobserved",
                 (long long)r->pid, r->node);
        return true;
    }
    return false;
}

/* ---- a limit of the host ---- */

static bool find_limit(struct lost *l, const struct history *h) {
    const struct record *r = history_newest(h, SOURCE_HARNESS, "scarce");
    if (!r)
        return false;
    *l = (struct lost){.any = true, .seq = r->seq};
    str_copy(l->why, sizeof(l->why), record_text(r, "why"));
    return true;
}

void lost_find(struct lost *ret, const struct history *h, const struct rounds *rs) {
    *ret = (struct lost){.sound_n = h->n};
    if (!find_absence(ret, h) && !find_unseen(ret, h, rs))
        find_limit(ret, h);
}
