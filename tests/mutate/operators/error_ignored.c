/* A failure that nobody hears of: the guard against it is gone, or it is not returned, or not taken. */
#include "base/str.h"
#include "tests/mutate/operators/call.h"
#include "tests/mutate/operators/errors.h"

#include <string.h>

/* How a code of success or failure is called here. */
static const char *const codes[] = {"r", "rc", "code", "error", NULL};

static bool is_code(const struct node *n) {
    CXString name = clang_getCursorSpelling(node_bare(n)->cursor);
    bool is = node_bare(n)->kind == CXCursor_DeclRefExpr && clang_getCString(name) &&
              str_in(clang_getCString(name), codes);
    clang_disposeString(name);
    return is;
}

/* Below zero, or not zero, of what is a code of failure or a call that returns one. */
static bool asks_for_failure(const struct source *s, const struct node *n) {
    n = node_bare(n);
    if (n->kind == CXCursor_BinaryOperator && node_children(n) == 2) {
        bool below = node_between(s, n->first, n->first->next, "<") ||
                     node_between(s, n->first, n->first->next, "!=");
        return (below && node_reads(s, n->first->next, "0")) || asks_for_failure(s, n->first) ||
               (node_between(s, n->first, n->first->next, "=") && is_code(n->first));
    }
    return is_code(n) ||
           (n->kind == CXCursor_CallExpr && clang_getCursorType(n->cursor).kind == CXType_Int);
}

bool errors_are_guarded(const struct source *s, const struct node *n) {
    if (n->kind != CXCursor_IfStmt || node_children(n) != 2 || !node_condition(s, n))
        return false;
    const struct node *then = node_child(n, 1);
    bool leaves = then->kind == CXCursor_ReturnStmt || then->kind == CXCursor_GotoStmt;
    return leaves && asks_for_failure(s, n->first);
}

static bool returns_int(const struct node *n) {
    const struct node *holder = node_holder(n);
    return holder->kind == CXCursor_FunctionDecl &&
           clang_getCursorResultType(holder->cursor).kind == CXType_Int;
}

static void find_returned(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    if (!n->first || !node_opens(s, n, "return") || !returns_int(n))
        return;
    if (is_code(n->first))
        find_instead(f, operator_error_ignored.name, n->first, "0");
    else if (call_is_written(s, node_bare(n->first)))
        find_instead(f, operator_error_ignored.name, n->first, "(%.*s, 0)", NODE_TEXT(s, n->first));
}

/* r = CALL, and int r = CALL. */
static const struct node *taken(const struct source *s, const struct node *n) {
    if (n->kind == CXCursor_BinaryOperator && node_children(n) == 2 &&
        node_between(s, n->first, n->first->next, "=") && is_code(n->first))
        return n->first->next;
    CXString name = clang_getCursorSpelling(n->cursor);
    bool code = n->kind == CXCursor_VarDecl && clang_getCString(name) &&
                str_in(clang_getCString(name), codes);
    clang_disposeString(name);
    return code ? n->first : NULL;
}

static void find(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    const struct node *call = taken(s, n);
    if (call && call_is_written(s, node_bare(call)) &&
        clang_getCursorType(node_bare(call)->cursor).kind == CXType_Int)
        find_instead(f, operator_error_ignored.name, call, "(%.*s, 0)", NODE_TEXT(s, call));
    if (errors_are_guarded(s, n))
        find_instead(f, operator_error_ignored.name, node_condition(s, n), "0");
    if (n->kind == CXCursor_ReturnStmt)
        find_returned(f, n);
}

const struct operator operator_error_ignored = {
    .name = "error-ignored",
    .summary = "a failure is not asked about, not taken or not returned",
    .find = find,
};
