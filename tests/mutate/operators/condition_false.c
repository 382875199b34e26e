/* A condition, or a part of one, that never holds. */
#include "tests/mutate/operator.h"
#include "tests/mutate/operators/errors.h"

/* Memory that is not there is seen by nobody, nor is what else ends in abort(). */
static bool aborts(const struct source *s, const struct node *n) {
    const struct node *then = n->first ? n->first->next : NULL;
    if (then && then->kind == CXCursor_CompoundStmt && node_children(then) == 1)
        then = then->first;
    return n->kind == CXCursor_IfStmt && then && node_reads(s, then, "abort()");
}

static void find(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    if (n->kind == CXCursor_BinaryOperator && node_children(n) == 2 &&
        node_between(s, n->first, n->first->next, "||")) {
        find_instead(f, operator_condition_false.name, n->first, "0");
        find_instead(f, operator_condition_false.name, n->first->next, "0");
    }
    if (node_condition(s, n) && !errors_are_guarded(s, n) && !aborts(s, n))
        find_instead(f, operator_condition_false.name, node_condition(s, n), "0");
}

const struct operator operator_condition_false = {
    .name = "condition-false",
    .summary = "a condition, or a part of one, never holds",
    .find = find,
};
