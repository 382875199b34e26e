/* A condition that is the other way round. */
#include "tests/mutate/operator.h"

/* What loops until it is false would do nothing, or for ever: that is seen by everybody. */
static bool is_asked(const struct source *s, const struct node *n) {
    return (n->kind == CXCursor_IfStmt || n->kind == CXCursor_ConditionalOperator) &&
           node_condition(s, n);
}

/* An equality that is no whole condition: a part of one, or what is returned. */
static const char *other_equality(const struct source *s, const struct node *n) {
    if (n->kind != CXCursor_BinaryOperator || node_children(n) != 2 ||
        (n->parent && is_asked(s, n->parent) && node_condition(s, n->parent) == n))
        return NULL;
    return node_between(s, n->first, n->first->next, "==")   ? "!="
           : node_between(s, n->first, n->first->next, "!=") ? "=="
                                                             : NULL;
}

static void find(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    const char *other = other_equality(s, n);
    if (other)
        find_instead(f, operator_condition_negated.name, n, "%.*s %s %.*s", NODE_TEXT(s, n->first),
                     other, NODE_TEXT(s, n->first->next));
    if (is_asked(s, n))
        find_instead(f, operator_condition_negated.name, node_condition(s, n), "!(%.*s)",
                     NODE_TEXT(s, node_condition(s, n)));
}

const struct operator operator_condition_negated = {
    .name = "condition-negated",
    .summary = "a condition or an equality is the other way round",
    .find = find,
};
