/* Two arguments of one type that stand in each other's place, where that is something else. */
#include "tests/mutate/operators/call.h"

static bool are_alike(const struct node *a, const struct node *b) {
    CXType of_a = clang_getCanonicalType(clang_getCursorType(node_bare(a)->cursor));
    CXType of_b = clang_getCanonicalType(clang_getCursorType(node_bare(b)->cursor));
    return clang_equalTypes(of_a, of_b);
}

/* Each with the next of its type. */
static void find(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    if (!call_is_written(s, n) || call_asks_equality(s, n))
        return;
    for (const struct node *a = n->first->next; a; a = a->next) {
        const struct node *b = a->next;
        if (!b || !node_between(s, a, b, ","))
            continue;
        while (b && !are_alike(a, b))
            b = b->next;
        if (!b || node_alike(s, a, b) || a->end > b->begin)
            continue;
        find_bytes(f, operator_arguments_swapped.name, node_holder(n), a->begin, b->end,
                   "%.*s%.*s%.*s", NODE_TEXT(s, b), (int)(b->begin - a->end), s->text.data + a->end,
                   NODE_TEXT(s, a));
    }
}

const struct operator operator_arguments_swapped = {
    .name = "arguments-swapped",
    .summary = "two arguments of one type stand in each other's place",
    .find = find,
};
