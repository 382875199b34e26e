/* The small plain things: errors, text, buffers, arenas, lists, draws, hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/rand.h"
#include "base/sha256.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

static void test_an_error_carries_its_context_outwards(void **state) {
    (void)state;
    struct err e = {0};
    assert_int_equal(err_set(&e, -ENOENT, "open %s", "/x"), -ENOENT);
    assert_string_equal(e.msg, "open /x: No such file or directory");
    assert_int_equal(err_wrap(&e, "n%d: ", 2), -ENOENT);
    assert_string_equal(e.msg, "n2: open /x: No such file or directory");
    assert_int_equal(err_set(NULL, -EIO, "nobody listens"), -EIO);
}

static void test_a_long_error_is_cut_and_ended(void **state) {
    (void)state;
    struct err e = {0};
    char word[2000];
    memset(word, 'x', sizeof(word));
    word[sizeof(word) - 1] = '\0';
    err_set(&e, -EIO, "%s", word);
    err_wrap(&e, "%s", word);
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
}

static void test_durations_need_a_unit(void **state) {
    (void)state;
    int64_t ns = 0;
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {{"250ms", 250000000},      {"2s", 2000000000},          {"1.5s", 1500000000},
                {"5m", 300000000000},      {"1h", 3600000000000},       {"0s", 0},
                {"6851851us", 6851851000}, {"2000000ms", 2000000000000}};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        assert_int_equal(str_to_duration_ns(good[i].text, &ns, NULL), 0);
        assert_int_equal(ns, good[i].ns);
    }
    static const char *const bad[] = {"",     "2",     "s",   "-1s",   "2 s",
                                      "2sec", "1e99s", "nan", "inf s", "1e13us"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(str_to_duration_ns(bad[i], &ns, NULL), -EINVAL);
}

static void test_numbers_are_whole_and_in_range(void **state) {
    (void)state;
    int64_t v = 77;
    assert_true(str_to_i64("-3", -5, 5, &v));
    assert_int_equal(v, -3);
    static const char *const bad[] = {"", " 1", "1 ", "+1", "1x", "6", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(str_to_i64(bad[i], -5, 5, &v));
    assert_int_equal(v, -3); /* untouched */
}

static void test_the_nearest_word_is_near(void **state) {
    (void)state;
    static const char *const words[] = {"node-kill", "node-leave", "worker-kill", NULL};
    assert_string_equal(str_nearest("nodekill", words), "node-kill");
    assert_string_equal(str_nearest("worker-kil", words), "worker-kill");
    assert_null(str_nearest("partition", words));
    static const char *const shorts[] = {"for", "ranks", "start", NULL};
    assert_null(str_nearest("tour", shorts));
    assert_null(str_nearest("random", shorts));
    assert_string_equal(str_nearest("strat", shorts), "start");
}

static void test_a_name_is_in_a_list_as_a_whole(void **state) {
    (void)state;
    static const char *const names[] = {"node-kill", "worker-kill", NULL};
    assert_true(str_in("worker-kill", names));
    assert_false(str_in("worker", names));
    assert_false(str_in(NULL, names));
    assert_false(str_in("worker-kill", names + 2));
}

static void test_text_is_cut_at_every_separator(void **state) {
    (void)state;
    struct arena a = {0};
    size_t n;
    char **v = str_split(&a, "a,,b", ',', &n);
    assert_int_equal(n, 3);
    assert_string_equal(v[1], "");
    assert_string_equal(v[2], "b");
    assert_null(v[3]);
    assert_int_equal(*str_split(&a, "", ',', &n)[0], '\0');
    assert_int_equal(n, 1);
    arena_fini(&a);
}

static void test_a_buffer_grows_and_stays_ended(void **state) {
    (void)state;
    struct buf b = {0};
    assert_string_equal(buf_str(&b), "");
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i);
    assert_int_equal(b.data[b.len], '\0');
    buf_consume(&b, 2);
    assert_true(str_starts(buf_str(&b), "1,2,"));
    buf_clear(&b);
    assert_string_equal(buf_str(&b), "");
    buf_fini(&b);
}

static void test_an_arena_gives_zeroed_aligned_memory_of_any_size(void **state) {
    (void)state;
    struct arena a = {0};
    for (size_t n = 1; n < 100000; n *= 3) {
        unsigned char *p = arena_alloc(&a, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, n);
    }
    assert_string_equal(arena_printf(&a, "%s-%d", "n", 3), "n-3");
    arena_fini(&a);
}

struct item {
    int value;
    struct list link;
};

static void test_a_list_may_lose_items_while_it_is_walked(void **state) {
    (void)state;
    struct list head;
    struct item items[5];
    list_init(&head);
    for (int i = 0; i < 5; i++) {
        items[i].value = i;
        list_append(&head, &items[i].link);
    }
    list_each_safe(it, next, &head) {
        if (list_entry(it, struct item, link)->value % 2)
            list_remove(it);
    }
    int sum = 0;
    list_each(it, &head) sum = sum * 10 + list_entry(it, struct item, link)->value;
    assert_int_equal(sum, 24); /* 0 2 4 */
}

static void test_the_same_seed_draws_the_same_and_evenly(void **state) {
    (void)state;
    struct rand a, b;
    int seen[7] = {0};
    rand_init(&a, 42);
    rand_init(&b, 42);
    for (int i = 0; i < 70000; i++) {
        uint64_t v = rand_below(&a, 7);
        assert_int_equal(v, rand_below(&b, 7));
        seen[v]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 9500, 10500);
    rand_init(&b, 43);
    assert_int_not_equal(rand_u64(&a), rand_u64(&b));
}

/* Vectors of FIPS 180-4, and one that crosses blocks in odd pieces. */
static void test_sha256_of_known_texts(void **state) {
    (void)state;
    static const struct {
        const char *text, *hex;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[65], pieces[65];
    struct sha256 s;
    for (size_t i = 0; i < 3; i++) {
        sha256_init(&s);
        sha256_update(&s, known[i].text, strlen(known[i].text));
        sha256_hex(&s, hex);
        assert_string_equal(hex, known[i].hex);
    }
    char text[1000];
    memset(text, 'a', sizeof(text));
    sha256_init(&s);
    sha256_update(&s, text, sizeof(text));
    sha256_hex(&s, hex);
    sha256_init(&s);
    for (size_t at = 0, n = 1; at < sizeof(text); at += n, n = n * 2 + 1) {
        n = n < sizeof(text) - at ? n : sizeof(text) - at;
        sha256_update(&s, text + at, n);
    }
    sha256_hex(&s, pieces);
    assert_string_equal(pieces, hex);
}

static void test_the_last_part_of_a_path_is_all_of_it_where_there_is_none(void **state) {
    (void)state;
    assert_string_equal(str_base("/usr/bin/python3"), "python3");
    assert_string_equal(str_base("python3"), "python3");
    assert_string_equal(str_base("trees/"), "trees/");
    assert_string_equal(str_base(""), "");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_error_carries_its_context_outwards),
        cmocka_unit_test(test_a_long_error_is_cut_and_ended),
        cmocka_unit_test(test_durations_need_a_unit),
        cmocka_unit_test(test_numbers_are_whole_and_in_range),
        cmocka_unit_test(test_the_nearest_word_is_near),
        cmocka_unit_test(test_a_name_is_in_a_list_as_a_whole),
        cmocka_unit_test(test_text_is_cut_at_every_separator),
        cmocka_unit_test(test_the_last_part_of_a_path_is_all_of_it_where_there_is_none),
        cmocka_unit_test(test_a_buffer_grows_and_stays_ended),
        cmocka_unit_test(test_an_arena_gives_zeroed_aligned_memory_of_any_size),
        cmocka_unit_test(test_a_list_may_lose_items_while_it_is_walked),
        cmocka_unit_test(test_the_same_seed_draws_the_same_and_evenly),
        cmocka_unit_test(test_sha256_of_known_texts),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
