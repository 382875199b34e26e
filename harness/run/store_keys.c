/* How many keys the job has in rankrun's store, asked when a round is complete: what no round
 * clears away piles up there. The store is asked in its own network by rankquake inquire, beside
 * the run, and one that gives no answer has given none. */
#include "harness/run/engine.h"

#include "base/str.h"
#include "harness/run/store_question.h"

struct store_keys {
    struct question *open; /* NULL: none */
    int asked;             /* the newest round that it was asked in */
};

static void on_answer(void *arg, const struct question_answer *given) {
    struct engine *e = arg;
    struct store_keys *k = own(e, store_keys);
    int64_t n = -1;
    k->open = NULL;
    if (given->late || given->ended || !str_to_i64(given->text, 0, INT64_MAX, &n))
        return;
    struct json_writer *w = engine_record(e, SOURCE_LAUNCHER, "store-keys");
    json_put_i64(w, "round", k->asked);
    json_put_i64(w, "n", n);
    engine_recorded(e);
}

static void ask(struct engine *e, struct node *n) {
    ARENA_FINI struct arena arena = {0};
    struct err err;
    const char *port = arena_printf(&arena, "%d", PLAN_STORE_PORT);
    const char *const argv[] = {
        "rankquake", "inquire", "keys", node_plan(n)->addr, port, e->plan->scenario->name, NULL};
    own(e, store_keys)->open = store_question_ask(e, n, argv, on_answer, e, &err);
}

static void record(struct engine *e, const struct record *r) {
    struct store_keys *k = own(e, store_keys);
    const struct rounds *rs = e->rec.rounds;
    bool ours = str_eq(e->plan->scenario->job.launcher, "rankrun") && e->plan->endpoint;
    if (!ours || !record_is(r, "worker-start") || !rs->n || e->phase > ENGINE_RUNNING || k->open)
        return;
    const struct round *newest = rs->v[rs->n - 1];
    if (!newest->complete || k->asked >= newest->number)
        return;
    k->asked = newest->number;
    cluster_each(n, e->cluster) {
        if (!k->open && plan_serves_store(e->plan, node_plan(n)) && node_is_on(n))
            ask(e, n);
    }
}

static void end(struct engine *e, const char *why) {
    struct store_keys *k = own(e, store_keys);
    (void)why;
    k->open = question_abandon(k->open);
}

static void close_keys(struct engine *e) {
    end(e, "");
}

const struct run_part run_part_store_keys = {
    .size = sizeof(struct store_keys),
    .record = record,
    .end = end,
    .close = close_keys,
};
