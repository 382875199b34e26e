/* Every field of every value: what it is called, where it stands, which values it takes, and that nothing beside it is
 * touched. The table says it a second time; that it leaves out nothing is asked, too. */
#include "agent/store/codec.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <string.h>

/* What a field holds: a whole number of four bytes or of eight, a text, one that is cut when it is too long, a word. */
enum holds { FOUR, EIGHT, WHOLE, CUT, ONE_OF };

struct row {
    enum key_kind kind;
    const char *name;
    enum holds holds;
    size_t at, size;
    const char *words; /* "first second third", in the order of the enum */
};

#define ROW(kind, holds, of, member)                                                               \
    {                                                                                              \
        KEY_##kind, #member, holds, offsetof(struct of, member), sizeof(((struct of *)0)->member), \
            NULL                                                                                   \
    }
#define NAMED(kind, name, holds, of, member)                                                       \
    { KEY_##kind, name, holds, offsetof(struct of, member), sizeof(((struct of *)0)->member), NULL }
#define WORDS(kind, of, member, words)                                                             \
    { KEY_##kind, #member, ONE_OF, offsetof(struct of, member), sizeof(int), words }

/* In the order in which they are written. */
static const struct row rows[] = {
    ROW(CUR, WHOLE, cur_value, inc),
    ROW(CUR, WHOLE, cur_value, attempt),
    ROW(CUR, WHOLE, cur_value, former),
    ROW(CUR, EIGHT, cur_value, rounds_before),
    ROW(CUR, FOUR, cur_value, hold),
    ROW(CUR, FOUR, cur_value, min),
    ROW(CUR, FOUR, cur_value, max),
    ROW(CUR, FOUR, cur_value, max_restarts),
    ROW(CUR, FOUR, cur_value, max_free_rounds),
    WORDS(CUR, cur_value, restart_mode, "job node"),
    WORDS(CUR, cur_value, on_node_loss, "replace gang"),
    NAMED(CUR, "hb_ns", EIGHT, cur_value, timing.hb_ns),
    NAMED(CUR, "fence_ns", EIGHT, cur_value, timing.fence_ns),
    NAMED(CUR, "hard_ns", EIGHT, cur_value, timing.hard_ns),
    NAMED(CUR, "suspect_ns", EIGHT, cur_value, timing.suspect_ns),
    ROW(MEMBER, WHOLE, member_value, node),
    ROW(MEMBER, WHOLE, member_value, addr),
    ROW(MEMBER, FOUR, member_value, slots),
    ROW(MEMBER, WHOLE, member_value, role),
    WORDS(MEMBER, member_value, want, "member standby"),
    ROW(MEMBER, FOUR, member_value, seat),
    ROW(MEMBER, EIGHT, member_value, last_round),
    NAMED(MEMBER, "past_inc", WHOLE, member_value, past.inc),
    NAMED(MEMBER, "past_round", EIGHT, member_value, past.round),
    NAMED(MEMBER, "past_n", FOUR, member_value, past.n),
    NAMED(MEMBER, "past_restarts", FOUR, member_value, past.restarts),
    NAMED(MEMBER, "past_member", FOUR, member_value, past.member),
    ROW(MEMBER, EIGHT, member_value, stop_ns),
    ROW(SESSION, EIGHT, session_value, seq),
    WORDS(GONE, gone_value, why, "left silent"),
    ROW(LEAD, WHOLE, lead_value, uid),
    ROW(PLAN, FOUR, plan_value, group_rank),
    ROW(PLAN, FOUR, plan_value, rank_base),
    ROW(PLAN, FOUR, plan_value, world),
    ROW(PLAN, FOUR, plan_value, role_rank_base),
    ROW(PLAN, FOUR, plan_value, role_world),
    ROW(HEAD, EIGHT, head_value, round),
    WORDS(HEAD, head_value, phase, "none form run end closed"),
    ROW(HEAD, WHOLE, head_value, pid),
    ROW(HEAD, FOUR, head_value, n),
    ROW(HEAD, EIGHT, head_value, last_round),
    ROW(HEAD, WHOLE, head_value, last_pid),
    ROW(HEAD, FOUR, head_value, last_n),
    ROW(HEAD, FOUR, head_value, restarts),
    ROW(HEAD, EIGHT, head_value, charged_round),
    ROW(HEAD, FOUR, head_value, free_rounds),
    ROW(HEAD, EIGHT, head_value, free_age_ms),
    ROW(HEAD, FOUR, head_value, brief_rounds),
    WORDS(HEAD, head_value, cause, "none failure membership"),
    NAMED(HEAD, "failure_uid", WHOLE, head_value, failure.uid),
    NAMED(HEAD, "failure_node", WHOLE, head_value, failure.node),
    NAMED(HEAD, "failure_rank", FOUR, head_value, failure.rank),
    NAMED(HEAD, "failure_local_rank", FOUR, head_value, failure.local_rank),
    NAMED(HEAD, "failure_pid", EIGHT, head_value, failure.pid),
    NAMED(HEAD, "failure_wait_status", FOUR, head_value, failure.wait_status),
    NAMED(HEAD, "failure_error", CUT, head_value, failure.error),
    NAMED(HEAD, "failure_realtime_ns", EIGHT, head_value, failure.realtime_ns),
    ROW(HEAD, FOUR, head_value, world),
    ROW(HEAD, WHOLE, head_value, master_addr),
    ROW(HEAD, FOUR, head_value, master_port),
    ROW(HEAD, WHOLE, head_value, token),
    WORDS(HEAD, head_value, outcome, "none succeeded failed"),
    WORDS(ACK, ack_value, why, "ok failed fenced"),
    ROW(ACK, CUT, ack_value, error),
    ROW(ACK, WHOLE, ack_value, addr),
    ROW(ACK, FOUR, ack_value, port),
    ROW(DONE, EIGHT, done_value, round),
    ROW(QUARANTINE, FOUR, quarantine_value, owed),
};
enum { ROWS = sizeof(rows) / sizeof(*rows), FILL = 0x5a };

static bool is_text(const struct row *r) {
    return r->holds == WHOLE || r->holds == CUT;
}

/* One that has as many bytes as fit, of which no two neighbours are alike. */
static void put_word(const struct row *r, size_t len, char ret[NAME_SIZE + 2]) {
    for (size_t i = 0; i < len; i++)
        ret[i] = (char)('a' + (i + r->at) % 23);
    ret[len] = '\0';
}

static bool word_of(const struct row *r, int n, char ret[32]) {
    const char *p = r->words;
    for (; n > 0 && p; n--)
        p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL;
    if (p)
        snprintf(ret, 32, "%.*s", (int)strcspn(p, " "), p);
    return p;
}

static void set_number(const struct row *r, union value *v, int64_t n) {
    int small = (int)n;
    if (r->holds == EIGHT)
        memcpy((char *)v + r->at, &n, sizeof(n));
    else
        memcpy((char *)v + r->at, &small, sizeof(small));
}

static void assert_text(enum key_kind kind, const union value *v, const char *expected) {
    BUF_FINI struct buf b = {0};
    struct arena a = {0};
    codec_put(&b, kind, v);
    assert_string_equal(buf_str(&b), expected);
    struct kv_bytes bytes = codec_bytes(&a, kind, v);
    assert_int_equal(bytes.len, strlen(expected));
    assert_memory_equal(bytes.data, expected, bytes.len);
    arena_fini(&a);
}

/* All that the kind has is as in v. */
static void assert_taken(enum key_kind kind, const char *text, const union value *v) {
    union value back;
    struct err err = {0};
    memset(&back, FILL, sizeof(back));
    assert_int_equal(codec_take(kind, text, strlen(text), &back, &err), 0);
    assert_string_equal(err.msg, "");
    assert_memory_equal(&back, v, value_size(kind));
}

/* With a sentence, and nothing is written. */
static void assert_refused(enum key_kind kind, const char *text, const char *why) {
    union value v, fill;
    struct err err = {0};
    memset(&fill, FILL, sizeof(fill));
    v = fill;
    assert_int_equal(codec_take(kind, text, strlen(text), &v, &err), -EPROTO);
    assert_memory_equal(&v, &fill, sizeof(v));
    assert_string_equal(err.msg, why);
}

static void assert_misfit(const struct row *r, const char *value) {
    char text[1024], why[128];
    snprintf(text, sizeof(text), "{\"%s\":%s}", r->name, value);
    snprintf(why, sizeof(why), "\"%s\" has the wrong type or does not fit", r->name);
    assert_refused(r->kind, text, why);
}

static void both_ways(const struct row *r, const union value *v, const char *value) {
    char text[1024];
    snprintf(text, sizeof(text), "{\"%s\":%s}", r->name, value);
    assert_text(r->kind, v, text);
    assert_taken(r->kind, text, v);
}

/* ---- numbers ---- */

static void try_number(const struct row *r, int64_t n) {
    union value v = {0};
    char value[32];
    memset(&v, 0, sizeof(v));
    set_number(r, &v, n);
    snprintf(value, sizeof(value), "%" PRId64, n);
    both_ways(r, &v, value);
}

static void test_a_number_is_one_from_bound_to_bound(void **state) {
    (void)state;
    static const int64_t all[] = {1, -1, 255, 256, 65536, INT_MAX, INT_MIN};
    static const int64_t large[] = {INT_MAX + INT64_C(1), INT_MIN - INT64_C(1), INT64_MAX,
                                    INT64_MIN + 1, INT64_MIN};
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        char value[32];
        if (r->holds != FOUR && r->holds != EIGHT)
            continue;
        assert_int_equal(r->size, r->holds == FOUR ? 4 : 8);
        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
            try_number(r, all[i]);
        for (size_t i = 0; i < sizeof(large) / sizeof(*large); i++) {
            snprintf(value, sizeof(value), "%" PRId64, large[i]);
            if (r->holds == EIGHT)
                try_number(r, large[i]);
            else
                assert_misfit(r, value);
        }
        assert_misfit(r, "\"1\"");
        assert_misfit(r, "1.5");
        assert_misfit(r, "true");
        assert_misfit(r, "null");
        assert_misfit(r, "[1]");
        assert_misfit(r, "{}");
    }
}

/* ---- texts ---- */

static void test_a_text_is_one_of_every_length_that_fits(void **state) {
    (void)state;
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        char word[NAME_SIZE + 2], value[NAME_SIZE + 8], text[NAME_SIZE + 64];
        for (size_t len = 1; is_text(r) && len <= r->size; len++) {
            union value v;
            memset(&v, 0, sizeof(v));
            put_word(r, len, word);
            snprintf(value, sizeof(value), "\"%s\"", word);
            if (len < r->size) {
                memcpy((char *)&v + r->at, word, len);
                both_ways(r, &v, value);
            } else if (r->holds == CUT) {
                memcpy((char *)&v + r->at, word, len - 1);
                snprintf(text, sizeof(text), "{\"%s\":%s}", r->name, value);
                assert_taken(r->kind, text, &v);
            } else {
                assert_misfit(r, value);
            }
        }
        if (!is_text(r))
            continue;
        assert_misfit(r, "1");
        assert_misfit(r, "true");
        assert_misfit(r, "null");
        assert_misfit(r, "[\"a\"]");
        if (r->holds == WHOLE)
            assert_misfit(r, "\"a\\u0000b\"");
    }
}

static void test_a_text_for_people_ends_at_a_byte_that_is_none(void **state) {
    (void)state;
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        union value v;
        char text[64];
        if (r->holds != CUT)
            continue;
        memset(&v, 0, sizeof(v));
        *((char *)&v + r->at) = 'a';
        snprintf(text, sizeof(text), "{\"%s\":\"a\\u0000b\"}", r->name);
        assert_taken(r->kind, text, &v);
    }
}

/* ---- words ---- */

static void test_a_word_is_one_of_those_there_are(void **state) {
    (void)state;
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        char word[32], value[48];
        if (r->holds != ONE_OF)
            continue;
        for (int n = 0; word_of(r, n, word); n++) {
            union value v;
            memset(&v, 0, sizeof(v));
            set_number(r, &v, n);
            snprintf(value, sizeof(value), "\"%s\"", word);
            if (n) { /* the first is absent */
                both_ways(r, &v, value);
            } else {
                char text[128];
                snprintf(text, sizeof(text), "{\"%s\":%s}", r->name, value);
                assert_text(r->kind, &v, "{}");
                assert_taken(r->kind, text, &v);
            }
            snprintf(value, sizeof(value), "\"%ss\"", word);
            assert_misfit(r, value);
            snprintf(value, sizeof(value), "\"%.*s\"", (int)strlen(word) - 1, word);
            assert_misfit(r, value);
        }
        assert_misfit(r, "\"\"");
        assert_misfit(r, "1");
        assert_misfit(r, "null");
    }
}

/* ---- all of a kind ---- */

/* The value in which each field holds something of its own, and its text. */
static void fill(enum key_kind kind, int round, union value *v, struct buf *text) {
    memset(v, 0, sizeof(*v));
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        char word[NAME_SIZE + 2];
        int64_t n = (r->holds == EIGHT ? INT64_C(10000000000) : 1000) * (r - rows + 1) + round;
        if (r->kind != kind)
            continue;
        buf_printf(text, "%s\"%s\":", text->len ? "," : "{", r->name);
        if (is_text(r)) {
            put_word(r, 1 + (size_t)round % (r->size - 1), word);
            memcpy((char *)v + r->at, word, strlen(word));
            buf_printf(text, "\"%s\"", word);
        } else if (r->holds == ONE_OF) {
            n = word_of(r, 1 + round % 4, word) ? 1 + round % 4 : 1;
            word_of(r, (int)n, word);
            set_number(r, v, n);
            buf_printf(text, "\"%s\"", word);
        } else {
            set_number(r, v, n);
            buf_printf(text, "%" PRId64, n);
        }
    }
    buf_putc(text, '}');
}

static void test_all_fields_of_a_kind_stand_side_by_side(void **state) {
    (void)state;
    for (int kind = KEY_CUR; kind <= KEY_QUARANTINE; kind++)
        for (int round = 0; round < 40; round++) {
            BUF_FINI struct buf text = {0};
            union value v;
            fill((enum key_kind)kind, round, &v, &text);
            assert_text((enum key_kind)kind, &v, buf_str(&text));
            assert_taken((enum key_kind)kind, buf_str(&text), &v);
            memset(&v, 0, sizeof(v));
            assert_text((enum key_kind)kind, &v, "{}");
            assert_taken((enum key_kind)kind, "{}", &v);
            assert_taken((enum key_kind)kind, " {\"later\" : {\"a\":[1]}, \"\":null} ", &v);
        }
}

/* The first that is wrong is named, and none of those that are right is written. */
static void test_one_field_that_is_wrong_spoils_all(void **state) {
    (void)state;
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        BUF_FINI struct buf text = {0}, spoiled = {0};
        union value v;
        char why[128], name[64];
        fill(r->kind, 1, &v, &text);
        snprintf(name, sizeof(name), "\"%s\":", r->name);
        const char *at = strstr(buf_str(&text), name) + strlen(name);
        buf_printf(&spoiled, "%.*sfalse%s", (int)(at - buf_str(&text)), buf_str(&text),
                   at + strcspn(at, ",}"));
        snprintf(why, sizeof(why), "\"%s\" has the wrong type or does not fit", r->name);
        assert_refused(r->kind, buf_str(&spoiled), why);
    }
}

static void test_what_is_no_object_is_no_value(void **state) {
    (void)state;
    static const char *const none[] = {"[]", "\"seq\"", "12", "true", "null", " [{\"seq\":1}]"};
    for (int kind = KEY_CUR; kind <= KEY_QUARANTINE; kind++) {
        for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
            assert_refused((enum key_kind)kind, none[i], "not a JSON object");
        BUF_FINI struct buf text = {0};
        union value v, back;
        fill((enum key_kind)kind, 2, &v, &text);
        for (size_t n = 0; n < text.len; n++) { /* cut */
            struct err err = {0};
            memset(&back, FILL, sizeof(back));
            assert_int_equal(codec_take((enum key_kind)kind, text.data, n, &back, &err), -EPROTO);
            assert_string_not_equal(err.msg, "");
            for (size_t i = 0; i < sizeof(back); i++)
                assert_int_equal(((unsigned char *)&back)[i], FILL);
        }
    }
}

static const struct row *row_at(enum key_kind kind, size_t at) {
    for (const struct row *r = rows; r < rows + ROWS; r++)
        if (r->kind == kind && r->at == at)
            return r;
    return NULL;
}

/* What is in a struct and in no row would be forgotten: between two rows lies only what the second one's bounds ask for. */
static void test_no_field_is_forgotten(void **state) {
    (void)state;
    for (int kind = KEY_CUR; kind <= KEY_QUARANTINE; kind++) {
        size_t size = value_size((enum key_kind)kind), at = 0, gap = 0, most = 1;
        while (at < size) {
            const struct row *r = row_at((enum key_kind)kind, at);
            size_t bound = !r || is_text(r) ? 1 : r->size;
            most = bound > most ? bound : most;
            gap = r ? gap : gap + 1;
            assert_true(!r || gap < bound);
            gap = r ? 0 : gap;
            at += r ? r->size : 1;
        }
        assert_true(size > 0 && at == size && gap < most);
    }
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_number_is_one_from_bound_to_bound),
        cmocka_unit_test(test_a_text_is_one_of_every_length_that_fits),
        cmocka_unit_test(test_a_text_for_people_ends_at_a_byte_that_is_none),
        cmocka_unit_test(test_a_word_is_one_of_those_there_are),
        cmocka_unit_test(test_all_fields_of_a_kind_stand_side_by_side),
        cmocka_unit_test(test_one_field_that_is_wrong_spoils_all),
        cmocka_unit_test(test_what_is_no_object_is_no_value),
        cmocka_unit_test(test_no_field_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
