/* A comparison that takes in one more, or one less, where that is something else. */
#include "tests/mutate/operator.h"

#include <string.h>

static bool are(const struct source *s, const struct node *a, const struct node *b,
                const struct node *c, const struct node *d) {
    return (node_alike(s, a, c) && node_alike(s, b, d)) ||
           (node_alike(s, a, d) && node_alike(s, b, c));
}

/* a < b ? a : b, or if (a < b) a = b: of two that are equal either will do. */
static bool picks_one_of_them(const struct source *s, const struct node *n) {
    const struct node *a = node_bare(n->first), *b = node_bare(n->first->next), *at = n;
    while (at->parent && node_bare(at->parent) == n)
        at = at->parent;
    const struct node *chooser = at->parent;
    if (!chooser || chooser->first != at || !at->next)
        return false;
    if (chooser->kind == CXCursor_ConditionalOperator)
        return are(s, a, b, node_bare(at->next), node_bare(at->next->next));
    const struct node *set = at->next;
    return chooser->kind == CXCursor_IfStmt && !set->next && set->kind == CXCursor_BinaryOperator &&
           node_between(s, set->first, set->first->next, "=") &&
           are(s, a, b, node_bare(set->first), node_bare(set->first->next));
}

static bool is_moment(const struct source *s, const struct node *n) {
    const char *end = s->text.data + n->end;
    if (n->kind == CXCursor_CallExpr && n->first)
        end = s->text.data + n->first->end;
    return n->end - n->begin > 3 && strncmp(end - 3, "_ns", 3) == 0;
}

/* Of two moments, to the nanosecond: no clock that runs is asked in that one. The core's stands still meanwhile. */
static bool is_of_moments(const struct source *s, const struct node *n) {
    const struct node *a = node_bare(n->first), *b = node_bare(n->first->next);
    return strncmp(s->path, "agent/core/", 11) != 0 && (is_moment(s, a) || is_moment(s, b)) &&
           a->kind != CXCursor_IntegerLiteral && b->kind != CXCursor_IntegerLiteral;
}

static void find(const struct finding *f, const struct node *n) {
    static const char *const other[][2] = {{"<", "<="}, {"<=", "<"}, {">", ">="}, {">=", ">"}};
    const struct source *s = f->source;
    if (n->kind != CXCursor_BinaryOperator || node_children(n) != 2 || picks_one_of_them(s, n) ||
        is_of_moments(s, n))
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
