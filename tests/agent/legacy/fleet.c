#include "tests/agent/legacy/fleet.h"

#include "base/rand.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000LL
#define S  1000000000LL

enum { ITEMS_MAX = 512 };

enum item_kind {
    ITEM_ARRIVES,
    ITEM_WAITS,
    ITEM_ANSWER,
    ITEM_EVENT,
    ITEM_TIMER,
    ITEM_FENCE,
    ITEM_DEAD
};

/* Something that will happen. WAITS stand in the store until they can be answered. */
struct item {
    bool used;
    enum item_kind kind;
    int64_t at_ns, order;
    int agent;
    uint64_t life; /* of the agent it is meant for */
    uint64_t id;
    struct tree_request request;
    bool lose_answer, arrives;
    struct tree_answer answer;
    struct event event;
    struct arena arena;
};

struct member {
    struct fleet_agent pub;
    struct legacy *legacy;
    uint64_t life;
    int64_t timer_ns, paused_ns, cut_ns; /* until */
    int exits_left;
};

struct fleet {
    struct tree_model *tree;
    struct rand rand;
    struct member members[FLEET_MAX];
    struct item items[ITEMS_MAX];
    int64_t now_ns, order, requests;
    uint64_t lives, seed;
    int min, max, max_restarts, port;
    double lose;
    bool gang, names, nameless[FLEET_MAX];
    char wrong[512];
};

static void wrong(struct fleet *f, const char *fmt, ...) {
    va_list ap;
    if (f->wrong[0])
        return;
    va_start(ap, fmt);
    int n = snprintf(f->wrong, sizeof(f->wrong),
                     "seed %llu at %.3f s: ", (unsigned long long)f->seed, (double)f->now_ns / 1e9);
    vsnprintf(f->wrong + n, sizeof(f->wrong) - (size_t)n, fmt, ap);
    va_end(ap);
}

static struct item *item_new(struct fleet *f, enum item_kind kind, int agent, int64_t in_ns) {
    for (int i = 0; i < ITEMS_MAX; i++) {
        struct item *it = &f->items[i];
        if (it->used)
            continue;
        *it = (struct item){.used = true,
                            .kind = kind,
                            .at_ns = f->now_ns + in_ns,
                            .order = ++f->order,
                            .agent = agent,
                            .life = f->members[agent].life};
        return it;
    }
    abort();
}

static void item_free(struct item *it) {
    arena_fini(&it->arena);
    it->used = false;
}

static int64_t latency(struct fleet *f) {
    return MS / 5 + (int64_t)rand_below(&f->rand, 5 * MS);
}

/* ---- workers ---- */

static void tell(struct fleet *f, int i, enum event_kind kind, int64_t in_ns) {
    item_new(f, ITEM_EVENT, i, in_ns)->event.kind = kind;
}

/* All of the group end within ns, and the agent is told. */
static void group_end(struct fleet *f, int i, int status, int64_t in_ns, bool fenced) {
    struct member *m = &f->members[i];
    m->pub.group.killed = true;
    for (; status >= 0 && m->exits_left > 0; m->exits_left--) {
        struct item *it = item_new(f, ITEM_EVENT, i, in_ns);
        it->event = (struct event){.kind = EVENT_WORKER_EXITED,
                                   .exited = {.wait_status = status, .error = "it broke"}};
    }
    item_new(f, ITEM_DEAD, i, in_ns);
    struct item *it = item_new(f, ITEM_EVENT, i, in_ns);
    it->event = (struct event){.kind = EVENT_GROUP_REAPED, .reaped = {.fenced = fenced}};
    if (status < 0)
        it->event = (struct event){EVENT_GUARD_DEAD, .guard_dead = {7, SIGKILL, fenced}};
}

/* Of all workers that live, those of one round; and of one round all are told the same. */
static void judge_start(struct fleet *f, int i, const struct round_spec *s) {
    for (int k = 0; k < FLEET_MAX; k++) {
        const struct fleet_agent *o = &f->members[k].pub;
        if (k == i || !o->group.alive)
            continue;
        if (o->group.round != s->round)
            wrong(f, "agent %d starts round %lld while agent %d has workers of round %lld", i,
                  (long long)s->round, k, (long long)o->group.round);
        else if (o->group.rank == s->group_rank || o->group.world != s->world ||
                 o->group.n != s->group_world || o->group.master_port != s->master_port ||
                 strcmp(o->group.master_addr, s->master_addr) != 0)
            wrong(f, "agents %d and %d do not agree about round %lld", i, k, (long long)s->round);
    }
    if (s->group_world < f->min || s->group_world > f->max)
        wrong(f, "a round of %d nodes", s->group_world);
    if (s->fence_ns <= f->now_ns)
        wrong(f, "agent %d starts workers behind its fence", i);
}

static void do_start(struct fleet *f, int i, const struct round_spec *s) {
    struct member *m = &f->members[i];
    if (m->pub.group.alive)
        wrong(f, "agent %d starts while its workers live", i);
    judge_start(f, i, s);
    m->pub.group.alive = true;
    m->pub.group.killed = false;
    m->pub.group.round = s->round;
    m->pub.group.rank = s->group_rank;
    m->pub.group.n = s->group_world;
    m->pub.group.rank_base = s->rank_base;
    m->pub.group.world = s->world;
    m->pub.group.restart_count = s->restart_count;
    m->pub.group.master_port = s->master_port;
    snprintf(m->pub.group.master_addr, sizeof(m->pub.group.master_addr), "%s", s->master_addr);
    if (strchr(s->master_addr, '.') && f->nameless[i])
        wrong(f, "agent %d is told %s, which it does not know", i, s->master_addr);
    m->pub.group.fence_ns = s->fence_ns;
    m->exits_left = s->local_world;
    tell(f, i, EVENT_WORKERS_STARTED, MS);
    item_new(f, ITEM_FENCE, i, s->fence_ns - f->now_ns);
}

/* ---- the store ---- */

static void answer_later(struct fleet *f, struct item *asked, struct tree_answer answer,
                         struct arena arena, int64_t in_ns) {
    struct item *it = item_new(f, ITEM_ANSWER, asked->agent, in_ns);
    it->life = asked->life;
    it->id = asked->id;
    it->answer = answer;
    it->arena = arena;
}

static void lose(struct fleet *f, struct item *asked) {
    const struct tree_answer lost = {.result = TREE_LOST, .text = "lost"};
    int64_t in_ns = asked->request.verb == TREE_WAIT ? 20 * S : 2 * S;
    answer_later(f, asked, lost, (struct arena){0}, in_ns);
}

static void serve_waits(struct fleet *f) {
    for (int i = 0; i < ITEMS_MAX; i++) {
        struct item *it = &f->items[i];
        struct tree_answer answer;
        struct arena arena = {0};
        if (!it->used || it->kind != ITEM_WAITS)
            continue;
        bool answered = tree_model_wait(f->tree, &it->request, it->arrives, &answer, &arena);
        it->arrives = false;
        if (!answered)
            continue;
        if (it->lose_answer || f->members[it->agent].cut_ns > f->now_ns) {
            arena_fini(&arena);
            lose(f, it);
        } else {
            answer_later(f, it, answer, arena, latency(f));
        }
        item_free(it);
    }
}

static void arrive(struct fleet *f, struct item *it) {
    struct arena arena = {0};
    if (it->request.verb == TREE_WAIT) {
        struct item *w = item_new(f, ITEM_WAITS, it->agent, INT64_MAX / 2);
        w->arrives = true;
        w->life = it->life;
        w->id = it->id;
        w->request = it->request;
        w->lose_answer = it->lose_answer;
        w->arena = it->arena;
        it->arena = (struct arena){0};
    } else {
        struct tree_answer answer = tree_model_do(f->tree, f->now_ns, &it->request, &arena);
        if (it->lose_answer || f->members[it->agent].cut_ns > f->now_ns) {
            arena_fini(&arena);
            lose(f, it);
        } else {
            answer_later(f, it, answer, arena, latency(f));
        }
    }
    serve_waits(f);
}

static const char *copy(struct arena *a, const char *s) {
    return s ? arena_strdup(a, s) : NULL;
}

static void ask(struct fleet *f, int i, uint64_t id, const struct tree_request *q) {
    struct item *it = item_new(f, ITEM_ARRIVES, i, latency(f));
    bool lost = f->members[i].cut_ns > f->now_ns || rand_unit(&f->rand) < f->lose / 2;
    f->requests++;
    it->id = id;
    it->request = *q;
    it->request.key = copy(&it->arena, q->key);
    it->request.value = copy(&it->arena, q->value);
    it->request.compare = copy(&it->arena, q->compare);
    it->lose_answer = rand_unit(&f->rand) < f->lose / 2;
    if (lost) {
        lose(f, it);
        item_free(it);
    }
}

static void forget(struct fleet *f, int i, uint64_t id) {
    for (int k = 0; k < ITEMS_MAX; k++) {
        struct item *it = &f->items[k];
        bool asked = it->kind == ITEM_WAITS || it->kind == ITEM_ANSWER || it->kind == ITEM_ARRIVES;
        if (it->used && asked && it->agent == i && it->life == f->members[i].life && it->id == id)
            item_free(it);
    }
}

/* ---- an agent ---- */

static void do_exit(struct fleet *f, int i, const struct action *a) {
    struct member *m = &f->members[i];
    if (m->pub.group.alive && !m->pub.group.killed)
        wrong(f, "agent %d exits while its workers live", i);
    m->pub.up = false;
    m->pub.group.alive = false;
    m->pub.exit_code = a->exit.code;
    snprintf(m->pub.exit_text, sizeof(m->pub.exit_text), "%s", a->exit.text);
    m->pub.exit_round = a->exit.failure ? a->exit.round : 0;
}

static void act(struct fleet *f, int i, const struct action *a) {
    struct member *m = &f->members[i];
    struct item *it;
    switch ((int)a->kind) {
    case ACTION_TREE:
        ask(f, i, a->tree.id, &a->tree.request);
        break;
    case ACTION_TREE_CANCEL:
        forget(f, i, a->tree.id);
        break;
    case ACTION_START:
        do_start(f, i, a->start);
        break;
    case ACTION_STOP:
        if (m->pub.group.alive && !m->pub.group.killed)
            group_end(f, i, SIGTERM, 5 * MS + (int64_t)rand_below(&f->rand, 400 * MS), false);
        break;
    case ACTION_KILL:
        if (m->pub.group.alive && !m->pub.group.killed)
            group_end(f, i, SIGKILL, 2 * MS, false);
        break;
    case ACTION_DEADLINE:
        if (a->deadline.fence_ns > m->pub.group.fence_ns) {
            m->pub.group.fence_ns = a->deadline.fence_ns;
            item_new(f, ITEM_FENCE, i, a->deadline.fence_ns - f->now_ns);
        }
        break;
    case ACTION_NEED_PORT:
        it = item_new(f, ITEM_EVENT, i, 0);
        it->event =
            (struct event){.kind = EVENT_PORT, .port = {.addr = "host", .port = 20000 + f->port++}};
        break;
    case ACTION_LOOK_UP:
        it = item_new(f, ITEM_EVENT, i, (int64_t)rand_below(&f->rand, 3 * S));
        it->event =
            (struct event){.kind = EVENT_LOOKED_UP,
                           .looked_up = {.round = a->look_up.round, .found = !f->nameless[i]}};
        break;
    case ACTION_TIMER:
        m->timer_ns = a->timer.at_ns;
        it = item_new(f, ITEM_TIMER, i, 0);
        it->at_ns = a->timer.at_ns;
        break;
    case ACTION_EXIT:
        do_exit(f, i, a);
        break;
    default:
        if (getenv("FLEET_LOG"))
            printf("%9.3f agent %d: %s %lld\n", (double)f->now_ns / 1e9, i,
                   a->kind == ACTION_CLAIM   ? a->claim.what
                   : a->kind == ACTION_STORE ? a->store.text
                                             : a->log,
                   a->kind == ACTION_CLAIM ? (long long)a->claim.round : 0);
    }
}

static void step(struct fleet *f, int i, const struct event *e) {
    struct member *m = &f->members[i];
    size_t n = 0;
    uint64_t life = m->life;
    if (!m->pub.up)
        return;
    const struct action *a = legacy_step(m->legacy, e, (struct now){f->now_ns, f->now_ns}, &n);
    for (size_t k = 0; k < n && m->life == life; k++)
        act(f, i, &a[k]);
}

static void happen(struct fleet *f, struct item *it) {
    int i = it->agent;
    struct member *m = &f->members[i];
    struct event e = it->event;
    if (it->life != m->life)
        return;
    if (it->kind == ITEM_FENCE) {
        if (m->pub.group.alive && !m->pub.group.killed && f->now_ns >= m->pub.group.fence_ns) {
            group_end(f, i, SIGKILL, 0, true);
            m->pub.group.alive = false;
        }
        return;
    }
    if (it->kind == ITEM_DEAD) { /* whether the agent runs or not */
        m->pub.group.alive = false;
        return;
    }
    if (it->kind == ITEM_TIMER)
        e = (struct event){.kind = EVENT_TIMER};
    if (it->kind == ITEM_ANSWER)
        e = (struct event){.kind = EVENT_TREE, .tree = {.id = it->id, .answer = &it->answer}};
    if (it->kind != ITEM_TIMER || m->timer_ns == it->at_ns)
        step(f, i, &e);
}

/* ---- time ---- */

static int64_t due_ns(const struct fleet *f, const struct item *it) {
    int64_t paused_ns = f->members[it->agent].paused_ns;
    bool agents = it->kind != ITEM_ARRIVES && it->kind != ITEM_FENCE && it->kind != ITEM_WAITS &&
                  it->kind != ITEM_DEAD;
    return agents && it->at_ns < paused_ns ? paused_ns : it->at_ns;
}

static struct item *next_item(struct fleet *f) {
    struct item *next = NULL;
    for (int i = 0; i < ITEMS_MAX; i++) {
        struct item *it = &f->items[i];
        if (!it->used || it->kind == ITEM_WAITS)
            continue;
        if (!next || due_ns(f, it) < due_ns(f, next) ||
            (due_ns(f, it) == due_ns(f, next) && it->order < next->order))
            next = it;
    }
    return next;
}

void fleet_run(struct fleet *f, int64_t ns) {
    int64_t end_ns = f->now_ns + ns;
    while (!f->wrong[0]) {
        int64_t expires_ns = tree_model_expire(f->tree, f->now_ns);
        serve_waits(f);
        struct item *it = next_item(f);
        int64_t at_ns = it ? due_ns(f, it) : INT64_MAX;
        if (at_ns > end_ns && expires_ns > end_ns)
            break;
        if (expires_ns < at_ns) {
            f->now_ns = expires_ns;
            continue;
        }
        f->now_ns = due_ns(f, it) > f->now_ns ? due_ns(f, it) : f->now_ns;
        if (it->kind == ITEM_ARRIVES)
            arrive(f, it);
        else
            happen(f, it);
        item_free(it);
    }
    f->now_ns = end_ns > f->now_ns ? end_ns : f->now_ns;
}

/* ---- what a test does ---- */

struct fleet *fleet_new(uint64_t seed, int min, int max, int max_restarts) {
    struct fleet *f = calloc(1, sizeof(*f));
    if (!f)
        abort();
    f->tree = tree_model_new();
    f->seed = seed;
    f->min = min;
    f->max = max;
    f->max_restarts = max_restarts;
    f->now_ns = 5 * S;
    rand_init(&f->rand, seed);
    for (int i = 0; i < FLEET_MAX; i++)
        f->members[i].pub.exit_code = -1;
    return f;
}

struct fleet *fleet_free(struct fleet *f) {
    for (int i = 0; i < FLEET_MAX; i++)
        legacy_free(f->members[i].legacy);
    for (int i = 0; i < ITEMS_MAX; i++)
        item_free(&f->items[i]);
    tree_model_free(f->tree);
    free(f);
    return NULL;
}

void fleet_gang(struct fleet *f) {
    f->gang = true;
}

void fleet_names(struct fleet *f) {
    f->names = true;
}

void fleet_nameless(struct fleet *f, int i) {
    f->nameless[i] = true;
}

void fleet_start(struct fleet *f, int i) {
    struct member *m = &f->members[i];
    struct err err;
    char node[16], host[40];
    snprintf(node, sizeof(node), "n%d", i);
    snprintf(host, sizeof(host), "n%d.example %s", i, node);
    struct rendezvous_config c = {
        .run_id = "job",
        .node = node,
        .addr = node,
        .host = f->names ? host : NULL,
        .role = "default",
        .slots = 1 + i % 2,
        .min = f->min,
        .max = f->max,
        .on_node_loss = f->gang ? NODE_LOSS_GANG : NODE_LOSS_REPLACE,
        .max_restarts = f->max_restarts,
        .attempt = "",
        .last_call_ns = 2 * S,
        .join_timeout_ns = 600 * S,
        .stop_timeout_ns = 2 * S,
        .shutdown_grace_ns = 30 * S,
        .give_up_ns = 300 * S,
    };
    legacy_free(m->legacy);
    *m = (struct member){.life = ++f->lives, .pub = {.up = true, .exit_code = -1}};
    m->legacy = legacy_new(&c, NULL, rand_u64(&f->rand), &err);
    if (!m->legacy)
        abort();
    tell(f, i, EVENT_START, 0);
}

void fleet_crash(struct fleet *f, int i) {
    struct member *m = &f->members[i];
    m->life = ++f->lives;
    m->pub.up = m->pub.group.alive = false;
}

void fleet_signal(struct fleet *f, int i, int signo) {
    struct item *it = item_new(f, ITEM_EVENT, i, 0);
    it->event = (struct event){.kind = EVENT_SIGNAL, .signal = {.signo = signo}};
}

/* A failure ends the one worker; the others end when the agent says so. */
void fleet_exit(struct fleet *f, int i, int status) {
    struct member *m = &f->members[i];
    if (!m->pub.group.alive || m->pub.group.killed)
        return;
    if (status <= 0 || m->exits_left == 1) {
        group_end(f, i, status, 0, status == FLEET_GUARD_DUE);
        return;
    }
    m->exits_left--;
    struct item *it = item_new(f, ITEM_EVENT, i, 0);
    it->event = (struct event){.kind = EVENT_WORKER_EXITED,
                               .exited = {.wait_status = status, .error = "it broke"}};
}

void fleet_pause(struct fleet *f, int i, int64_t ns) {
    f->members[i].paused_ns = f->now_ns + ns;
}

void fleet_cut(struct fleet *f, int i, int64_t ns) {
    f->members[i].cut_ns = f->now_ns + ns;
}

void fleet_lose(struct fleet *f, double share) {
    f->lose = share;
}

struct tree_model *fleet_tree(struct fleet *f) {
    return f->tree;
}

const struct fleet_agent *fleet_agent(const struct fleet *f, int i) {
    return &f->members[i].pub;
}

int64_t fleet_requests(const struct fleet *f) {
    return f->requests;
}

const char *fleet_wrong(const struct fleet *f) {
    return f->wrong;
}
