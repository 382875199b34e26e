/* A number that is another, a truth that is none. */
#include "tests/mutate/operator.h"

#include <ctype.h>
#include <string.h>

/* {0} says that there is nothing yet. */
static bool is_nothing_yet(const struct node *n) {
    while (n->parent && n->parent->kind == CXCursor_UnexposedExpr)
        n = n->parent;
    return n->parent && n->parent->kind == CXCursor_InitListExpr && node_children(n->parent) == 1;
}

static bool is_number(const struct source *s, const struct node *n) {
    return n->end > n->begin && isdigit((unsigned char)s->text.data[n->begin]);
}

/* "10" or more, by tens: who mistypes it has a digit too many, and not a bound that is one more. */
static bool is_long(const struct source *s, const struct node *n) {
    const char *at = s->text.data + n->begin;
    return n->end - n->begin > 1 && at[0] != '0' && isdigit((unsigned char)at[1]);
}

static void find_number(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    const struct node *minus = n->parent;
    if (minus && minus->kind == CXCursor_UnaryOperator && minus->end == n->end &&
        s->text.data[minus->begin] == '-')
        find_instead(f, operator_constant_changed.name, minus, "0");
    else if (n->kind == CXCursor_FloatingLiteral)
        find_instead(f, operator_constant_changed.name, n, "(%.*s * 2)", NODE_TEXT(s, n));
    else if (is_long(s, n))
        find_instead(f, operator_constant_changed.name, n, "(%.*s * 10)", NODE_TEXT(s, n));
    else
        find_instead(f, operator_constant_changed.name, n, "(%.*s + 1)", NODE_TEXT(s, n));
}

static void find(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    if (n->kind != CXCursor_IntegerLiteral && n->kind != CXCursor_FloatingLiteral)
        return;
    if (node_reads(s, n, "true"))
        find_instead(f, operator_constant_changed.name, n, "false");
    else if (node_reads(s, n, "false"))
        find_instead(f, operator_constant_changed.name, n, "true");
    else if (is_number(s, n) && !is_nothing_yet(n) && !node_is_length(n))
        find_number(f, n);
}

const struct operator operator_constant_changed = {
    .name = "constant-changed",
    .summary = "a number is another, a truth is none",
    .find = find,
};
