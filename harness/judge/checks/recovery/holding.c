#include "harness/judge/checks/recovery/holding.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static const char broken[] = "Drift: the last of many failures costs what the first did.";

/* Fewer looks say nothing of a trend: FEW only where each adds to what nothing but a leak adds to,
 * for what is new in the first rounds is no leak. */
enum { LOOKS_FEW = 3, LOOKS_MANY = 6 };
static const int64_t MEMORY_NOISE = 8 << 20;

/* What a leak of each kind looks like in few looks: a new coordinator has some connections more,
 * threads come and go, and a store is asked while agents write to it. */
const struct counted holding_counted[] = {
    {"socket", "socket", "sockets", true, false},
    {"pipe", "pipe", "pipes", true, true},
    {"file", "open file", "open files", true, true},
    {"pidfd", "pidfd", "pidfds", true, true},
    {"anonymous", "epoll, timer or event", "epolls, timers and events", true, true},
    {"processes", "process", "processes", false, true},
    {"threads", "thread", "threads", false, false},
    {0},
};

static const char *who_of(const struct record *u) {
    const char *who = record_text(u, "who");
    return *who ? who : "agent";
}

static int world_of(const struct trial *t, const struct record *r) {
    int64_t round = record_i64(r, "round", 0);
    return round > 0 && round <= (int64_t)t->rounds->n ? t->rounds->v[round - 1]->world_size : 0;
}

/* Who has more peers has more of many things: only rounds as large as the last are compared. */
static bool is_alike(const struct trial *t, const struct record *r) {
    const struct round *last = rounds_last_complete(t->rounds);
    return !last || world_of(t, r) == last->world_size;
}

/* The looks at one agent, store or rank, in order. */
struct watched_holder {
    const struct record *const *v;
    size_t n;
    const char *who, *node;
    int64_t rank; /* -1: no worker */
};

int64_t holding_count(const struct record *u, const struct counted *c) {
    if (!c->by_kind)
        return record_i64(u, c->key, str_eq(c->key, "processes") ? 1 : -1);
    const struct json *kinds = record_get(u, "kinds");
    return kinds ? json_get_i64(kinds, c->key, -1) : -1;
}

static const char *name_of(const struct trial *t, const struct watched_holder *s) {
    if (s->rank >= 0)
        return arena_printf(t->arena, "the worker of rank %lld", (long long)s->rank);
    if (str_eq(s->who, "store"))
        return arena_printf(t->arena, "the store on %s", s->node);
    if (str_eq(s->who, "helpers"))
        return arena_printf(t->arena, "what the agent of %s has started besides workers", s->node);
    return arena_printf(t->arena, "the agent of %s", s->node);
}

static bool piles_up(const struct readings *r, bool few) {
    if (r->n >= LOOKS_MANY)
        return readings_growth(r) > (int64_t)r->n / 3 && readings_goes_on(r);
    return few && r->n >= LOOKS_FEW && readings_rise(r, 0);
}

/* ---- descriptors, threads, processes ---- */

static bool tell(struct finding *f, const struct readings *r, const char *who,
                 const struct counted *c) {
    finding_fail(f, broken, "nothing that is held more of in every round",
                 "%s had %lld %s in the first of %zu looks and %lld in the last", who,
                 (long long)r->v[0], r->v[0] == 1 ? c->one : c->many, r->n,
                 (long long)r->v[r->n - 1]);
    readings_prove(f, r);
    return false;
}

/* What a worker has open for a moment, while it loads or saves, is no leak; what its launcher leaves to it is as
 * much more in every round. */
static bool rises_evenly(const struct readings *r) {
    for (size_t i = 2; i < r->n; i++)
        if (r->v[i] - r->v[i - 1] != r->v[1] - r->v[0])
            return false;
    return true;
}

static bool judge_counts(const struct trial *t, struct finding *f, const struct watched_holder *s,
                         struct readings *r) {
    for (const struct counted *c = holding_counted; c->key; c++) {
        r->n = 0;
        for (size_t i = 0; i < s->n; i++)
            readings_add(r, holding_count(s->v[i], c), s->v[i]->seq);
        if (piles_up(r, c->few && (s->rank < 0 || rises_evenly(r))))
            return tell(f, r, name_of(t, s), c);
    }
    return true;
}

static void read_usage(const struct watched_holder *s, const char *what, struct readings *r) {
    r->n = 0;
    for (size_t i = 0; i < s->n; i++)
        readings_add(r, record_i64(s->v[i], what, -1), s->v[i]->seq);
}

/* Of histories that do not tell kinds: one in every round is a leak. A few at the beginning are
 * not, nor are the two connections more of an agent that leads from now on. */
static bool judge_descriptors(const struct trial *t, struct finding *f,
                              const struct watched_holder *s, struct readings *r) {
    read_usage(s, "fds", r);
    if (r->n < LOOKS_MANY || !piles_up(r, false))
        return true;
    finding_fail(f, broken, "an agent has as many descriptors open in the last round as before",
                 "%s had %lld open in the first of %zu looks and %lld in the last", name_of(t, s),
                 (long long)r->v[0], r->n, (long long)r->v[r->n - 1]);
    readings_prove(f, r);
    return false;
}

/* ---- memory ---- */

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Half as much again, whatever the way; or a part of it, with more in every round behind the first
 * third. A store remembers some words of each round, and workers are other processes each time. */
static bool memory_piles_up(const struct watched_holder *s, const struct readings *r) {
    int64_t more = readings_growth(r), n = (int64_t)r->n;
    if (r->n < LOOKS_MANY)
        return false;
    if (more > larger(MEMORY_NOISE, r->v[0] / 2))
        return true;
    return s->rank < 0 && more > larger(256 << 10, larger(r->v[0] / 16, n * (32 << 10))) &&
           readings_rise(r, r->n / 3);
}

static bool judge_memory(const struct trial *t, struct finding *f, const struct watched_holder *s,
                         struct readings *r) {
    read_usage(s, "rss", r);
    if (!memory_piles_up(s, r))
        return true;
    finding_fail(f, broken, "as much memory is needed in the last round as before",
                 "%s had %lld kB in the first of %zu looks and %lld kB in the last", name_of(t, s),
                 (long long)r->v[0] >> 10, r->n, (long long)r->v[r->n - 1] >> 10);
    readings_prove(f, r);
    return false;
}

/* Of a rank the process is another one in each round. */
static int by_subject(const void *a, const void *b) {
    const struct record *x = *(const struct record *const *)a,
                        *y = *(const struct record *const *)b;
    int64_t i = record_i64(x, "rank", -1), k = record_i64(y, "rank", -1);
    int order = strcmp(who_of(x), who_of(y));
    if (order || i != k)
        return order ? order : i < k ? -1 : 1;
    if (i < 0 && (order = strcmp(x->node, y->node)))
        return order;
    return i >= 0 || x->pid == y->pid ? 0 : x->pid < y->pid ? -1 : 1;
}

static int by_subject_and_time(const void *a, const void *b) {
    const struct record *x = *(const struct record *const *)a,
                        *y = *(const struct record *const *)b;
    int order = by_subject(a, b);
    return order ? order : x->seq < y->seq ? -1 : x->seq > y->seq;
}

static const struct record **looks_of(const struct trial *t, size_t *ret_n) {
    size_t n = 0;
    history_each(u, t->history) n += record_is(u, "usage");
    const struct record **v = arena_array(t->arena, const struct record *, n + 1);
    n = 0;
    history_each(u, t->history) {
        if (u->source == SOURCE_KERNEL && record_is(u, "usage") && is_alike(t, u) &&
            !record_get(u, "step")) /* further looks in a round are growth.c's */
            v[n++] = u;
    }
    qsort(v, n, sizeof(*v), by_subject_and_time);
    *ret_n = n;
    return v;
}

static bool judge_subjects(const struct trial *t, struct finding *f, struct readings *r,
                           int *agents) {
    size_t n;
    const struct record **v = looks_of(t, &n);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && by_subject(&v[from], &v[to]) == 0;)
            to++;
        const struct record *u = v[from];
        struct watched_holder s = {v + from, to - from, who_of(u), u->node,
                                   record_i64(u, "rank", -1)};
        if (!judge_counts(t, f, &s, r) || !judge_descriptors(t, f, &s, r) ||
            !judge_memory(t, f, &s, r))
            return false;
        *agents +=
            str_eq(s.who, "agent") && s.n >= (record_get(u, "kinds") ? LOOKS_FEW : LOOKS_MANY);
    }
    return true;
}

/* ---- the store's keys ---- */

static bool judge_keys(const struct trial *t, struct finding *f, struct readings *r) {
    r->n = 0;
    history_each(k, t->history) {
        if (k->source == SOURCE_LAUNCHER && record_is(k, "store-keys") && is_alike(t, k))
            readings_add(r, record_i64(k, "n", -1), k->seq);
    }
    if (!piles_up(r, false))
        return true;
    finding_fail(f, broken, "a round's keys go when it is over",
                 "the job had %lld keys in its store in the first of %zu looks and %lld in the "
                 "last",
                 (long long)r->v[0], r->n, (long long)r->v[r->n - 1]);
    readings_prove(f, r);
    return false;
}

/* ---- the directory of checkpoints ---- */

static int64_t length_of(const struct record *r, const char *key) {
    const struct json *list = record_get(r, key);
    return list && list->type == JSON_ARRAY ? (int64_t)list->length : -1;
}

static bool is_look(const struct record *r) {
    return r->source == SOURCE_DISK && record_is(r, "checkpoints") && record_i64(r, "round", 0) > 0;
}

/* What is not whole: a write that a fault has broken off leaves one, until somebody clears up. */
static bool judge_drafts(const struct trial *t, struct finding *f, struct readings *r) {
    r->n = 0;
    history_each(look, t->history) {
        int64_t damaged = larger(length_of(look, "damaged"), 0);
        int64_t drafts = record_i64(look, "drafts", 0);
        if (is_look(look) && record_get(look, "drafts"))
            readings_add(r, drafts < INT64_MAX - damaged ? damaged + drafts : drafts, look->seq);
    }
    if (!piles_up(r, true))
        return true;
    finding_fail(f, broken, "what a broken save has left is cleared away by a later one",
                 "the directory had %lld unfinished checkpoints in the first of %zu looks and %lld "
                 "in the last",
                 (long long)r->v[0], r->n, (long long)r->v[r->n - 1]);
    readings_prove(f, r);
    return false;
}

/* A job that clears old ones away without faults does so after them, too. A round may be broken off
 * between saving and clearing; one that has saved twice has cleared in between. */
static bool judge_kept(const struct trial *t, struct finding *f) {
    const struct record *control = history_newest(t->history, SOURCE_HARNESS, "control");
    int64_t kept = control ? record_i64(control, "kept", -1) : -1, commits = 0;
    const struct record *last = NULL;
    history_each(r, t->history) {
        commits += r->source == SOURCE_JOB && record_is(r, "checkpoint-commit");
        if (!is_look(r))
            continue;
        last = commits > 1 && length_of(r, "complete") >= 0 ? r : last;
        commits = 0;
    }
    if (kept < 0 || !last || length_of(last, "complete") - 1 <= kept)
        return true;
    const char *expected =
        finding_expected(f, "at most %lld, as in the control run, and one", (long long)kept);
    finding_prove(f, control->seq, last->seq);
    return finding_fail(f, broken, expected,
                        "%lld complete checkpoints lay in the directory when round %lld, which had "
                        "saved more than once, was over",
                        (long long)length_of(last, "complete"),
                        (long long)record_i64(last, "round", 0));
}

bool holding_judge(const struct trial *t, struct finding *f, struct readings *r, int *ret_judged) {
    return judge_subjects(t, f, r, ret_judged) && judge_keys(t, f, r) && judge_drafts(t, f, r) &&
           judge_kept(t, f);
}
