#include "harness/verbs/run/todo.h"

#include "base/str.h"
#include "harness/play/budget.h"

#include <stdio.h>

/* How often each seed is run. */
int64_t todo_each(const struct run_request *q, const struct selected *l) {
    const struct repeat_spec *own = &l->scenario->repeat;
    if (q->repeat)
        return q->repeat;
    return q->selection.counted || own->each_seed ? 1 : own->runs;
}

int64_t todo_of(const void *arg, const struct selected *l) {
    int64_t seeds = (int64_t)(l->seed_last - l->seed_first) + 1, each = todo_each(arg, l);
    return seeds > 1000000 || each > 1000000 ? INT64_MAX : seeds * each;
}

void todo_count(struct run_request *q) {
    q->todo = arena_array(&q->arena, int64_t, q->selection.n + 1);
    q->runs = 0;
    for (size_t i = 0; i < q->selection.n; i++) {
        const struct selected *l = &q->selection.v[i];
        q->todo[i] = l->left_out ? 0 : todo_of(q, l);
        if (q->todo[i] > 1000000) { /* until one fails */
            q->runs = 0;
            return;
        }
        q->runs += q->todo[i];
    }
}

void todo_begin(struct run_request *q) {
    struct headway_spec spec = {.out = str_eq(q->suite.format, "terminal") ? stdout : stderr,
                                .verb = "run",
                                .unit = "runs",
                                .total = q->runs,
                                .until_ns = q->budget_ns ? q->began_ns + q->budget_ns : 0,
                                .own_line = q->jobs <= 1,
                                .no_lines = true,
                                .wish = q->suite.wish};
    if (q->runs != 1 && !q->suite.beside)
        headway_begin(&q->headway, &spec);
}

/* By how long each took the last time, or is guessed to take. */
static int64_t left_of_all_ns(const struct run_request *q) {
    int64_t ns = 0;
    for (size_t i = 0; i < q->selection.n && q->runs; i++)
        if (q->todo[i])
            ns += q->todo[i] * budget_estimate_ns(&q->selection.v[i]);
    return q->runs ? ns / q->jobs : -1;
}

/* l: the one that is about to run, or has just ended. */
void todo_tell(struct run_request *q, const struct selected *l, int64_t done) {
    if (q->runs == 1 || q->suite.beside)
        return;
    headway_expect(&q->headway, left_of_all_ns(q));
    headway_at(&q->headway, done, l ? l->scenario->name : NULL);
    if (q->runs)
        snprintf(q->place, sizeof(q->place), "%lld of %lld", (long long)done + 1,
                 (long long)q->runs);
    else
        snprintf(q->place, sizeof(q->place), "run %lld", (long long)done + 1);
    q->suite.place = q->place;
    q->suite.place_left_ns = headway_left_ns(&q->headway);
}

void todo_less(struct run_request *q, const struct selected *l) {
    int64_t *todo = &q->todo[l - q->selection.v];
    *todo -= *todo > 0;
}
