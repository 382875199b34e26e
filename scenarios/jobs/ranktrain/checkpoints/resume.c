#include "scenarios/jobs/ranktrain/checkpoints/resume.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a rank has. */
struct offer {
    int64_t step; /* -1: nothing */
    int16_t passed_over, foreign;
    int32_t in_memory;
};

struct listener {
    int rank, n, foreign;
};

static void say_ignored(void *arg, int code, const char *sentence) {
    struct listener *l = arg;
    l->n += code != 0;
    l->foreign += code == -EXDEV;
    fprintf(stderr, "ranktrain: rank %d: %s\n", l->rank, sentence);
}

/* Who is to read, and reads. */
static int make_offer(struct bootstrap *b, const struct resume_request *q, struct state *s,
                      struct state *whole, struct resume *ret, struct offer *offer,
                      struct err *err) {
    struct listener l = {.rank = b->request.rank};
    *offer =
        (struct offer){.step = q->in_memory ? (int64_t)s->step : -1, .in_memory = q->in_memory};
    if (q->in_memory)
        snprintf(ret->path, sizeof(ret->path), "memory of rank %d", l.rank);
    if (!q->place->dir)
        return 0;
    FILE_CLOSE int dir = checkpoint_open(q->place, err);
    int r = dir < 0 ? dir : places_find(b, dir, &ret->places, err);
    if (r < 0)
        return r;
    ret->keeps = ret->places.keeper[l.rank] == l.rank;
    if (!ret->keeps || q->in_memory)
        return 0;
    if (!state_is_whole(s))
        state_init(whole, q->place->model, q->place->optimizer);
    struct state *to = state_is_whole(s) ? s : whole;
    r = checkpoint_load(q->place, q->last_step, to, ret->path, say_ignored, &l, err);
    if (r > 0)
        offer->step = (int64_t)to->step;
    offer->passed_over = (int16_t)l.n;
    offer->foreign = (int16_t)l.foreign;
    return r < 0 ? r : 0;
}

/* The newest; of equal ones the first. Returns its rank, -1: nobody has any. */
static int choose(const struct offer *offers, int world) {
    int best = -1;
    for (int rank = 0; rank < world; rank++)
        if (offers[rank].step >= 0 && (best < 0 || offers[rank].step > offers[best].step))
            best = rank;
    return best;
}

static int none_left(const struct resume_request *q, const struct offer *offers, int world,
                     struct err *err) {
    int n = 0, foreign = 0;
    for (int rank = 0; rank < world; rank++) {
        n += offers[rank].passed_over;
        foreign += offers[rank].foreign;
    }
    if (!n || q->fresh)
        return 0;
    return err_say(
        err, n == foreign ? -EXDEV : -ENODATA,
        "%s holds %d checkpoint%s and none of them can be used, for the reasons above: put "
        "a good one there, use another --checkpoint-dir, or begin anew with --fresh",
        q->place->dir, n, n == 1 ? "" : "s");
}

/* What comes of a tensor goes to a state, and to a whole one where there is room for it. */
struct wants {
    struct state_range held;
    float *to, *whole; /* whole NULL: none */
};

/* Copies from[0..n), which rank `holder` has, to all. */
static int share_floats(struct bootstrap *b, int holder, const float *from, size_t n,
                        const struct wants *w, struct err *err) {
    enum { BLOCK = 64 * 1024 };
    float *block = mem_array(float, BLOCK);
    int r = 0;
    for (size_t at = 0; at < n && r == 0; at += BLOCK) {
        size_t length = n - at < BLOCK ? n - at : BLOCK;
        if (b->request.rank == holder)
            memcpy(block, from + at, length * sizeof(*block));
        r = bootstrap_share_from(b, holder, block, length * sizeof(*block), err);
        if (r == 0)
            state_put(w->to, w->held, at, block, length);
        if (r == 0 && w->whole)
            memcpy(w->whole + at, block, length * sizeof(*block));
    }
    free(block);
    return r;
}

/* whole: where the holder has it when its state has no room for all, and where who lacks it gets it;
 * of no use where it is empty. */
static int share(struct bootstrap *b, int holder, struct state *s, struct state *whole,
                 struct err *err) {
    const struct state *from = whole->weights ? whole : s;
    bool holds = b->request.rank == holder;
    struct wants w = {s->held, s->weights, holds ? NULL : whole->weights};
    int r = share_floats(b, holder, from->weights, s->values, &w, err);
    for (int i = 0; i < s->moments && r == 0; i++) {
        w = (struct wants){s->held_moments, s->moment[i], holds ? NULL : whole->moment[i]};
        r = share_floats(b, holder, from->moment[i], s->trained, &w, err);
    }
    return r;
}

/* whole: where this rank has loaded what it offers, when it does not hold all of it. */
static int agree(struct bootstrap *b, const struct resume_request *q, struct state *s,
                 struct state *whole, struct resume *ret, struct err *err) {
    struct offer mine, all[BOOTSTRAP_MEMBERS];
    int world = b->request.world;
    int r = make_offer(b, q, s, whole, ret, &mine, err);
    if (r == 0)
        r = bootstrap_exchange(b, &mine, sizeof(mine), all, err);
    if (r < 0)
        return r;
    int from = ret->holder = choose(all, world);
    if (from < 0) {
        state_clear(s);
        *ret->path = '\0';
        model_init_part(q->place->model, q->seed, s->held.lo, s->held.hi, s->weights);
        return none_left(q, all, world, err);
    }
    /* Until it has come as a whole this is the state of no step. */
    s->step = mine.in_memory && mine.step == all[from].step ? s->step : 0;
    r = bootstrap_share_from(b, from, ret->path, sizeof(ret->path), err);
    if (r == 0)
        r = share(b, from, s, whole, err);
    if (r < 0)
        return r;
    s->step = whole->step = (uint64_t)all[from].step;
    ret->lacks = ret->keeps && s->step && !all[from].in_memory && mine.step != all[from].step;
    return 0;
}

int resume_agree(struct bootstrap *b, const struct resume_request *q, struct state *s,
                 struct state *ret_lacking, struct resume *ret, struct err *err) {
    int64_t begun_ns = deadline_now_ns();
    struct state whole = {0};
    struct resume res = {.holder = -1};
    int r = agree(b, q, s, &whole, &res, err);
    if (r == 0 && res.lacks)
        *ret_lacking = whole;
    else
        state_fini(&whole);
    if (r < 0)
        return r;
    res.took_ns = deadline_now_ns() - begun_ns;
    *ret = res;
    return 0;
}
