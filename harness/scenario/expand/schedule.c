#include "harness/scenario/expand/schedule.h"

#include "base/str.h"
#include "faults/effect.h"
#include "harness/scenario/target.h"

enum hit hit_of(const char *fault) {
    unsigned effects = fault_effects(fault);
    bool lasting = effects & EFFECT_LASTING;
    if (effects & EFFECT_ENDS_WORKER)
        return HIT_WORKER;
    if (lasting && effects & EFFECT_STOPS_WORKER)
        return HIT_HANG;
    if (effects & EFFECT_ENDS_NODE && effects & (EFFECT_LASTING | EFFECT_ASKS_TO_LEAVE))
        return HIT_NONE; /* what becomes of its node later it decides itself */
    if (effects & (EFFECT_ENDS_NODE | EFFECT_ASKS_TO_LEAVE))
        return HIT_END;
    if (lasting && effects & (EFFECT_PARTS_NETWORK | EFFECT_STALLS_NODE))
        return HIT_CUT;
    return HIT_NONE;
}

const char *const *hit_names(struct arena *a) {
    const char *const *all = fault_names();
    size_t n = 0, drawn = 0;
    while (all[n])
        n++;
    const char **names = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        if (hit_of(all[i]))
            names[drawn++] = all[i];
    names[drawn] = NULL;
    return names;
}

const char *hit_list(struct arena *a) {
    const char *list = "";
    for (const char *const *name = hit_names(a); *name; name++)
        list = arena_printf(a, "%s%s%s", list, *list ? ", " : "", *name);
    return list;
}

struct hazard *hit_shares(struct arena *a, const struct hazards *counted) {
    const char *const *names = hit_names(a);
    size_t n = 0, max = sizeof(counted->v) / sizeof(*counted->v);
    while (names[n])
        n++;
    struct hazard *v = arena_array(a, struct hazard, (n > max ? n : max) + 1);
    for (size_t i = 0; i < n && !counted->v[0].fault; i++)
        v[i] = (struct hazard){names[i], 1};
    for (size_t i = 0; counted->v[i].fault; i++)
        v[i] = counted->v[i];
    return v;
}

/* The node that serves the store must stay: all meet there. */
static int store_node(const struct scenario *s) {
    int64_t n = -1;
    if (s->cluster.store_on && s->cluster.store_on[0] == 'n')
        str_to_i64(s->cluster.store_on + 1, 0, INT32_MAX, &n);
    else if (s->cluster.store == STORE_EMBEDDED && str_eq(s->job.launcher, "torchrun"))
        n = 0;
    return (int)n;
}

bool schedule_begin(struct schedule *q, struct reader *r, const char *prefix, struct place p) {
    const struct scenario *s = r->s;
    *q = (struct schedule){.r = r, .prefix = prefix, .place = p};
    q->nodes = s->cluster.start ? s->cluster.start : s->cluster.nodes;
    q->least = s->job.min_nodes ? s->job.min_nodes : 1;
    q->spares = s->job.max_nodes && q->nodes > s->job.max_nodes;
    q->fixed = store_node(s);
    q->away_until = arena_array(r->arena, int64_t, (size_t)q->nodes + 1);
    q->v = arena_array(r->arena, struct timeline_entry, SCHEDULE_MAX + 1);
    for (size_t i = 0; i < r->ids_n; i++)
        if (str_starts(r->ids[i], prefix))
            return diagnostics_add(
                r->d, s->timeline[i].place,
                "the id \"%s\" begins like those of the faults that are drawn; choose "
                "another one",
                r->ids[i]);
    return true;
}

static int nodes_there(const struct schedule *q, int64_t at_ns) {
    int n = 0;
    for (int i = 0; i < q->nodes; i++)
        n += q->away_until[i] <= at_ns;
    return n;
}

const char *schedule_why_not(const struct schedule *q, const char *fault, int node, int64_t at_ns) {
    struct arena *a = q->r->arena;
    enum hit hit = hit_of(fault);
    bool takes_away = hit == HIT_END || hit == HIT_CUT;
    if (q->n + 3 > SCHEDULE_MAX)
        return arena_printf(a, "a timeline has at most %d lines", SCHEDULE_MAX);
    if (q->away_until[node] > at_ns)
        return arena_printf(a, "n%d is away then", node);
    if (takes_away && node == q->fixed)
        return arena_printf(a, "n%d has the store", node);
    if (takes_away && nodes_there(q, at_ns) - 1 < q->least)
        return arena_printf(a, "the job needs %d node%s", q->least, q->least == 1 ? "" : "s");
    return NULL;
}

static struct timeline_entry *add_line(struct schedule *q, const char *id, const char *fault,
                                       const char *on) {
    struct timeline_entry *a = &q->v[q->n++];
    *a = (struct timeline_entry){.id = id,
                                 .fault = fault,
                                 .heal = -1,
                                 .times_n = 1,
                                 .place = q->place,
                                 .fault_place = q->place};
    a->when = (struct trigger){.nth = 1, .after = -1, .patient = true, .place = q->place};
    target_parse(q->r->arena, on, &a->on, NULL); /* our own words */
    a->on.text = on;
    a->on.place = q->place;
    return a;
}

/* So long after that entry is in force. */
static struct timeline_entry *add_follower(struct schedule *q, const struct timeline_entry *first,
                                           const char *suffix, const char *fault, int64_t plus_ns) {
    struct arena *a = q->r->arena;
    size_t own = q->r->s->timeline_n;
    struct timeline_entry *next =
        add_line(q, arena_printf(a, "%s%s", first->id, suffix), fault, first->on.text);
    next->when.after = (int)(own + (size_t)(first - q->v));
    next->when.after_id = first->id;
    next->when.plus_ns = plus_ns;
    return next;
}

/* Who leaves is on, without an agent, until somebody switches it off. */
static void add_return(struct schedule *q, const struct timeline_entry *gone, int64_t lasts_ns) {
    const struct timeline_entry *off = gone;
    if (fault_effects(gone->fault) & EFFECT_ASKS_TO_LEAVE) {
        const char *kill = fault_that(EFFECT_ENDS_NODE | EFFECT_LOUD);
        off = add_follower(q, gone, "-off", kill, lasts_ns / 2);
        lasts_ns -= lasts_ns / 2;
    }
    struct timeline_entry *back =
        add_follower(q, off, "-back", fault_that(EFFECT_STARTS_NODE), lasts_ns);
    back->id = arena_printf(q->r->arena, "%s-back", gone->id);
}

void schedule_add(struct schedule *q, const char *fault, int node, int worker, int64_t at_ns,
                  int64_t lasts_ns) {
    static const struct pair code = {"code", "1", {0}};
    struct arena *a = q->r->arena;
    enum hit hit = hit_of(fault);
    bool on_worker = hit == HIT_WORKER || hit == HIT_HANG;
    const char *on = !on_worker  ? arena_printf(a, "n%d", node)
                     : q->spares ? "random of workers"
                                 : arena_printf(a, "n%d/%d", node, worker);
    struct timeline_entry *line =
        add_line(q, arena_printf(a, "%s%zu", q->prefix, ++q->faults), fault, on);
    line->when.has_time = true;
    line->when.time_ns = at_ns;
    if (fault_effects(fault) & EFFECT_OWN_EXIT) {
        line->with = &code;
        line->with_n = 1;
    }
    bool ever = lasts_ns == SCHEDULE_FOR_EVER;
    if (!ever && (hit == HIT_HANG || hit == HIT_CUT))
        line->for_ns = lasts_ns;
    if (!ever && hit == HIT_END)
        add_return(q, line, lasts_ns);
    if (hit == HIT_END || hit == HIT_CUT)
        q->away_until[node] = ever ? INT64_MAX : at_ns + lasts_ns;
    if (at_ns > q->last_ns)
        q->last_ns = at_ns;
}

void schedule_end(struct schedule *q, const char *note) {
    struct reader *r = q->r;
    struct scenario *s = r->s;
    size_t own = s->timeline_n, all = own + q->n;
    struct timeline_entry *v = arena_array(r->arena, struct timeline_entry, all + 1);
    const char **ids = arena_array(r->arena, const char *, all + 1);
    for (size_t i = 0; i < all; i++) {
        v[i] = i < own ? s->timeline[i] : q->v[i - own];
        ids[i] = v[i].id;
    }
    s->timeline = v;
    s->timeline_n = all;
    s->drawn = note;
    r->ids = ids;
    r->ids_n = r->ids_read = all;
}
