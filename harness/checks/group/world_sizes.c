#include "harness/checks/check.h"

#include <stdio.h>

/* -1 in the pattern stands for any run of rounds, also none. */
static bool matches(const int *pattern, size_t pattern_n, const int *sizes, size_t n) {
    if (!pattern_n)
        return !n;
    if (pattern[0] != -1)
        return n && pattern[0] == sizes[0] && matches(pattern + 1, pattern_n - 1, sizes + 1, n - 1);
    for (size_t skip = 0; skip <= n; skip++)
        if (matches(pattern + 1, pattern_n - 1, sizes + skip, n - skip))
            return true;
    return false;
}

static void print(char *out, size_t size, const int *v, size_t n) {
    size_t at = (size_t)snprintf(out, size, "[");
    for (size_t i = 0; i < n && at < size; i++)
        at += (size_t)(v[i] == -1 ? snprintf(out + at, size - at, "%s*", i ? ", " : "")
                                  : snprintf(out + at, size - at, "%s%d", i ? ", " : "", v[i]));
    if (at < size)
        snprintf(out + at, size - at, "]");
}

static const char *idle(const struct scenario *s) {
    return !s->expect.has_world_sizes ? "the scenario does not ask for world sizes" : NULL;
}

static void judge(const struct trial *t, struct finding *f) {
    enum { ROUNDS_MAX = 512 };
    const struct expect *e = &t->scenario->expect;
    int sizes[ROUNDS_MAX];
    char wanted[150], seen[200], expected[200];
    size_t n = 0;
    if (e->outcome == OUTCOME_SUCCEEDED && !check_sees_rounds(t, f))
        return;
    for (size_t i = 0; i < t->rounds->n && n < ROUNDS_MAX; i++)
        if (t->rounds->v[i]->complete) {
            sizes[n++] = t->rounds->v[i]->world_size;
            finding_prove(f, t->rounds->v[i]->workers[0]->start_seq);
        }
    size_t tail = e->world_sizes_ends && n > e->world_sizes_n ? n - e->world_sizes_n : 0;
    print(wanted, sizeof(wanted), e->world_sizes, e->world_sizes_n);
    print(seen, sizeof(seen), sizes, n);
    if (matches(e->world_sizes, e->world_sizes_n, sizes + tail, n - tail)) {
        finding_pass(f, "%s", seen);
        return;
    }
    snprintf(expected, sizeof(expected),
             e->world_sizes_ends ? "world_sizes: {ends: %s}" : "world_sizes: %s", wanted);
    finding_fail(f, "World sizes: the rounds that the scenario expects.", expected,
                 "%s in the %zu complete round%s", seen, n, n == 1 ? "" : "s");
}

const struct check check_world_sizes = {
    .name = "world_sizes",
    .summary = "the complete rounds have the world sizes that the scenario expects",
    .text = "expect.world_sizes: WORLD_SIZE of the complete rounds in order, all of them; \"*\" "
            "stands for any run of rounds, {ends: [6]} looks at the last ones only. Rounds that "
            "never became complete are reported, not listed.",
    .example = "expect: {world_sizes: [6, 4]}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(PROBE),
    .idle = idle,
    .judge = judge,
};
