/* A statement that is not there: a call, an assignment, a step, a break. */
#include "base/str.h"
#include "tests/mutate/operators/call.h"

#include <string.h>

static bool assigns(const struct source *s, const struct node *n) {
    if (n->kind == CXCursor_CompoundAssignOperator)
        return true;
    return n->kind == CXCursor_BinaryOperator && node_children(n) == 2 &&
           node_between(s, n->first, n->first->next, "=");
}

static bool steps(const struct source *s, const struct node *n) {
    const char *at = s->text.data + n->begin, *end = s->text.data + n->end;
    return n->kind == CXCursor_UnaryOperator && end - at > 2 &&
           (strncmp(at, "++", 2) == 0 || strncmp(at, "--", 2) == 0 ||
            strncmp(end - 2, "++", 2) == 0 || strncmp(end - 2, "--", 2) == 0);
}

static bool jumps(const struct source *s, const struct node *n) {
    return (n->kind == CXCursor_BreakStmt && node_reads(s, n, "break")) ||
           (n->kind == CXCursor_ContinueStmt && node_reads(s, n, "continue"));
}

static void find(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    bool calls = call_is_written(s, n) && !call_releases(s, n) && !node_reads(s, n, "abort()");
    if (node_is_statement(s, n) && (calls || assigns(s, n) || steps(s, n) || jumps(s, n)))
        find_instead(f, operator_statement_dropped.name, n, "%s", "");
}

const struct operator operator_statement_dropped = {
    .name = "statement-dropped",
    .summary = "a statement is not there: a call, an assignment, a step, a break",
    .find = find,
};
