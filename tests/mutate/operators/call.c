#include "tests/mutate/operators/call.h"

#include <string.h>

bool call_is_written(const struct source *s, const struct node *n) {
    if (n->kind != CXCursor_CallExpr || !n->first || n->first->begin != n->begin ||
        n->first->end >= n->end || s->text.data[n->end - 1] != ')')
        return false;
    size_t at = n->first->end;
    return s->text.data[at] == '(';
}

bool call_releases(const struct source *s, const struct node *n) {
    static const char *const words[] = {"lock", "sync", "close", NULL};
    CXString spelled = clang_getCursorSpelling(n->cursor);
    const char *name = clang_getCString(spelled);
    bool found = false;
    for (int i = 0; words[i] && !found; i++) {
        const char *at = name ? strstr(name, words[i]) : NULL;
        /* "clock" and "block" are other words. */
        found = at && (at == name || strchr("_fn", at[-1]) || strncmp(name, "fdata", 5) == 0);
    }
    (void)s;
    clang_disposeString(spelled);
    return found;
}

static bool is_truth(const struct source *s, const struct node *n) {
    const struct node *above = n->parent;
    while (above && node_bare(above) == n)
        above = above->parent;
    if (!above)
        return false;
    const struct node *left = above->first, *right = left ? left->next : NULL;
    if (above->kind == CXCursor_UnaryOperator)
        return s->text.data[above->begin] == '!';
    return above->kind == CXCursor_BinaryOperator && right && node_reads(s, right, "0") &&
           (node_between(s, left, right, "==") || node_between(s, left, right, "!="));
}

bool call_asks_equality(const struct source *s, const struct node *n) {
    static const char *const orders[] = {"strcmp", "strncmp", "memcmp"};
    if (node_reads(s, n->first, "str_eq"))
        return true;
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        if (node_reads(s, n->first, orders[i]))
            return is_truth(s, n);
    return false;
}
