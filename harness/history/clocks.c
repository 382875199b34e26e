#include "harness/history/clocks.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which clocks there are ---- */

static size_t place_of(struct clocks *c, size_t *cap, const char *node) {
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(c->v[i].node, node))
            return i;
    if (c->n == *cap) {
        struct node_clock *old = c->v;
        *cap = *cap ? *cap * 2 : 16;
        c->v = arena_array(&c->arena, struct node_clock, *cap);
        if (c->n)
            memcpy(c->v, old, c->n * sizeof(*old));
    }
    c->v[c->n] = (struct node_clock){.node = node, .host = node};
    return c->n++;
}

static void take_sample(struct node_clock *k, const struct record *r) {
    k->host = record_text(r, "host");
    k->ahead_ns = record_i64(r, "ahead_ns", 0);
    k->bound_ns = record_i64(r, "bound_ns", 0);
    k->round_ns = record_i64(r, "round_ns", 0);
    k->samples = record_i64(r, "samples", 0);
}

static bool is_of(const struct record *r, const char *kind) {
    return r->source == SOURCE_HARNESS && record_is(r, kind) && *r->node;
}

/* ---- what came of a fault came after it ---- */

static bool is_end_of(const struct record *r, int64_t pid) {
    return r->source == SOURCE_KERNEL && r->pid == pid &&
           (record_is(r, "worker-exit") || record_is(r, "agent-exit") ||
            record_is(r, "store-exit"));
}

static void end_after(const struct clocks *c, const struct history *h, size_t fired, int64_t pid,
                      int64_t *floor_ns) {
    for (size_t i = fired + 1; i < h->n; i++) {
        if (!is_end_of(h->records[i], pid))
            continue;
        if (c->of[i] >= 0)
            floor_ns[i] = h->records[fired]->t_ns;
        return;
    }
}

static bool same_firing(const struct record *a, const struct record *b) {
    return str_eq(record_text(a, "id"), record_text(b, "id")) &&
           record_i64(a, "n", 1) == record_i64(b, "n", 1);
}

/* Who was held on that node until the fault was in force; 0: nobody. */
static int64_t held_on(const struct history *h, size_t fired, const char *node) {
    const struct record *f = h->records[fired];
    int64_t step = record_i64(f, "step", -1);
    for (size_t i = fired; i-- > 0 && json_get_bool(f->fields, "held", false) && step >= 0;) {
        const struct record *r = h->records[i];
        if (r->source == SOURCE_JOB && record_is(r, "step") && str_eq(r->node, node))
            return record_i64(r, "step", -1) == step ? r->pid : 0;
    }
    return 0;
}

/* Of a node it is who was held there: it lived. */
static int64_t struck(const struct history *h, size_t fired, const struct json *target) {
    return str_eq(json_get_string(target, "what", ""), "node")
               ? held_on(h, fired, json_get_string(target, "node", ""))
               : json_get_i64(target, "pid", 0);
}

/* The harness has fired it, by its own clock, and then it was done to a process that lived: that cannot
 * have ended before. By the place of a record; 0: nothing is known of it. */
static void find_floors(const struct clocks *c, const struct history *h, int64_t *floor_ns) {
    for (size_t i = 0; i < h->n; i++) {
        const struct record *in_force = h->records[i];
        if (in_force->source != SOURCE_HARNESS || !record_is(in_force, "fault-in-force"))
            continue;
        size_t fired = i;
        while (fired && !(h->records[fired]->source == SOURCE_HARNESS &&
                          record_is(h->records[fired], "fault-fired") &&
                          same_firing(h->records[fired], in_force)))
            fired--;
        json_each(t, fired ? record_get(in_force, "targets") : NULL)
            end_after(c, h, fired, struck(h, fired, t), floor_ns);
    }
}

/* ---- what is known of the stamps of one of them ---- */

/* A life of a clock lasts until it is set. */
struct stamped_record {
    size_t at; /* in the history */
    int64_t there_ns;
    int life; /* -1: it may be of the life before or of that after */
};

struct stamps {
    struct stamped_record *v;
    size_t n;
    const int64_t *floor_ns; /* find_floors */
};

static int by_stamp(const void *a, const void *b) {
    const struct stamped_record *x = a, *y = b;
    if (x->life != y->life)
        return x->life < y->life ? -1 : 1;
    if (x->there_ns != y->there_ns)
        return x->there_ns < y->there_ns ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* What its helper has counted by itself was so when it was stamped. */
static int64_t late_ns(const struct record *r) {
    return record_is(r, "leftovers") ? 0 : record_late_ns(r);
}

/* A floor that lies above all that is possible is none. */
static int64_t not_before(int64_t t_ns, int64_t floor_ns, int64_t latest_ns) {
    return floor_ns > t_ns && floor_ns <= latest_ns ? floor_ns : t_ns;
}

/* What lies between the last time that it was asked and the time at which it was found to have been
 * set is of one of the two lives. */
static void leave_open(struct clocks *c, const struct history *h, struct stamps *s, size_t since,
                       const struct record *step) {
    int64_t by_ns = llabs(record_i64(step, "ahead_ns", 0) / 2 - record_i64(step, "was_ns", 0) / 2);
    int64_t wider_ns = by_ns >= INT64_MAX / 8 ? INT64_MAX / 4 : 2 * by_ns + 2;
    for (size_t i = s->n; i-- > 0 && s->v[i].at > since;) {
        size_t at = s->v[i].at;
        s->v[i].life = -1;
        c->earliest_ns[at] = h->records[at]->t_ns - h->records[at]->bound_ns - wider_ns;
        c->latest_ns[at] = h->records[at]->t_ns + h->records[at]->bound_ns + wider_ns;
    }
}

/* So much may our clock have gone on while theirs has gone on by this; rounded up and down. */
static int64_t longest_ns(int64_t theirs_ns) {
    return theirs_ns + theirs_ns / (1000000 / CLOCKS_DRIFT_PPM) + 1;
}

static int64_t shortest_ns(int64_t theirs_ns) {
    return theirs_ns - theirs_ns / (1000000 / CLOCKS_DRIFT_PPM) - 1;
}

static bool same_life(const struct stamped_record *a, const struct stamped_record *b) {
    return a->life >= 0 && a->life == b->life;
}

/* Each by the one before it, then each by the one behind it: then by all. */
static void narrow(struct clocks *c, const struct stamps *s) {
    for (size_t i = 1; i < s->n; i++) {
        const struct stamped_record *before = &s->v[i - 1], *m = &s->v[i];
        if (!same_life(before, m))
            continue;
        int64_t went_ns = m->there_ns - before->there_ns;
        int64_t late = c->latest_ns[before->at] + longest_ns(went_ns);
        int64_t early = c->earliest_ns[before->at] + shortest_ns(went_ns);
        if (late < c->latest_ns[m->at])
            c->latest_ns[m->at] = late;
        if (early > c->earliest_ns[m->at])
            c->earliest_ns[m->at] = early;
    }
    for (size_t i = s->n; i-- > 1;) {
        const struct stamped_record *m = &s->v[i - 1], *behind = &s->v[i];
        if (!same_life(m, behind))
            continue;
        int64_t went_ns = behind->there_ns - m->there_ns;
        int64_t late = c->latest_ns[behind->at] - shortest_ns(went_ns);
        int64_t early = c->earliest_ns[behind->at] - longest_ns(went_ns);
        if (late < c->latest_ns[m->at])
            c->latest_ns[m->at] = late;
        if (early > c->earliest_ns[m->at])
            c->earliest_ns[m->at] = early;
    }
}

/* So far it was about when they were stamped; what they tell of may have happened before that.
 * Stamps that contradict one another are each taken for itself: nobody has noticed that it was set. */
static void settle(struct clocks *c, const struct history *h, const struct stamps *s,
                   struct node_clock *k) {
    bool sound = true;
    for (size_t i = 0; i < s->n; i++)
        sound &= c->earliest_ns[s->v[i].at] <= c->latest_ns[s->v[i].at];
    k->least_ns = s->n ? INT64_MAX : 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = s->v[i].at;
        const struct record *r = h->records[at];
        if (!sound && s->v[i].life >= 0) {
            c->earliest_ns[at] = r->t_ns - r->bound_ns + record_late_ns(r);
            c->latest_ns[at] = r->t_ns + r->bound_ns;
        }
        c->earliest_ns[at] =
            not_before(c->earliest_ns[at] - late_ns(r), s->floor_ns[at], c->latest_ns[at]);
        int64_t half_ns = (c->latest_ns[at] - c->earliest_ns[at] + 1) / 2;
        k->least_ns = half_ns < k->least_ns ? half_ns : k->least_ns;
        k->most_ns = half_ns > k->most_ns ? half_ns : k->most_ns;
    }
    k->stamped = s->n;
}

/* The host has been off, and its clock is another one now. */
static bool begins_anew(const struct record *r) {
    return is_of(r, "power") && str_eq(record_text(r, "do"), "on") && !record_get(r, "error");
}

static void read_stamps(struct clocks *c, const struct history *h, struct stamps *s,
                        int32_t place) {
    struct node_clock *k = &c->v[place];
    size_t asked = 0;
    int life = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct record *r = h->records[i];
        if (c->of[i] == place) {
            c->latest_ns[i] = r->t_ns + r->bound_ns;
            c->earliest_ns[i] = not_before(r->t_ns - r->bound_ns + record_late_ns(r),
                                           s->floor_ns[i], c->latest_ns[i]);
            s->v[s->n++] = (struct stamped_record){i, record_there_ns(r), life};
        } else if (is_of(r, "clock-step") && str_eq(r->node, k->node)) {
            leave_open(c, h, s, asked, r);
            k->steps++;
            k->step_seq = r->seq;
            life++;
        } else if (begins_anew(r) && str_eq(r->node, k->node)) {
            life++; /* of another clock: nobody has set the one before */
        } else if (is_of(r, "clock") && str_eq(r->node, k->node)) {
            take_sample(k, r);
            asked = i;
        }
    }
    qsort(s->v, s->n, sizeof(*s->v), by_stamp);
    narrow(c, s);
    settle(c, h, s, k);
}

void clocks_load(struct clocks *c, const struct history *h) {
    *c = (struct clocks){0};
    size_t cap = 0;
    bool any = false;
    for (size_t i = 0; i < h->n && !any; i++)
        any = h->records[i]->bound_ns || is_of(h->records[i], "clock");
    if (!any)
        return;
    c->of = arena_array(&c->arena, int32_t, h->n);
    c->earliest_ns = arena_array(&c->arena, int64_t, h->n);
    c->latest_ns = arena_array(&c->arena, int64_t, h->n);
    for (size_t i = 0; i < h->n; i++) {
        const struct record *r = h->records[i];
        bool asked = is_of(r, "clock") || is_of(r, "clock-step");
        size_t place = r->bound_ns || asked ? place_of(c, &cap, r->node) : 0;
        c->of[i] = r->bound_ns ? (int32_t)place : -1;
        c->earliest_ns[i] = c->latest_ns[i] = r->t_ns;
    }
    int64_t *floor_ns = arena_array(&c->arena, int64_t, h->n);
    find_floors(c, h, floor_ns);
    struct stamps s = {.v = arena_array(&c->arena, struct stamped_record, h->n),
                       .floor_ns = floor_ns};
    for (size_t k = 0; k < c->n; k++) {
        s.n = 0;
        read_stamps(c, h, &s, (int32_t)k);
    }
}

void clocks_fini(struct clocks *c) {
    arena_fini(&c->arena);
    *c = (struct clocks){0};
}

const struct node_clock *clocks_find(const struct clocks *c, const char *node) {
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(c->v[i].node, node))
            return &c->v[i];
    return NULL;
}

int64_t clocks_most_ns(const struct clocks *c) {
    int64_t one = 0, other = 0; /* the two widest */
    for (size_t i = 0; i < c->n; i++) {
        int64_t most = c->v[i].most_ns;
        other = most > one ? one : most > other ? most : other;
        one = most > one ? most : one;
    }
    return one + other;
}

int64_t clocks_moment(const struct clocks *c, const struct history *h, size_t at, double share) {
    if (!c->of || c->of[at] < 0)
        return h->records[at]->t_ns;
    int64_t width = c->latest_ns[at] - c->earliest_ns[at];
    int64_t t = c->earliest_ns[at] + (int64_t)(share * (double)width);
    return t > 0 ? t : 1; /* 0 is what was not seen */
}

const char *clocks_text(char *out, size_t size, int64_t bound_ns, bool unicode) {
    bool seconds = bound_ns >= 1000000000;
    *out = '\0';
    if (bound_ns > 0)
        snprintf(out, size, " %s %.3g %s", unicode ? "\u00b1" : "+-",
                 (double)bound_ns / (seconds ? 1e9 : 1e6), seconds ? "s" : "ms");
    return out;
}
