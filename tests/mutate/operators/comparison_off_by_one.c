/* A comparison that takes in one more, or one less. */
#include "tests/mutate/operator.h"

static void find(const struct finding *f, const struct node *n) {
    static const char *const other[][2] = {{"<", "<="}, {"<=", "<"}, {">", ">="}, {">=", ">"}};
    const struct source *s = f->source;
    if (n->kind != CXCursor_BinaryOperator || node_children(n) != 2)
        return;
    for (int i = 0; i < 4; i++)
        if (node_between(s, n->first, n->first->next, other[i][0]))
            find_instead(f, operator_comparison_off_by_one.name, n, "%.*s %s %.*s",
                         NODE_TEXT(s, n->first), other[i][1], NODE_TEXT(s, n->first->next));
}

const struct operator operator_comparison_off_by_one = {
    .name = "comparison-off-by-one",
    .summary = "a comparison takes in one more, or one less",
    .find = find,
};
