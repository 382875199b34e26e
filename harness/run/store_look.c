/* Our own client reads in the store that is struck, in the network of its node, or asks the scheduler
 * of the node that is: once before the fault is brought in force, which waits for it, and once when it
 * is. While it reads nothing else waits; who sent the event is held. */
#include "harness/run/entry.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/run/scheduler_question.h"
#include "harness/run/store_question.h"
#include "harness/run/token.h"

#include <inttypes.h>
#include <stdio.h>

struct store_look {
    struct run_entry *of;
    struct bound *bound;
    struct question *question; /* NULL: none is open */
    const char *word;
    bool before, of_scheduler;
    int64_t since_ns;
};

static void record(struct store_look *l, int64_t number, const char *error) {
    struct json_writer *w =
        entry_record(l->of, SOURCE_HARNESS, l->of_scheduler ? "scheduler-read" : "store-read");
    json_put_string(w, "on", l->bound->target.name);
    json_put_string(w, "what", l->word);
    json_put_string(w, "when", l->before ? "before" : "after");
    if (error)
        json_put_string(w, "error", error);
    else
        json_put_i64(w, "number", number);
    json_put_i64(w, "took_ns", clock_monotonic_ns() - l->since_ns);
    engine_recorded(l->of->owner->engine);
}

static void read_done(struct store_look *l) {
    struct run_entry *a = l->of;
    if (a->looks_open || !a->looks)
        return;
    a->looks = NULL;
    if (l->before && a->state == ENTRY_INJECTING && !a->owner->finished)
        entry_inject(a);
    else if (a->overdue)
        entry_recover(a);
}

static bool read_number(const struct store_look *l, const struct question_answer *given,
                        int64_t *ret) {
    if (!l->of_scheduler)
        return str_to_i64(given->text, INT64_MIN, INT64_MAX, ret);
    *ret = scheduler_question_drains(given->text);
    return *ret >= 0;
}

/* Without an answer a fault is injected all the same: then nothing shows that it was felt. */
static void on_answer(void *arg, const struct question_answer *given) {
    struct store_look *l = arg;
    char error[200] = "";
    int64_t number = 0;
    l->question = NULL;
    l->of->looks_open--;
    const char *whom = l->of_scheduler ? "scheduler" : "store";
    if (given->late)
        snprintf(error, sizeof(error), "the %s was not read: no answer within %d s", whom,
                 (l->of_scheduler ? SCHEDULER_ANSWER_WITHIN_MS : STORE_ANSWER_WITHIN_MS) / 1000);
    else if (given->ended || !read_number(l, given, &number))
        snprintf(error, sizeof(error), "the %s was not read: %.120s", whom,
                 *given->text   ? given->text
                 : given->ended ? given->ended
                                : "no number");
    if (l->before)
        l->bound->target.store.number = number;
    record(l, number, *error ? error : NULL);
    read_done(l);
}

static struct question *ask(struct store_look *l, struct err *err) {
    struct engine *e = l->of->owner->engine;
    if (l->of_scheduler)
        return scheduler_question_ask(e, l->bound->node, on_answer, l, err);
    ARENA_FINI struct arena arena = {0};
    const struct target *t = &l->bound->target;
    const char *const argv[] = {"rankquake",
                                "inquire",
                                "store-read",
                                t->store.address,
                                arena_printf(&arena, "%d", t->store.port),
                                l->word,
                                e->plan->scenario->name,
                                arena_printf(&arena, "%" PRId64, t->store.number),
                                NULL};
    return store_question_ask(e, l->bound->node, argv, on_answer, l, err);
}

static void begin(struct store_look *l) {
    struct target *t = &l->bound->target;
    struct err err;
    str_copy(t->store.address, sizeof(t->store.address), node_plan(l->bound->node)->addr);
    t->store.port = PLAN_STORE_PORT;
    str_copy(t->store.token, sizeof(t->store.token), token_of(l->of->owner->engine));
    l->question = ask(l, &err);
    l->of->looks_open += l->question != NULL;
    if (!l->question)
        record(l, 0, err.msg);
}

bool entry_read_store(struct run_entry *a, bool before) {
    const char *word = evidence_reads(a, before);
    if (!word)
        return false;
    entry_read_no_more(a);
    a->looks = arena_array(&a->owner->engine->arena, struct store_look, a->bound_n);
    for (size_t i = 0; i < a->bound_n; i++) {
        a->looks[i] = (struct store_look){.of = a,
                                          .bound = &a->bound[i],
                                          .word = word,
                                          .before = before,
                                          .of_scheduler = evidence_asks_scheduler(a),
                                          .since_ns = clock_monotonic_ns()};
        begin(&a->looks[i]);
    }
    return a->looks_open > 0;
}

void entry_read_no_more(struct run_entry *a) {
    for (size_t i = 0; a->looks && i < a->bound_n; i++)
        a->looks[i].question = question_abandon(a->looks[i].question);
    a->looks = NULL;
    a->looks_open = 0;
}
