#include "tests/agent/legacy/alone.h"

#include "base/rand.h"
#include "tests/agent/legacy/peers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000LL
#define S  1000000000LL

/* Of two clocks that a computer has one has counted a suspend. */
#define SUSPENDED_NS (3000 * S)

enum { ASKED_MAX = 16 };

/* A request that is not answered yet. */
struct asked {
    uint64_t id; /* 0: none */
    struct tree_request request;
    struct arena arena;
    bool waits_long; /* a WAIT that the store has seen */
};

struct alone {
    struct legacy *legacy;
    struct rand chance;
    struct peers peers;
    struct asked asked[ASKED_MAX];
    char uid[64], rdzv[96];
    int64_t now_ns, due_ns;
    int trouble; /* one answer of so many is another, or lost; 0: none */
    int slots, alive;
    bool starting, up, wants_port, over;
    int64_t round; /* that a look-up was asked for; 0: none */
};

static int draw(struct alone *o, int n) {
    return (int)rand_below(&o->chance, (uint64_t)n);
}

/* ---- what it asks for ---- */

static const char *copy(struct arena *a, const char *s) {
    return s ? arena_strdup(a, s) : NULL;
}

static void ask(struct alone *o, uint64_t id, const struct tree_request *q) {
    struct asked *k = o->asked;
    while (k->id)
        if (++k == o->asked + ASKED_MAX)
            abort();
    *k = (struct asked){.id = id, .request = *q};
    k->request.key = copy(&k->arena, q->key);
    k->request.value = copy(&k->arena, q->value);
    k->request.compare = copy(&k->arena, q->compare);
}

static void forget(struct alone *o, uint64_t id) {
    for (int i = 0; i < ASKED_MAX; i++)
        if (o->asked[i].id == id) {
            arena_fini(&o->asked[i].arena);
            o->asked[i].id = 0;
        }
}

static void act(struct alone *o, const struct action *a) {
    switch ((int)a->kind) {
    case ACTION_TREE:
        ask(o, a->tree.id, &a->tree.request);
        break;
    case ACTION_TREE_CANCEL:
        forget(o, a->tree.id);
        break;
    case ACTION_START:
        o->starting = o->up = true;
        o->alive = o->slots;
        break;
    case ACTION_NEED_PORT:
        o->wants_port = true;
        break;
    case ACTION_LOOK_UP:
        o->round = a->look_up.round;
        break;
    case ACTION_TIMER:
        o->due_ns = a->timer.at_ns;
        break;
    case ACTION_EXIT:
        o->over = true;
        break;
    default:
        break;
    }
}

static void step(struct alone *o, const struct event *e) {
    size_t n = 0;
    const struct action *a =
        legacy_step(o->legacy, e, (struct now){o->now_ns, o->now_ns + SUSPENDED_NS}, &n);
    for (size_t i = 0; i < n; i++)
        act(o, &a[i]);
}

static void happen(struct alone *o, enum event_kind kind) {
    step(o, &(struct event){.kind = kind});
}

/* ---- the store ---- */

static void answered(struct alone *o, uint64_t id, const struct tree_answer *answer) {
    struct event e = {.kind = EVENT_TREE, .tree = {.id = id, .answer = answer}};
    forget(o, id);
    step(o, &e);
}

/* What was asked is done, but something else is said, or nothing. */
static void answer_otherwise(struct alone *o, uint64_t id) {
    static const enum tree_result results[] = {
        TREE_LOST,   TREE_LOST,    TREE_LOST, TREE_LOST,    TREE_MISSING, TREE_CHANGED,
        TREE_EXISTS, TREE_CLEARED, TREE_DONE, TREE_REFUSED, TREE_NO_V2,   TREE_STRANGE};
    static const struct tree_node folder = {.key = "/f", .value = "", .dir = true, .modified = 9};
    struct tree_answer answer = {.text = "for a reason", .index = 1};
    answer.result = results[draw(o, draw(o, 20) ? 9 : 12)];
    if (answer.result == TREE_DONE && draw(o, 2)) {
        answer.nodes = &folder;
        answer.n = 1;
    }
    answered(o, id, &answer);
}

/* False: it is a WAIT, and there is nothing yet. */
static bool serve(struct alone *o, struct asked *k) {
    ARENA_FINI struct arena a = {0};
    struct tree_answer answer;
    uint64_t id = k->id;
    bool waits = k->request.verb == TREE_WAIT;
    tree_model_expire(o->peers.tree, o->now_ns);
    if (waits) {
        bool told = tree_model_wait(o->peers.tree, &k->request, !k->waits_long, &answer, &a);
        k->waits_long = true;
        if (!told)
            return false;
    } else {
        answer = tree_model_do(o->peers.tree, o->now_ns, &k->request, &a);
    }
    if (o->trouble && draw(o, o->trouble) == 0)
        answer_otherwise(o, id);
    else
        answered(o, id, &answer);
    return true;
}

/* One of those that wait for an answer, the first from anywhere on. */
static void serve_one(struct alone *o) {
    int first = draw(o, ASKED_MAX);
    for (int i = 0; i < ASKED_MAX; i++) {
        struct asked *k = &o->asked[(first + i) % ASKED_MAX];
        if (k->id && serve(o, k))
            return;
    }
}

static bool is_asked(const struct alone *o) {
    for (int i = 0; i < ASKED_MAX; i++)
        if (o->asked[i].id && o->asked[i].request.verb != TREE_WAIT)
            return true;
    return false;
}

/* ---- the workers ---- */

static void exit_one(struct alone *o) {
    static const int statuses[] = {0, 0, 0, 0, SIGKILL, 3 << 8};
    bool well = o->peers.calm && draw(o, 8);
    struct event e = {.kind = EVENT_WORKER_EXITED, .exited = {.pid = 4711, .realtime_ns = 17}};
    e.exited.local_rank = draw(o, o->slots);
    e.exited.wait_status = statuses[well ? 0 : draw(o, 6)];
    e.exited.error = draw(o, 3) == 0 ? NULL : draw(o, 2) ? "" : "what it left";
    o->alive--;
    step(o, &e);
}

static void end_group(struct alone *o) {
    struct event e = {.kind = EVENT_GROUP_REAPED, .reaped = {.fenced = draw(o, 8) == 0}};
    o->up = o->starting = false;
    if (draw(o, 12) == 0) {
        e.kind = EVENT_GUARD_DEAD;
        e.guard_dead.pid = 4712;
        e.guard_dead.wait_status = SIGKILL;
        e.guard_dead.fenced = draw(o, 3) == 0;
    }
    step(o, &e);
}

/* They run for long, as a rule. */
static void act_of_workers(struct alone *o) {
    if (o->starting) {
        o->starting = false;
        happen(o, EVENT_WORKERS_STARTED);
    } else if (o->up && o->alive > 0 && draw(o, 12) == 0) {
        exit_one(o);
    } else if (o->up && (o->alive == 0 || draw(o, o->peers.calm ? 200 : 20) == 0)) {
        end_group(o);
    }
}

static void act_of_host(struct alone *o) {
    struct event port = {.kind = EVENT_PORT, .port = {.addr = "own.example", .port = 29111}};
    struct event found = {.kind = EVENT_LOOKED_UP};
    if (o->wants_port && draw(o, 3)) {
        o->wants_port = false;
        step(o, &port);
    } else if (o->round && draw(o, 3)) {
        found.looked_up.round = o->round - (draw(o, 8) == 0);
        found.looked_up.found = draw(o, 3) != 0;
        o->round = found.looked_up.round == o->round ? 0 : o->round;
        step(o, &found);
    }
}

/* An etcd that has lost all it knew counts anew; whoever waits there is told nothing. */
static void lose_all(struct alone *o) {
    tree_model_free(o->peers.tree);
    o->peers.tree = tree_model_new();
}

/* ---- time ---- */

static void pass(struct alone *o) {
    o->now_ns += draw(o, 40) * MS;
    if (draw(o, o->peers.calm ? 40 : 12) == 0)
        o->now_ns += draw(o, 12) * S;
    else if (!is_asked(o) && o->due_ns > o->now_ns && o->due_ns < o->now_ns + 30 * S)
        o->now_ns = o->due_ns;
    if (o->now_ns < o->due_ns)
        return;
    o->due_ns = INT64_MAX;
    happen(o, EVENT_TIMER);
}

static void turn(struct alone *o) {
    struct event e = {.kind = EVENT_SIGNAL, .signal = {.signo = draw(o, 2) ? SIGTERM : SIGINT}};
    int what = draw(o, 100);
    if (what < 62) {
        serve_one(o);
    } else if (what < 75) {
        o->peers.now_ns = o->now_ns;
        peers_act(&o->peers, o->uid);
    } else if (what < 83) {
        act_of_workers(o);
    } else if (what < 89) {
        act_of_host(o);
    } else if (what < 99 || draw(o, 30)) {
        if (o->peers.strange && draw(o, 60) == 0)
            lose_all(o);
        pass(o);
    } else {
        step(o, &e);
    }
}

static struct rendezvous_config config_draw(struct alone *o) {
    struct rendezvous_config c = {
        .run_id = "job", .node = "me", .addr = "own.example", .role = "other", .attempt = ""};
    if (draw(o, 3))
        c.role = "default";
    c.slots = 1 + draw(o, 3);
    c.host = draw(o, 2) ? "own.example 192.0.2.7" : NULL;
    c.min = 1 + draw(o, 3);
    c.max = c.min + draw(o, 3);
    c.on_node_loss = draw(o, 2) ? NODE_LOSS_REPLACE : NODE_LOSS_GANG;
    c.max_restarts = draw(o, 4);
    c.last_call_ns = draw(o, 12) * 700 * MS;
    c.join_timeout_ns = 5 * S + draw(o, 200) * S;
    c.stop_timeout_ns = draw(o, 3) * S;
    c.shutdown_grace_ns = draw(o, 3) * 11 * S;
    c.give_up_ns = 5 * S + draw(o, 60) * S;
    return c;
}

/* The agent has not told anybody yet who it is: it is the only one that says what its node is called. */
static void learn_uid(struct alone *o) {
    char key[128];
    snprintf(key, sizeof(key), "%s/active_version", o->rdzv);
    const char *text = tree_model_get(o->peers.tree, key);
    const char *marks = text ? strstr(text, "\"rankrun\":{") : NULL;
    for (const char *at = marks; at && !o->uid[0]; at = strchr(at + 1, '"'))
        if (strspn(at + 1, "0123456789abcdef") == 32)
            snprintf(o->uid, sizeof(o->uid), "%.32s", at + 1);
}

static void alone_begin(struct alone *o, uint64_t seed) {
    static const int troubles[] = {0, 40, 40, 15, 5};
    struct err err;
    const char *prefix;
    rand_init(&o->chance, seed);
    struct rendezvous_config c = config_draw(o);
    prefix = draw(o, 4) ? NULL : "/own";
    snprintf(o->rdzv, sizeof(o->rdzv), "%s/run_job/rdzv", prefix ? prefix : "/torchelastic/p2p");
    o->peers = (struct peers){
        .tree = tree_model_new(), .chance = &o->chance, .rdzv = o->rdzv, .max = c.max};
    o->peers.torchrun = draw(o, 2);
    o->peers.newer = draw(o, 2);
    o->peers.calm = draw(o, 2);
    o->peers.strange = draw(o, 3) == 0;
    o->slots = c.slots;
    o->trouble = troubles[draw(o, 5)];
    o->now_ns = (1 + draw(o, 9)) * S;
    o->due_ns = INT64_MAX;
    o->legacy = legacy_new(&c, prefix, seed, &err);
    if (!o->legacy)
        abort();
}

void alone_play(uint64_t seed, int turns) {
    struct alone o = {0};
    alone_begin(&o, seed);
    happen(&o, EVENT_START);
    for (int i = 0; i < turns && !o.over; i++) {
        turn(&o);
        if (!o.uid[0])
            learn_uid(&o);
    }
    for (int i = 0; i < ASKED_MAX; i++)
        forget(&o, o.asked[i].id);
    legacy_free(o.legacy);
    tree_model_free(o.peers.tree);
}
