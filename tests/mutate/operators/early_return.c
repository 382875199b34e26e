/* A function that returns in the middle. */
#include "tests/mutate/operator.h"

#include <string.h>

static bool is_middle(const struct node *n) {
    const struct node *body = n->parent;
    return body && body->kind == CXCursor_CompoundStmt && body->parent &&
           body->parent->kind == CXCursor_FunctionDecl && n != body->first &&
           n->kind != CXCursor_DeclStmt && n->kind != CXCursor_ReturnStmt &&
           n->kind != CXCursor_LabelStmt;
}

static void find(const struct finding *f, const struct node *n) {
    if (!is_middle(n))
        return;
    CXType type = clang_getCanonicalType(clang_getCursorResultType(n->parent->parent->cursor));
    bool nothing = type.kind == CXType_Void;
    if (nothing || (type.kind != CXType_Record && type.kind != CXType_Invalid))
        find_bytes(f, operator_early_return.name, node_holder(n), n->begin, n->begin, "%s",
                   nothing ? "return; " : "return 0; ");
}

const struct operator operator_early_return = {
    .name = "early-return",
    .summary = "a function returns in the middle",
    .find = find,
};
