/* A lock, an unlock, a sync or a close that does not happen. */
#include "tests/mutate/operators/call.h"

static void find(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    if (!call_is_written(s, n) || !call_releases(s, n))
        return;
    if (node_is_statement(s, n))
        find_instead(f, operator_release_dropped.name, n, "%s", "");
    else if (clang_getCursorType(n->cursor).kind == CXType_Int)
        find_instead(f, operator_release_dropped.name, n, "0");
}

const struct operator operator_release_dropped = {
    .name = "release-dropped",
    .summary = "a lock, an unlock, a sync or a close does not happen",
    .find = find,
};
