/* What is promised of the list of states: what was synced is in all of them, they come in an order
 * that tells most first, the bound holds and what is beyond it is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "base/str.h"
#include "harness/crash/words.h"
#include "tests/harness/crash/record_maker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct made made;

static void set_up(void) {
    made_drop(&made);
    memset(&made, 0, sizeof(made));
}

static void find(struct crash_states *s, struct crash_ask ask) {
    struct err err = {0};
    ask.record = &made.record;
    assert_int_equal(crash_states_find(&ask, s, &err), 0);
    assert_int_equal(s->ignored, 0);
}

static void draw_other(struct rand *r, const char *const *names, uint64_t *files) {
    size_t i = rand_below(r, 3), k = rand_below(r, 3);
    switch (rand_below(r, 6)) {
    case 0:
        if (!files[i])
            files[i] = made_create(&made, names[i]);
        break;
    case 1:
    case 2:
        if (files[i])
            made_write(&made, files[i], names[i], rand_below(r, 9000), 1 + rand_below(r, 20000),
                       'x');
        break;
    case 3:
        if (files[i] && i != k) {
            made_names(&made, DISK_RENAME, names[i], names[k]);
            files[k] = files[i];
            files[i] = 0;
        }
        break;
    case 4:
        if (files[i])
            made_truncate(&made, files[i], names[i], rand_below(r, 5000));
        break;
    default:
        if (files[i])
            made_on(&made, rand_below(r, 2) ? DISK_SYNC : DISK_CLOSE, files[i], names[i]);
    }
}

static void test_what_was_synced_with_its_directories_is_in_every_later_state(void **state) {
    static const char *const names[] = {"other", "d/other", "d/e/other"};
    struct rand r;
    (void)state;
    rand_init(&r, 4);
    for (int record = 0; record < 12; record++) {
        struct crash_states s;
        uint64_t files[3] = {0};
        set_up();
        made_mkdir(&made, "d");
        made_mkdir(&made, "d/e");
        draw_other(&r, names, files);
        uint64_t f = made_create(&made, "d/e/kept");
        made_write(&made, f, "d/e/kept", 0, 10000, 'k');
        made_on(&made, DISK_SYNC, f, "d/e/kept");
        made_sync_directory(&made, "d/e");
        made_sync_directory(&made, "d");
        made_sync_directory(&made, "");
        size_t from = made.record.n;
        for (int i = 0; i < 10; i++)
            draw_other(&r, names, files);
        find(&s, (struct crash_ask){.from = from, .models = DISK_MODELS_ALL});
        for (size_t i = 0; i < s.n; i++) {
            struct looked l = look(&s, i, "d/e/kept");
            assert_true(l.there && l.size == 10000 && l.told == 10000 && l.first == 'k');
        }
        crash_states_fini(&s);
    }
}

static void save(int files) {
    static char names[16][2][40];
    made_had(&made, "latest", 'A', 100);
    for (int i = 0; i < files; i++) {
        char *tmp = names[i][0], *name = names[i][1];
        snprintf(tmp, 40, "file-%d.tmp", i);
        snprintf(name, 40, "file-%d", i);
        uint64_t f = made_create(&made, tmp);
        made_write(&made, f, tmp, 0, 20000, 'a');
        made_write(&made, f, tmp, 20000, 20000, 'b');
        if (i % 2)
            made_on(&made, DISK_SYNC, f, tmp);
        made_names(&made, DISK_RENAME, tmp, name);
    }
    made_sync_directory(&made, "");
}

static void test_states_are_all_different_and_know_the_smallest_way_first(void **state) {
    struct crash_states s;
    (void)state;
    set_up();
    save(4);
    find(&s, (struct crash_ask){0});
    for (size_t i = 0; i < s.n; i++) {
        const struct crash_state *x = &s.v[i];
        assert_true(x->ways_n > 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(x->hash, s.v[k].hash);
        for (size_t k = 0; k < x->ways_n; k++) /* every way leads here */
            assert_int_equal(crash_states_seek(&s, &x->ways[k]), i);
    }
    crash_states_fini(&s);
}

static void test_commits_and_deaths_of_processes_go_first_and_then_something_of_all(void **state) {
    struct crash_states s;
    bool seen[CRASH_CLASSES_N] = {false};
    size_t first = 0;
    (void)state;
    set_up();
    save(6);
    find(&s, (struct crash_ask){0});
    assert_int_equal(s.v[0].class, CRASH_AT_COMMIT);
    while (s.v[first].class <= CRASH_PREFIX)
        first++;
    for (size_t i = first; i < s.n; i++) {
        assert_true(s.v[i].class > CRASH_PREFIX);
        if (i < first + 20)
            seen[s.v[i].class] = true;
    }
    assert_true(seen[CRASH_NO_CONTENTS] && seen[CRASH_NO_NAMES] && seen[CRASH_ONE] &&
                seen[CRASH_TORN]);
    crash_states_fini(&s);
}

static void test_the_bound_holds_and_what_is_beyond_it_is_counted(void **state) {
    struct crash_states all, few;
    (void)state;
    set_up();
    save(6);
    find(&all, (struct crash_ask){0});
    find(&few, (struct crash_ask){.per_point = 5, .states_max = 20});
    assert_int_equal(few.n, 20);
    assert_true(few.left_out >= all.left_out && all.left_out > 0);
    assert_true(few.ways <= few.points * (1 + 3 * 5 + 3));
    crash_states_fini(&all);
    crash_states_fini(&few);
}

static void test_the_same_seed_finds_the_same_states(void **state) {
    struct crash_states a, b;
    (void)state;
    set_up();
    save(3);
    find(&a, (struct crash_ask){.seed = 5});
    find(&b, (struct crash_ask){.seed = 5});
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++)
        assert_string_equal(a.v[i].hash, b.v[i].hash);
    crash_states_fini(&a);
    crash_states_fini(&b);
}

/* On NFS a node that dies takes its own bytes with it, and nobody else's. */
static int see_mode(void *arg, const struct crash_entry *e) {
    unsigned *seen = arg;
    *seen |= str_eq(e->path, "a") ? e->mode == 0 ? 1 : e->mode == 0644 ? 2 : 4 : 0;
    return 0;
}

static unsigned modes_of_all(size_t from, unsigned models) {
    struct crash_states s;
    unsigned seen = 0;
    find(&s, (struct crash_ask){.from = from, .models = models, .deaths = 1 << CRASH_POWER});
    for (size_t i = 0; i < s.n; i++)
        crash_states_walk(&s, i, see_mode, &seen);
    crash_states_fini(&s);
    return seen;
}

static void change_mode(uint64_t file, unsigned mode) {
    made_add(&made, (struct disk_operation){.deed = DISK_MODE, .file = file, .path = "a"})->mode =
        mode;
}

/* By an fsync, and with a journal by that of anything later; fdatasync does not care about it. */
static void test_a_mode_may_be_lost_until_its_file_is_synced(void **state) {
    enum { NEW = 1, OLD = 2, EXT4 = 1 << 0, POSIX = 1 << 2, NFS = 1 << 3 };
    (void)state;
    set_up();
    uint64_t f = made_had(&made, "a", 'A', 100);
    size_t from = made.record.n;
    change_mode(f, 0);
    assert_int_equal(modes_of_all(from, EXT4), OLD | NEW);
    assert_int_equal(modes_of_all(from + 1, EXT4), OLD | NEW);
    assert_int_equal(modes_of_all(from + 1, POSIX), OLD | NEW);
    assert_int_equal(modes_of_all(from + 1, NFS), NEW);
    made_on(&made, DISK_SYNC_DATA, f, "a");
    assert_int_equal(modes_of_all(from + 2, POSIX), OLD | NEW);
    made_on(&made, DISK_SYNC, f, "a");
    assert_int_equal(modes_of_all(from + 3, EXT4), NEW);
    assert_int_equal(modes_of_all(from + 3, POSIX), NEW);

    set_up();
    f = made_had(&made, "a", 'A', 100);
    from = made.record.n;
    change_mode(f, 0);
    made_on(&made, DISK_SYNC, made_create(&made, "b"), "b");
    assert_int_equal(modes_of_all(from + 3, EXT4), NEW); /* a create behind it is there */
    assert_int_equal(modes_of_all(from + 3, POSIX), OLD | NEW);
}

static void test_on_nfs_a_node_loses_its_own_bytes(void **state) {
    struct crash_states s;
    bool seen[4] = {false};
    (void)state;
    set_up();
    for (int rank = 0; rank < 2; rank++) {
        made.rank = rank;
        made.node = rank ? "n1" : "n0";
        uint64_t f = made_create(&made, rank ? "b" : "a");
        made_write(&made, f, rank ? "b" : "a", 0, 100, 'x');
    }
    find(&s, (struct crash_ask){.from = 4, .deaths = 1 << CRASH_POWER, .models = 1 << 3});
    for (size_t i = 0; i < s.n; i++)
        for (size_t k = 0; k < s.v[i].ways_n; k++) {
            const struct crash_way *w = &s.v[i].ways[k];
            bool a = look(&s, i, "a").size == 100, b = look(&s, i, "b").size == 100;
            seen[a + 2 * b] = true;
            assert_true(!str_eq(w->node, "n0") || b);
            assert_true(!str_eq(w->node, "n1") || a);
        }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
    crash_states_fini(&s);
}

static void test_a_process_that_dies_in_a_long_write_leaves_whole_pages_of_it(void **state) {
    struct crash_states s;
    bool half = false;
    (void)state;
    set_up();
    uint64_t f = made_create(&made, "a");
    made_write(&made, f, "a", 0, 50000, 'x');
    find(&s, (struct crash_ask){.deaths = 1 << CRASH_PROCESS});
    for (size_t i = 0; i < s.n; i++) {
        struct looked l = look(&s, i, "a");
        assert_true(l.size == 50000 || l.size % 4096 == 0);
        half |= l.size == 24576;
    }
    assert_true(half);
    crash_states_fini(&s);
}

static void test_points_that_are_none_are_refused(void **state) {
    struct crash_states s;
    struct err err = {0};
    (void)state;
    set_up();
    save(1);
    struct crash_ask ask = {.record = &made.record, .from = 2, .to = 999};
    assert_int_equal(crash_states_find(&ask, &s, &err), -EINVAL);
    assert_string_equal(err.msg,
                        "points 2 to 999 are none of a record of 6 operations; take 0 to 6");
}

static void test_an_unknown_file_system_is_refused_with_those_that_there_are(void **state) {
    unsigned models = 77;
    struct err err = {0};
    (void)state;
    assert_int_equal(disk_models_parse("ext4,xsf", &models, &err), -EINVAL);
    assert_int_equal(models, 77);
    assert_non_null(strstr(err.msg, "did you mean xfs"));
    assert_int_equal(disk_models_parse("xfs,nfs", &models, &err), 0);
    assert_int_equal(models, 1 << 1 | 1 << 3);
}

static void test_a_way_is_told_in_words(void **state) {
    BUF_FINI struct buf b = {0};
    struct crash_states s;
    struct crash_loss lost[] = {{2, CRASH_BYTES, 0, 20000}, {3, CRASH_BYTES, 20000, 40000}};
    struct crash_way way = {.point = 5,
                            .death = CRASH_POWER,
                            .models = 1 << 0 | 1 << 2,
                            .rank = -1,
                            .node = "",
                            .losses = lost,
                            .losses_n = 2};
    (void)state;
    set_up();
    save(1);
    find(&s, (struct crash_ask){0});
    crash_words_way(&s, &way, &b);
    assert_string_equal(buf_str(&b),
                        "after operation 4 (rename of file-0.tmp to file-0), power loss on ext4 or "
                        "posix: lost is bytes of file-0.tmp (2 writes), not its size");
    crash_states_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_synced_with_its_directories_is_in_every_later_state),
        cmocka_unit_test(test_states_are_all_different_and_know_the_smallest_way_first),
        cmocka_unit_test(test_commits_and_deaths_of_processes_go_first_and_then_something_of_all),
        cmocka_unit_test(test_the_bound_holds_and_what_is_beyond_it_is_counted),
        cmocka_unit_test(test_the_same_seed_finds_the_same_states),
        cmocka_unit_test(test_a_mode_may_be_lost_until_its_file_is_synced),
        cmocka_unit_test(test_on_nfs_a_node_loses_its_own_bytes),
        cmocka_unit_test(test_a_process_that_dies_in_a_long_write_leaves_whole_pages_of_it),
        cmocka_unit_test(test_points_that_are_none_are_refused),
        cmocka_unit_test(test_an_unknown_file_system_is_refused_with_those_that_there_are),
        cmocka_unit_test(test_a_way_is_told_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
