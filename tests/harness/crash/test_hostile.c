/* Records that nobody would write: whatever they say, nothing breaks, nothing leads out of the
 * directory, and what makes no sense is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "harness/crash/causes.h"
#include "harness/crash/folder.h"
#include "harness/crash/words.h"
#include "tests/harness/crash/record_maker.h"

#include <stdlib.h>

static struct made made;

static void begin(void) {
    made_drop(&made);
    memset(&made, 0, sizeof(made));
}

static int no_way_out(void *arg, const struct crash_entry *e) {
    size_t *n = arg;
    ++*n;
    assert_true(*e->path && *e->path != '/' && !strstr(e->path, "//"));
    for (const char *p = e->path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL) {
        size_t len = strcspn(p, "/");
        assert_false((len == 1 && *p == '.') || (len == 2 && !strncmp(p, "..", 2)));
        assert_true(len < 256);
    }
    return 0;
}

static enum crash_verdict by_chance(void *arg, size_t state, const struct crash_way *way) {
    (void)way;
    return rand_below(arg, 3) || state % 2 ? CRASH_BAD : CRASH_GOOD;
}

static void use_all(struct crash_states *s, struct rand *r) {
    ARENA_FINI struct arena arena = {0};
    struct crash_judge judge = {by_chance, r, true};
    const struct crash_cause *causes;
    size_t n, seen = 0;
    crash_causes_find(s, &judge, &arena, &causes, &n);
    for (size_t i = 0; i < n; i++)
        assert_non_null(causes[i].sentence);
    for (size_t i = 0; i < s->n; i++) {
        BUF_FINI struct buf b = {0};
        crash_states_walk(s, i, no_way_out, &seen);
        crash_words_way(s, s->v[i].ways, &b);
        crash_words_look(s, s->v[i].ways, &b);
    }
}

static void draw(struct rand *r) {
    static const char *const paths[] = {"a",
                                        "b",
                                        "d",
                                        "d/a",
                                        "d/d",
                                        "d/d/a",
                                        "..",
                                        "../a",
                                        "d/../../a",
                                        "/etc/passwd",
                                        "",
                                        ".",
                                        "a//b",
                                        "d/",
                                        "./a",
                                        "a/b/c/d/e/f",
                                        "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d"};
    static const uint64_t sizes[] = {0,        1,          511,        4096,       70000,
                                     1U << 30, 1ULL << 40, 1ULL << 61, 1ULL << 63, UINT64_MAX};
    static const unsigned char bytes[70000] = {1, 2, 3};
    struct disk_operation o = {.deed = (enum disk_deed)rand_below(r, DISK_DEEDS_N + 1),
                               .directory = !rand_below(r, 3),
                               .file = rand_below(r, 12),
                               .mode = (unsigned)rand_below(r, 4) * 0133,
                               .offset = sizes[rand_below(r, 10)],
                               .size = sizes[rand_below(r, 10)]};
    o.path = rand_below(r, 30) ? paths[rand_below(r, rand_below(r, 2) ? 6 : 17)] : NULL;
    o.to = rand_below(r, 30) ? paths[rand_below(r, rand_below(r, 2) ? 6 : 17)] : NULL;
    bool told = o.deed == DISK_WRITE || o.deed == DISK_HAD;
    if (told && o.size > sizeof(bytes) && rand_below(r, 2))
        o.size = rand_below(r, sizeof(bytes));
    o.bytes = told && o.size <= sizeof(bytes) ? bytes : NULL;
    made.rank = (int)rand_below(r, 4) - 1;
    made.node = rand_below(r, 2) ? "n0" : "n1";
    if (rand_below(r, 3))
        o.file = 1 + rand_below(r, 4);
    made_add(&made, o);
}

static void test_whatever_a_record_says_nothing_breaks(void **state) {
    struct rand r;
    (void)state;
    rand_init(&r, 99);
    for (int record = 0; record < 150; record++) {
        struct crash_states s;
        struct err err = {0};
        begin();
        if (rand_below(&r, 2)) { /* some sense */
            made_had_directory(&made, "d");
            made_had(&made, "d/a", 'A', 5000);
            made.file = 20;
            made_create(&made, "a");
        }
        for (int i = 0; i < 30; i++)
            draw(&r);
        struct crash_ask ask = {.record = &made.record,
                                .models = DISK_MODELS_ALL,
                                .per_point = 6,
                                .states_max = 60,
                                .seed = (uint64_t)record};
        if (rand_below(&r, 2)) {
            ask.from = rand_below(&r, 33);
            ask.to = rand_below(&r, 40);
        }
        if (crash_states_find(&ask, &s, &err))
            continue;
        use_all(&s, &r);
        crash_states_fini(&s);
    }
}

static void test_what_makes_no_sense_is_counted_and_named(void **state) {
    struct crash_states s;
    struct crash_ask ask = {.record = &made.record};
    (void)state;
    begin();
    uint64_t f = made_create(&made, "a");
    made_create(&made, "../b");
    made_create(&made, "nowhere/b");
    made_names(&made, DISK_RENAME, "c", "d");
    made_write(&made, 77, "c", 0, 10, 'x');
    made_write(&made, f, "a", 0, 10, 'x');
    assert_int_equal(crash_states_find(&ask, &s, NULL), 0);
    assert_int_equal(s.ignored, 4);
    assert_string_equal(s.ignored_first,
                        "operation 1 of the record (create of \"../b\") makes no sense there");
    assert_int_equal(look(&s, s.n - 1, "a").there || look(&s, 0, "a").there, 1);
    crash_states_fini(&s);
}

static void test_an_empty_record_has_one_state(void **state) {
    struct crash_states s;
    struct crash_ask ask = {.record = &made.record};
    (void)state;
    begin();
    assert_int_equal(crash_states_find(&ask, &s, NULL), 0);
    assert_int_equal(s.n, 1);
    crash_states_fini(&s);
}

/* Renames that take a directory into itself when some of them are lost. */
static void test_directories_in_a_ring_are_gone_and_hold_nobody_up(void **state) {
    struct crash_states s;
    struct crash_ask ask = {.record = &made.record, .models = DISK_MODELS_ALL};
    size_t seen = 0;
    (void)state;
    begin();
    made_mkdir(&made, "x");
    made_mkdir(&made, "x/y");
    made_create(&made, "x/y/a");
    made_sync_directory(&made, "x");
    made_sync_directory(&made, "");
    made_names(&made, DISK_RENAME, "x/y", "y");
    made_names(&made, DISK_RENAME, "x", "y/x");
    made_names(&made, DISK_RENAME, "y", "z");
    assert_int_equal(crash_states_find(&ask, &s, NULL), 0);
    assert_int_equal(s.ignored, 0);
    for (size_t i = 0; i < s.n; i++)
        crash_states_walk(&s, i, no_way_out, &seen);
    crash_states_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whatever_a_record_says_nothing_breaks),
        cmocka_unit_test(test_what_makes_no_sense_is_counted_and_named),
        cmocka_unit_test(test_an_empty_record_has_one_state),
        cmocka_unit_test(test_directories_in_a_ring_are_gone_and_hold_nobody_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
