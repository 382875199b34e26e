/* Compares the sizes of the complete rounds with those that the scenario expects. */
#include "harness/judge/checks/check.h"

#include <stdio.h>

/* -1 in the pattern stands for any run of rounds, also none: as few as will do, and one more each
 * time that what follows does not fit. */
static bool matches(const int *pattern, size_t pattern_n, const int *sizes, size_t n) {
    size_t p = 0, behind_star = 0, taken = 0; /* behind_star 0: there was none yet */
    for (size_t i = 0; i < n;) {
        if (p < pattern_n && pattern[p] == -1) {
            behind_star = ++p;
            taken = i;
        } else if (p < pattern_n && pattern[p] == sizes[i]) {
            p++;
            i++;
        } else if (behind_star) {
            p = behind_star;
            i = ++taken;
        } else {
            return false;
        }
    }
    while (p < pattern_n && pattern[p] == -1)
        p++;
    return p == pattern_n;
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

static bool judge_sizes(const struct expect *e, struct finding *f, const int *sizes, size_t n) {
    char wanted[150], seen[200];
    size_t tail = e->world_sizes_ends && n > e->world_sizes_n ? n - e->world_sizes_n : 0;
    print(wanted, sizeof(wanted), e->world_sizes, e->world_sizes_n);
    print(seen, sizeof(seen), sizes, n);
    if (matches(e->world_sizes, e->world_sizes_n, sizes + tail, n - tail))
        return finding_pass(f, "%s", seen);
    const char *expected = finding_expected(
        f, e->world_sizes_ends ? "world_sizes: {ends: %s}" : "world_sizes: %s", wanted);
    return finding_fail(f, "World sizes: the rounds that the scenario expects.", expected,
                        "%s in the %zu complete round%s", seen, n, n == 1 ? "" : "s");
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    if (e->outcome == OUTCOME_SUCCEEDED && !check_sees_rounds(t, f))
        return false;
    int *sizes = arena_array(t->arena, int, t->rounds->n);
    size_t n = 0;
    for (size_t i = 0; i < t->rounds->n; i++)
        if (t->rounds->v[i]->complete) {
            sizes[n++] = t->rounds->v[i]->world_size;
            finding_prove(f, t->rounds->v[i]->workers[0]->start_seq);
        }
    return judge_sizes(e, f, sizes, n);
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
    .not_applicable = idle,
    .judge = judge,
};
