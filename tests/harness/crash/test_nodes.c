/* Several disks in one record: what all nodes share, and one of each node. What a node's death takes,
 * and how far the others go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "harness/crash/causes.h"
#include "harness/crash/words.h"
#include "tests/harness/crash/record_maker.h"

#include <stdlib.h>

enum { BYTES = 1000, NFS = 4 }; /* NFS: its row of disk_models, from 1 */

struct scene {
    struct made made;
    struct crash_states states;
    struct arena arena;
    const struct crash_cause *causes;
    size_t causes_n;
};

static struct scene *begin(void) {
    struct scene *s = calloc(1, sizeof(*s));
    made_had_directory(&s->made, "shared");
    made_had_directory(&s->made, "n0");
    made_had_directory(&s->made, "n1");
    return s;
}

static void end(struct scene *s) {
    crash_states_fini(&s->states);
    arena_fini(&s->arena);
    made_drop(&s->made);
    free(s);
}

static void be(struct made *m, int rank) {
    static const char *const nodes[] = {"n0", "n1"};
    m->rank = rank;
    m->node = nodes[rank];
}

static uint64_t put(struct made *m, const char *path, bool sync) {
    uint64_t f = made_create(m, path);
    made_write(m, f, path, 0, BYTES, 'a');
    if (sync)
        made_on(m, DISK_SYNC, f, path);
    return f;
}

static void find(struct scene *s, const char *models) {
    struct err err = {0};
    struct crash_ask ask = {
        .record = &s->made.record, .shared = NFS, .per_point = SIZE_MAX, .states_max = SIZE_MAX};
    assert_string_equal(disk_models[NFS - 1].name, "nfs");
    assert_int_equal(disk_models_parse(models, &ask.models, &err), 0);
    assert_int_equal(crash_states_find(&ask, &s->states, &err), 0);
    assert_int_equal(s->states.ignored, 0);
}

static bool has(struct scene *s, size_t state, const char *path) {
    struct looked l = look(&s->states, state, path);
    return l.there && l.size == BYTES && l.told == BYTES;
}

/* Some state has both as asked, reached by a death of this node ("" all). */
static bool may_be(struct scene *s, const char *node, const char *a, bool has_a, const char *b,
                   bool has_b) {
    for (size_t i = 0; i < s->states.n; i++)
        for (size_t k = 0; k < s->states.v[i].ways_n; k++) {
            const struct crash_way *w = &s->states.v[i].ways[k];
            if (w->death != CRASH_PROCESS && str_eq(w->node, node) &&
                w->point == s->made.record.n && has(s, i, a) == has_a && has(s, i, b) == has_b)
                return true;
        }
    return false;
}

static void test_a_node_loses_what_its_own_disk_had_not_synced(void **state) {
    (void)state;
    struct scene *s = begin();
    be(&s->made, 0);
    put(&s->made, "n0/a", false);
    be(&s->made, 1);
    put(&s->made, "n1/b", false);
    find(s, "ext4");
    assert_true(may_be(s, "n0", "n0/a", false, "n1/b", true));
    assert_true(may_be(s, "n1", "n0/a", true, "n1/b", false));
    assert_false(may_be(s, "n0", "n0/a", true, "n1/b", false));
    assert_false(may_be(s, "n1", "n0/a", false, "n1/b", true));
    assert_true(may_be(s, "", "n0/a", false, "n1/b", false));
    assert_true(may_be(s, "", "n0/a", false, "n1/b", true));
    end(s);
}

static void test_a_journal_is_that_of_one_disk(void **state) {
    (void)state;
    struct scene *s = begin();
    be(&s->made, 1);
    put(&s->made, "n1/b", false);
    be(&s->made, 0);
    put(&s->made, "n0/a", true);
    find(s, "ext4,xfs");
    assert_true(may_be(s, "", "n0/a", true, "n1/b", false));
    assert_false(may_be(s, "", "n0/a", false, "n1/b", true));
    end(s);
}

static void test_of_what_is_shared_a_node_loses_its_own_bytes(void **state) {
    (void)state;
    struct scene *s = begin();
    be(&s->made, 0);
    put(&s->made, "shared/a", false);
    be(&s->made, 1);
    put(&s->made, "shared/b", false);
    find(s, "ext4,xfs,posix");
    assert_true(may_be(s, "n1", "shared/a", true, "shared/b", false));
    assert_false(may_be(s, "n1", "shared/a", false, "shared/b", true));
    for (size_t i = 0; i < s->states.n; i++) /* the names are at the server */
        for (size_t k = 0; k < s->states.v[i].ways_n; k++)
            if (s->states.v[i].ways[k].point == s->made.record.n)
                assert_true(look(&s->states, i, "shared/b").there);
    end(s);
}

/* ---- a pointer on what is shared, to what lies on the nodes ---- */

static enum crash_verdict verdict(void *arg, size_t state, const struct crash_way *way) {
    struct scene *s = arg;
    (void)way;
    return has(s, state, "shared/latest") && !has(s, state, "n1/shard") ? CRASH_BAD : CRASH_GOOD;
}

static void try(struct scene *s) {
    struct crash_judge judge = {verdict, s, true};
    find(s, "ext4,xfs");
    crash_causes_find(&s->states, &judge, &s->arena, &s->causes, &s->causes_n);
    for (size_t i = 0; i < s->causes_n; i++)
        print_message("%s; %s\n", s->causes[i].sentence,
                      s->causes[i].missing ? s->causes[i].missing : "");
}

static void wait_for_all(struct made *m) {
    be(m, 0);
    made_mark(m, "barrier");
    be(m, 1);
    made_mark(m, "barrier");
}

/* Rank 1 saves on its own disk, rank 0 points to it. */
static struct scene *saved(bool sync, bool barrier) {
    struct scene *s = begin();
    struct made *m = &s->made;
    wait_for_all(m);
    be(m, 1);
    put(m, "n1/shard", sync);
    if (barrier)
        wait_for_all(m);
    be(m, 0);
    put(m, "shared/latest", true);
    wait_for_all(m);
    return s;
}

static void test_a_pointer_to_what_was_synced_and_waited_for_is_well(void **state) {
    (void)state;
    struct scene *s = saved(true, true);
    try(s);
    assert_int_equal(s->causes_n, 0);
    end(s);
}

static void test_what_a_node_has_not_synced_is_found_with_its_name(void **state) {
    (void)state;
    struct scene *s = saved(false, true);
    try(s);
    assert_int_equal(s->causes_n, 1);
    assert_string_equal(
        s->causes[0].sentence,
        "create of shared/latest before fsync of n1/shard: after power loss of node "
        "n1 `n1/shard` is an empty file");
    end(s);
}

/* In time it came behind the shard. */
static void test_a_commit_that_does_not_wait_is_found_where_the_other_node_dies(void **state) {
    (void)state;
    struct scene *s = saved(true, false);
    try(s);
    assert_int_equal(s->causes_n, 1);
    assert_string_equal(s->causes[0].sentence,
                        "the death of rank 1 on n1 before its create of n1/shard, while the others "
                        "went on: `n1/shard` is not there");
    end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_loses_what_its_own_disk_had_not_synced),
        cmocka_unit_test(test_a_journal_is_that_of_one_disk),
        cmocka_unit_test(test_of_what_is_shared_a_node_loses_its_own_bytes),
        cmocka_unit_test(test_a_pointer_to_what_was_synced_and_waited_for_is_well),
        cmocka_unit_test(test_what_a_node_has_not_synced_is_found_with_its_name),
        cmocka_unit_test(test_a_commit_that_does_not_wait_is_found_where_the_other_node_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
