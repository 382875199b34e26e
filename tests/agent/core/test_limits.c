/* Every limit from both sides: the last that is taken and the first that is not. And every byte, length and number that a
 * key is made of. */
#include "agent/core/rendezvous.h"
#include "agent/core/timing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MS 1000000LL

static char text[4][1024];

/* So many letters. */
static const char *letters(int i, size_t n) {
    memset(text[i], 'a', n);
    text[i][n] = '\0';
    return text[i];
}

static struct rendezvous_config config_of(void) {
    struct rendezvous_config c = {.run_id = "job",
                                  .node = "n0",
                                  .addr = "a0",
                                  .role = "r",
                                  .attempt = "",
                                  .slots = 1,
                                  .min = 1,
                                  .max = 1};
    timing_profile("default", &c.timing);
    return c;
}

/* words: what the sentence names; NULL: it is taken. */
static void expect(const struct rendezvous_config *c, const char *words) {
    struct err err = {0};
    struct rendezvous *r = rendezvous_new(c, 1, &err);
    assert_int_equal(r != NULL, words == NULL);
    assert_int_equal(err.code, words ? -22 : 0);
    if (words && !strstr(err.msg, words))
        fail_msg("\"%s\" is not in: %s", words, err.msg);
    rendezvous_free(r);
}

static void test_numbers_of_a_job_are_bounded(void **state) {
    (void)state;
    static const struct {
        size_t offset;
        int least, most;
        const char *words;
    } numbers[] = {
        {offsetof(struct rendezvous_config, slots), 1, 1 << 20, "0 workers per node"},
        {offsetof(struct rendezvous_config, min), 1, 1, "nodes 0:1"},
        {offsetof(struct rendezvous_config, max), 1, 1 << 20, "nodes 1:0"},
        {offsetof(struct rendezvous_config, max_restarts), 0, 1 << 20, "max_restarts -1"},
        {offsetof(struct rendezvous_config, max_free_rounds), 0, 1 << 20,
         "max_free_rounds_per_hour -1"},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        struct rendezvous_config c = config_of();
        int *number = (int *)(void *)((char *)&c + numbers[i].offset);
        for (*number = numbers[i].least;
             *number <= numbers[i].least + 1 && *number <= numbers[i].most; ++*number)
            expect(&c, NULL);
        *number = numbers[i].most;
        expect(&c, NULL);
        *number = numbers[i].least - 1;
        expect(&c, numbers[i].words);
    }
    struct rendezvous_config c = config_of();
    c.min = 2;
    expect(&c, "nodes 2:1: min must be at least 1 and at most max");
}

static void test_names_of_a_job_are_bounded(void **state) {
    (void)state;
    static const struct {
        size_t offset, most;
        bool needed;
    } names[] = {
        {offsetof(struct rendezvous_config, run_id), RUN_ID_MAX, true},
        {offsetof(struct rendezvous_config, attempt), ATTEMPT_SIZE - 1, false},
        {offsetof(struct rendezvous_config, role), ROLE_SIZE - 1, false},
        {offsetof(struct rendezvous_config, node), NAME_SIZE - 1, false},
        {offsetof(struct rendezvous_config, addr), NAME_SIZE - 1, false},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct rendezvous_config c = config_of();
        const char **name = (const char **)(void *)((char *)&c + names[i].offset);
        *name = letters(0, names[i].most - 1);
        expect(&c, NULL);
        *name = letters(0, names[i].most);
        expect(&c, NULL);
        *name = letters(0, names[i].most + 1);
        expect(&c, names[i].needed ? "the run id has 257 bytes" : "(63, 63, 255, 255 bytes)");
        *name = "";
        expect(&c, names[i].needed ? "the run id has 0 bytes" : NULL);
    }
}

/* ---- timing ---- */

/* The values that are just allowed, of which one is then made worse by a nanosecond. */
static struct timing tight(int64_t hb_ns) {
    struct timing t = {.hb_ns = hb_ns, .fence_ns = 3 * hb_ns};
    t.hard_ns = t.fence_ns + 50 * MS;
    t.suspect_ns = ((t.hard_ns + TIMING_KILL_NS) * 101 + 98) / 99;
    return t;
}

static void expect_timing(struct timing t, const char *words) {
    struct err err = {0};
    assert_int_equal(timing_check(&t, &err), words ? -22 : 0);
    if (words && strncmp(err.msg, words, strlen(words)) != 0)
        fail_msg("\"%s\" does not begin: %s", words, err.msg);
}

static void test_each_rule_of_timing_holds_to_the_nanosecond(void **state) {
    (void)state;
    for (int64_t hb_ns = MS; hb_ns < 4000 * MS; hb_ns = hb_ns * 7 / 2 + 1) {
        struct timing t = tight(hb_ns);
        expect_timing(t, NULL);
        t.suspect_ns--;
        expect_timing(t, "hard (");
        t = tight(hb_ns);
        t.hard_ns--;
        expect_timing(t, "hard (");
        t = tight(hb_ns);
        t.fence_ns--;
        expect_timing(t, "fence (");
    }
    struct timing t = tight(MS);
    t.hb_ns--;
    expect_timing(t, "hb is 0 ms; it must be at least 1 ms");
    expect_timing((struct timing){2 * MS, 5 * MS, 56 * MS, 200 * MS},
                  "fence (5 ms) must be at least 3 x hb (2 ms): one beat may be lost");
    expect_timing((struct timing){2 * MS, 7 * MS, 56 * MS, 200 * MS},
                  "hard (56 ms) must be at least fence (7 ms) + 50 ms");
    expect_timing((struct timing){2 * MS, 7 * MS, 57 * MS, 150 * MS},
                  "hard (57 ms) + 100 ms must be at most 0.98 x suspect (150 ms)");
}

static void test_beats_are_stretched_where_the_store_bears_no_more(void **state) {
    (void)state;
    for (int nodes = 900; nodes < 4000; nodes++) {
        struct timing t, was;
        timing_profile("default", &was);
        t = was;
        timing_stretch(&t, nodes, TIMING_EMBEDDED);
        assert_true(t.hb_ns == (nodes <= 1000 ? was.hb_ns : nodes * MS / 2));
        assert_int_equal(timing_check(&t, NULL), 0);
        struct timing etcd = was;
        timing_stretch(&etcd, nodes / 4, TIMING_ETCD);
        assert_true(etcd.hb_ns == (nodes / 4 <= 250 ? was.hb_ns : nodes / 4 * 2 * MS));
        assert_true(llabs(t.suspect_ns * was.hb_ns - was.suspect_ns * t.hb_ns) <= was.hb_ns);
        assert_true(llabs(t.fence_ns * was.hb_ns - was.fence_ns * t.hb_ns) <= was.hb_ns);
        assert_true(llabs(t.hard_ns * was.hb_ns - was.hard_ns * t.hb_ns) <= was.hb_ns);
    }
}

/* ---- keys ---- */

static const struct {
    enum key_kind kind;
    const char *behind; /* the incarnation */
    bool uid, pid, round;
} kinds[] = {
    {KEY_MEMBER, "m/", .uid = true},
    {KEY_SESSION, "s/", .uid = true},
    {KEY_GONE, "gone/", .uid = true},
    {KEY_LEAD, "lead", .uid = false},
    {KEY_PLAN, "plan/", .uid = true, .pid = true},
    {KEY_HEAD, "head", .uid = false},
    {KEY_ACK, "ack/", .uid = true, .round = true},
    {KEY_DONE, "done/", .uid = true, .round = true},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static struct store_key key_of(int i, int64_t round) {
    struct store_key k = {.kind = kinds[i].kind, .inc = "0123456789abcdef"};
    k.round = kinds[i].round ? round : 0;
    snprintf(k.uid, sizeof(k.uid), "%s", kinds[i].uid ? "fedcba9876543210fedcba9876543210" : "");
    snprintf(k.pid, sizeof(k.pid), "%s", kinds[i].pid ? "12-34-5" : "");
    return k;
}

/* Read back from memory that ends with it. */
static bool parse(const char *key, size_t n, const char *run_id, struct store_key *ret) {
    char *exact = malloc(n ? n : 1);
    memcpy(exact, key, n);
    bool is = key_parse(exact, n, run_id, ret), of_a_run = key_is_of_a_run(exact, n);
    assert_int_equal(is, of_a_run);
    free(exact);
    return is;
}

static void same_key(const struct store_key *a, const struct store_key *b) {
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->round, b->round);
    assert_string_equal(a->inc, b->inc);
    assert_string_equal(a->pid, b->pid);
    assert_string_equal(a->uid, b->uid);
}

/* A key cut anywhere is none of ours, and neither is one with something behind it. */
static void test_a_key_is_read_back_whole_or_not_at_all(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        char key[KEY_SIZE + 1], end[KEY_SIZE], expected[KEY_SIZE];
        struct store_key was = key_of(i, 1234567890), is;
        size_t n = key_format(&was, "job", key, end);
        snprintf(expected, sizeof(expected), "/rankrun/job/0123456789abcdef/%s%s%s%s%s",
                 kinds[i].behind, kinds[i].pid ? "12-34-5/" : "",
                 kinds[i].round ? "1234567890/" : "", was.uid, "");
        assert_string_equal(key, expected);
        assert_string_equal(end, "");
        assert_int_equal(n, strlen(expected));
        assert_true(parse(key, n, "job", &is));
        same_key(&was, &is);
        for (size_t cut = 0; cut < n; cut++)
            if (!kinds[i].uid || cut <= n - strlen(was.uid))
                assert_false(parse(key, cut, "job", &is));
        key[n] = 'x';
        assert_false(parse(key, n + 1, "job", &is));
        key[n] = '/';
        assert_false(parse(key, n + 1, "job", &is));
        key[n] = '\0';
        assert_false(parse(key, n + 1, "job", &is));
    }
}

static void test_every_byte_of_a_run_id_is_written_so_that_it_is_one_part(void **state) {
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        char run_id[] = {'a', (char)byte, 'b', '\0'}, key[KEY_SIZE], end[KEY_SIZE], expected[64];
        struct store_key cur = {.kind = KEY_CUR}, head = key_of(5, 0), is;
        bool plain = byte >= ' ' && byte <= '~' && byte != '/' && byte != '%';
        size_t n = key_format(&cur, run_id, key, end);
        snprintf(expected, sizeof(expected), plain ? "/rankrun/a%cb/cur" : "/rankrun/a%%%02xb/cur",
                 byte);
        assert_string_equal(key, expected);
        assert_true(parse(key, n, run_id, &is) && is.kind == KEY_CUR);
        assert_int_equal(key_run_length(key, n), n - 3);
        assert_int_equal(key_run_length(key, n - 3), n - 3);
        assert_int_equal(key_run_length(key, n - 4), 0);
        n = key_format(&head, run_id, key, end);
        assert_true(parse(key, n, run_id, &is) && is.kind == KEY_HEAD);
        assert_false(key_parse(key, n, "ab", &is));
    }
}

/* Of every kind: its scope holds its keys, and no other's. */
static void test_a_scope_holds_the_keys_of_its_kind_alone(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < KINDS; k++)
            for (int64_t round = 8; round <= 12; round++) {
                char from[KEY_SIZE], to[KEY_SIZE], key[KEY_SIZE], end[KEY_SIZE];
                struct store_key all = key_of(i, 10), one = key_of(k, round);
                if (!kinds[i].uid)
                    continue;
                key_format(&one, "job", key, end);
                for (all.scope = KEYS_ALL; all.scope <= (kinds[i].round ? KEYS_BELOW : KEYS_ALL);
                     all.scope++) {
                    size_t n = key_format(&all, "job", from, to);
                    assert_int_equal(n, strlen(from));
                    assert_int_equal(strlen(to), strlen(from));
                    bool in = strcmp(key, from) >= 0 && strcmp(key, to) < 0;
                    bool wanted = i == k && (!kinds[i].round ||
                                             (all.scope == KEYS_BELOW ? round < 10 : round == 10));
                    assert_int_equal(in, wanted);
                }
            }
}

static void test_numbers_in_keys_sort_as_they_count(void **state) {
    (void)state;
    static const int64_t rounds[] = {0, 1, 9, 10, 99, 100, 999999999, 1000000000, 9999999999};
    char last[KEY_SIZE] = "";
    for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++) {
        char key[KEY_SIZE], end[KEY_SIZE];
        struct store_key ack = key_of(6, rounds[i]), is;
        size_t n = key_format(&ack, "job", key, end);
        assert_true(strcmp(last, key) < 0);
        assert_true(parse(key, n, "job", &is) && is.round == rounds[i]);
        memcpy(last, key, sizeof(last));
    }
    static const char *const bad[] = {"000000000/", "00000000000/", "00000000:0/", "0000000/00/",
                                      "000000000 /"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char key[KEY_SIZE];
        struct store_key is;
        snprintf(key, sizeof(key), "/rankrun/job/0123456789abcdef/ack/%su", bad[i]);
        assert_false(parse(key, strlen(key), "job", &is));
    }
}

/* Of everything a part of a key may be: as long as it may be, and longer. */
static void test_parts_of_a_key_that_are_too_long_are_no_key(void **state) {
    (void)state;
    static const struct {
        size_t most;
        const char *before, *after;
    } parts[] = {
        {INC_SIZE - 1, "", "/head"},
        {UID_SIZE - 1, "i/m/", ""},
        {PID_SIZE - 1, "i/plan/", "/u"},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        for (int more = -1; more <= 1; more++) {
            char key[2 * KEY_SIZE];
            struct store_key is;
            snprintf(key, sizeof(key), "/rankrun/job/%s%s%s", parts[i].before,
                     letters(0, (size_t)((int)parts[i].most + more)), parts[i].after);
            assert_int_equal(parse(key, strlen(key), "job", &is), more <= 0);
        }
}

/* ---- how workers end, in words ---- */

static void test_every_way_to_end_is_told_by_its_number(void **state) {
    (void)state;
    struct arena a = {0};
    for (int number = 0; number < 128; number++) {
        char exited[160], killed[160];
        struct failure f = {
            .uid = "u", .node = "n7", .rank = 11, .local_rank = 3, .wait_status = number << 8};
        snprintf(exited, sizeof(exited), "rank 11 (local rank 3 on node n7) exited with code %d",
                 number);
        snprintf(killed, sizeof(killed),
                 "rank 11 (local rank 3 on node n7) was killed by signal %d: why", number);
        assert_string_equal(failure_text(&a, &f), exited);
        f.wait_status = number | (number ? 0x80 : 0); /* with a core */
        strcpy(f.error, "why");
        if (number)
            assert_string_equal(failure_text(&a, &f), killed);
        f.local_rank = -1;
        assert_string_equal(failure_text(&a, &f), "node n7: why");
        f.uid[0] = 0;
        assert_string_equal(failure_text(&a, &f), "why");
    }
    arena_fini(&a);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_a_job_are_bounded),
        cmocka_unit_test(test_names_of_a_job_are_bounded),
        cmocka_unit_test(test_each_rule_of_timing_holds_to_the_nanosecond),
        cmocka_unit_test(test_beats_are_stretched_where_the_store_bears_no_more),
        cmocka_unit_test(test_a_key_is_read_back_whole_or_not_at_all),
        cmocka_unit_test(test_every_byte_of_a_run_id_is_written_so_that_it_is_one_part),
        cmocka_unit_test(test_a_scope_holds_the_keys_of_its_kind_alone),
        cmocka_unit_test(test_numbers_in_keys_sort_as_they_count),
        cmocka_unit_test(test_parts_of_a_key_that_are_too_long_are_no_key),
        cmocka_unit_test(test_every_way_to_end_is_told_by_its_number),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
