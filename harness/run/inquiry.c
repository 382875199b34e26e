/* Every node that serves the store is asked, each in its own network, so that no cut keeps the
 * question from it. One answer says who coordinates: a member of an etcd that is cut off from the
 * others gives none. Who leads an etcd is what most of its members say of one term: one that is cut
 * off goes on believing what it knew. While it is asked nothing else waits; who sent the event
 * is held. */
#include "harness/run/entry.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/observe/leader.h"
#include "harness/run/store_question.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STORES_MAX = 3 };

struct inquiry_asked {
    struct inquiry *owner;
    struct node *node;
    struct question *question; /* NULL: none is open */
    struct leader said;        /* name "": nothing */
};

struct inquiry {
    struct run_entry *of;
    struct inquiry_asked v[STORES_MAX];
    size_t n, open, needed; /* so many must agree */
    int64_t since_ns;
    bool patient; /* its entry waits for a target, and has a time for that */
    char why[200];
};

bool entry_asks(const struct run_entry *a) {
    size_t serving = 0;
    const struct plan *p = a->owner->engine->plan;
    for (size_t i = 0; i < p->nodes_n; i++)
        serving += plan_serves_store(p, &p->nodes[i]);
    return a->entry->on.pick == PICK_COORDINATOR ||
           (a->entry->on.pick == PICK_LEADER && serving > 1);
}

/* The node that an agent has that address of, or that is called so. */
static const char *node_named(const struct plan *p, const char *name) {
    for (size_t i = 0; i < p->nodes_n; i++)
        if (str_eq(plan_node_host(&p->nodes[i]), name) || str_eq(p->nodes[i].name, name))
            return p->nodes[i].name;
    return NULL;
}

static void record(const struct inquiry *q, const struct leader *found, const char *node) {
    struct engine *e = q->of->owner->engine;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "store-said");
    json_put_string(w, "id", q->of->entry->id);
    json_put_i64(w, "n", q->of->fired + 1);
    json_put_string(w, "who", q->of->entry->on.text);
    if (node)
        json_put_string(w, "node", node);
    if (found)
        json_put_i64(w, "term", found->term);
    if (!node)
        json_put_string(w, "error", q->why);
    json_put_i64(w, "took_ns", clock_monotonic_ns() - q->since_ns);
    engine_recorded(e);
}

/* Whoever hears of the record may end it all: then the entry waits no more. */
static void conclude(struct inquiry *q, const struct leader *found) {
    struct run_entry *a = q->of;
    const char *node = found ? node_named(a->owner->engine->plan, found->name) : NULL;
    if (found && !node)
        snprintf(q->why, sizeof(q->why), "the store names %.60s, which is no node of this cluster",
                 found->name);
    entry_ask_no_more(a);
    record(q, found, node);
    if (a->state != ENTRY_ASKING)
        return;
    if (q->patient)
        a->state = ENTRY_PATIENT;
    entry_told(a, node, q->why);
}

static size_t agreeing(const struct inquiry *q, const struct leader *l) {
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++)
        n += str_eq(q->v[i].said.name, l->name) && q->v[i].said.term == l->term;
    return n;
}

static void decide(struct inquiry *q) {
    for (size_t i = 0; i < q->n; i++)
        if (*q->v[i].said.name && agreeing(q, &q->v[i].said) >= q->needed) {
            conclude(q, &q->v[i].said);
            return;
        }
    if (!q->open)
        conclude(q, NULL);
}

static void say_why(struct inquiry_asked *a, const char *what) {
    snprintf(a->owner->why, sizeof(a->owner->why), "%s did not say who is meant: %.120s",
             node_plan(a->node)->name, what);
}

static void on_answer(void *arg, const struct question_answer *given) {
    struct inquiry_asked *a = arg;
    struct inquiry *q = a->owner;
    a->question = NULL;
    q->open--;
    if (given->late)
        say_why(a, "no answer within 3 s");
    else if (given->ended)
        say_why(a, *given->text ? given->text : given->ended);
    else if (sscanf(given->text, "%255s %" SCNd64, a->said.name, &a->said.term) != 2)
        a->said.name[0] = '\0', say_why(a, "its answer cannot be read");
    else if (q->needed > 1)
        snprintf(q->why, sizeof(q->why), "the members of the store do not agree on a leader");
    decide(q);
}

static struct question *ask(struct inquiry_asked *a, struct err *err) {
    struct engine *e = a->owner->of->owner->engine;
    ARENA_FINI struct arena arena = {0};
    const char *addr = node_plan(a->node)->addr;
    const char *port = arena_printf(&arena, "%d", PLAN_STORE_PORT);
    const char *const coordinator[] = {
        "rankquake", "inquire", "coordinator", addr, port, e->plan->scenario->name, NULL};
    const char *const leader[] = {"rankquake", "inquire", "store-leader", addr, port, NULL};
    bool job = a->owner->of->entry->on.pick == PICK_COORDINATOR;
    return store_question_ask(e, a->node, job ? coordinator : leader, on_answer, a, err);
}

static void ask_all(struct inquiry *q) {
    struct engine *e = q->of->owner->engine;
    cluster_each(n, e->cluster) {
        struct inquiry_asked *a = &q->v[q->n];
        struct err err;
        if (q->n == STORES_MAX || !plan_serves_store(e->plan, node_plan(n)) || !node_is_on(n))
            continue;
        *a = (struct inquiry_asked){.owner = q, .node = n};
        q->n++;
        a->question = ask(a, &err);
        q->open += a->question != NULL;
        if (!a->question)
            say_why(a, err.msg);
    }
}

void entry_ask(struct run_entry *a) {
    struct inquiry *q = arena_new(&a->owner->engine->arena, struct inquiry);
    *q = (struct inquiry){.of = a,
                          .needed = a->entry->on.pick == PICK_LEADER ? STORES_MAX / 2 + 1 : 1,
                          .since_ns = clock_monotonic_ns(),
                          .patient = a->state == ENTRY_PATIENT,
                          .why = "no node of the store is on, so nobody can say who is meant"};
    a->inquiry = q;
    a->state = ENTRY_ASKING;
    timeline_arm(a->owner->engine);
    ask_all(q);
    if (!q->open)
        conclude(q, NULL);
}

void entry_ask_no_more(struct run_entry *a) {
    struct inquiry *q = a->inquiry;
    a->inquiry = NULL;
    for (size_t i = 0; q && i < q->n; i++)
        q->v[i].question = question_abandon(q->v[i].question);
}
