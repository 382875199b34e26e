/* A condition, or a part of one, that always holds. */
#include "tests/mutate/operator.h"

static void find(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    if (n->kind == CXCursor_BinaryOperator && node_children(n) == 2 &&
        node_between(s, n->first, n->first->next, "&&")) {
        find_instead(f, operator_condition_true.name, n->first, "1");
        find_instead(f, operator_condition_true.name, n->first->next, "1");
    }
    bool asks = n->kind == CXCursor_IfStmt || n->kind == CXCursor_ConditionalOperator;
    if (asks && node_condition(s, n))
        find_instead(f, operator_condition_true.name, node_condition(s, n), "1");
}

const struct operator operator_condition_true = {
    .name = "condition-true",
    .summary = "a condition, or a part of one, always holds",
    .find = find,
};
