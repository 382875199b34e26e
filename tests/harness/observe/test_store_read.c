/* What is read in a store: the questions, what their answers come to, and every answer that is none. */
#include "harness/observe/store_read.h"

#include "harness/observe/gateway.h"
#include "harness/observe/hang_dump.h"
#include "harness/observe/leader.h"
#include "tests/harness/observe/answering.h"

#include <errno.h>

#define KEYS                                                                                       \
    "{\"header\":{\"revision\":\"40\"},\"kvs\":["                                                  \
    "{\"key\":\"YQ==\",\"create_revision\":\"12\"},"                                               \
    "{\"key\":\"Yg==\",\"create_revision\":\"9\",\"lease\":\"77\"},"                               \
    "{\"key\":\"Yw==\",\"create_revision\":\"8\",\"lease\":\"55\"},"                               \
    "{\"key\":\"ZA==\",\"create_revision\":\"9\",\"lease\":\"88\"},"                               \
    "{\"key\":\"ZQ==\",\"create_revision\":\"3\",\"lease\":\"77\"}]}"
#define WATCHED   "{\"result\":{\"created\":true}}\n"
#define NEWS      WATCHED "{\"result\":{\"events\":[{\"kv\":{}}]}}\n"
#define COMPACTED WATCHED "{\"result\":{\"canceled\":true,\"compact_revision\":\"6\"}}\n"

struct row {
    const char *word;
    int64_t number;
    const char *answers[2];
    int64_t is;
};

static int read_of(struct answering *s, const char *word, int64_t number, int64_t *ret,
                   struct err *err) {
    struct store_question q = {
        .address = "127.0.0.1", .port = s->port, .word = word, .run_id = "job", .number = number};
    return store_read_ask(&q, ret, err);
}

static void test_each_word_is_read(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"lease", 0, {KEYS}, 77},
        {"lease", 0, {"{\"header\":{}}"}, 0},
        {"lease-keys", 77, {KEYS}, 2},
        {"lease-keys", 55, {KEYS}, 1},
        {"lease-keys", 66, {KEYS}, 0},
        {"revision", 0, {KEYS, NEWS}, 40},
        {"revision", 0, {KEYS, COMPACTED}, 0},
        {"revision", 0, {"{\"header\":{\"revision\":\"1\"}}"}, 0},
        {"revision", 0, {"{\"header\":{\"revision\":\"2\"}}", NEWS}, 2},
        {"revision-gone", 40, {COMPACTED}, 1},
        {"revision-gone", 40, {NEWS}, 0},
        {"revision-gone", 2, {COMPACTED}, 1},
        {"alarms", 0, {"{\"header\":{}}"}, 0},
        {"alarms",
         0,
         {"{\"alarms\":[{\"memberID\":\"1\",\"alarm\":\"NOSPACE\"},{\"alarm\":\"CORRUPT\"},"
          "{\"alarm\":\"NOSPACE\"}]}"},
         2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct answering s = {.answers = {rows[i].answers[0], rows[i].answers[1]}};
        struct err err = {0};
        int64_t is = -7;
        answering_begin(&s);
        int r = read_of(&s, rows[i].word, rows[i].number, &is, &err);
        answering_end(&s);
        answering_fini(&s);
        bool all = s.n == 1 + !!rows[i].answers[1];
        if (r || is != rows[i].is || !all)
            fail_msg("row %zu, %s: %d, %lld, %s", i, rows[i].word, r, (long long)is, err.msg);
    }
}

static void assert_asked(struct answering *s, int i, const char *path, const char *body) {
    const char *text = buf_str(&s->asked[i]), *end = strstr(text, "\r\n\r\n");
    char first[200];
    snprintf(first, sizeof(first), "POST %s HTTP/1.1\r\n", path);
    assert_non_null(end);
    assert_memory_equal(text, first, strlen(first));
    assert_non_null(strstr(text, "Content-Type: application/json\r\n"));
    assert_string_equal(end + 4, body);
}

/* /rankrun/job/ to the first key behind all that begin so. */
#define OF_THE_JOB "\"key\":\"L3JhbmtydW4vam9iLw==\",\"range_end\":\"L3JhbmtydW4vam9iMA==\""

static void test_the_questions_are_those_of_an_etcd(void **state) {
    (void)state;
    static const struct {
        const char *word, *path[2], *body[2], *answers[2];
    } rows[] = {
        {"lease", {"/v3/kv/range"}, {"{" OF_THE_JOB ",\"keys_only\":true}"}, {KEYS}},
        {"revision",
         {"/v3/kv/range", "/v3/watch"},
         {"{\"key\":\"AA==\"}",
          "{\"create_request\":{\"key\":\"AA==\",\"range_end\":\"AA==\",\"start_revision\":"
          "\"39\"}}"},
         {KEYS, NEWS}},
        {"revision-gone",
         {"/v3/watch"},
         {"{\"create_request\":{\"key\":\"AA==\",\"range_end\":\"AA==\",\"start_revision\":"
          "\"4\"}}"},
         {NEWS}},
        {"alarms", {"/v3/maintenance/alarm"}, {"{\"action\":\"GET\"}"}, {"{}"}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct answering s = {.answers = {rows[i].answers[0], rows[i].answers[1]}};
        struct err err = {0};
        int64_t is;
        answering_begin(&s);
        assert_int_equal(read_of(&s, rows[i].word, 5, &is, &err), 0);
        answering_end(&s);
        for (int k = 0; k < 2 && rows[i].path[k]; k++)
            assert_asked(&s, k, rows[i].path[k], rows[i].body[k]);
        assert_null(strstr(buf_str(&s.asked[0]), "Authorization"));
        answering_fini(&s);
    }
}

static void test_the_token_is_shown(void **state) {
    (void)state;
    struct answering s = {.answers = {KEYS}};
    struct err err = {0};
    int64_t is;
    setenv("RANKRUN_STORE_TOKEN", "open sesame", 1);
    answering_begin(&s);
    assert_int_equal(read_of(&s, "lease", 0, &is, &err), 0);
    unsetenv("RANKRUN_STORE_TOKEN");
    answering_end(&s);
    assert_non_null(strstr(buf_str(&s.asked[0]), "Authorization: Bearer open sesame\r\n"));
    answering_fini(&s);
}

/* It ends with the first answer that took as long as was asked for. */
static void test_the_slowest_is_asked_for_until_one_is_slow_enough(void **state) {
    (void)state;
    struct answering s = {.answers = {"{}", "{}"}};
    struct err err = {0};
    int64_t is = -7;
    answering_begin(&s);
    assert_int_equal(read_of(&s, "slowest", 1, &is, &err), 0);
    assert_true(is >= 1);
    assert_int_equal(read_of(&s, "slowest", 0, &is, &err), 0);
    assert_int_equal(is, 0);
    answering_end(&s);
    assert_int_equal(s.n, 1);
    answering_fini(&s);
}

static void test_what_is_no_answer_says_so(void **state) {
    (void)state;
    static const struct {
        const char *word, *answers[2];
        int code, r;
        const char *why;
    } rows[] = {
        {"lease", {"{\"error\":\"no\"}"}, 500, -EPROTO, "{\"error\":\"no\"}"},
        {"lease", {"certainly"}, 200, -EPROTO, "its answer is no JSON"},
        {"lease-keys", {"certainly"}, 200, -EPROTO, "its answer is no JSON"},
        {"alarms", {"certainly"}, 200, -EPROTO, "its answer is no JSON"},
        {"revision", {"certainly"}, 200, -EPROTO, "its answer is no JSON"},
        {"slowest", {"certainly"}, 200, -EPROTO, "its answer is no JSON"},
        {"revision", {KEYS, WATCHED}, 200, -EPROTO, "watch from revision 39: "},
        {"revision-gone", {WATCHED}, 200, -EPROTO, "watch from revision 4: "},
        {"revision-gone", {"no watch"}, 404, -EPROTO, "watch from revision 4: "},
        {"tea", {NULL}, 200, -EINVAL, "tea is nothing that is read in a store"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct answering s = {.answers = {rows[i].answers[0], rows[i].answers[1]},
                              .code = rows[i].code};
        struct err err = {0};
        int64_t is;
        answering_begin(&s);
        int r = read_of(&s, rows[i].word, 5, &is, &err);
        answering_end(&s);
        answering_fini(&s);
        if (r != rows[i].r || !strstr(err.msg, rows[i].why))
            fail_msg("row %zu: %d, %s", i, r, err.msg);
    }
}

static void test_where_nobody_listens_there_is_no_answer(void **state) {
    (void)state;
    struct answering s = {.answers = {NULL}};
    static const char *const words[] = {"lease", "lease-keys", "revision", "revision-gone",
                                        "alarms"};
    answering_begin(&s);
    answering_end(&s);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        struct err err = {0};
        int64_t is;
        assert_int_equal(read_of(&s, words[i], 5, &is, &err), -EIO);
        assert_int_equal(err.code, -EIO);
        assert_true(*err.msg);
    }
}

/* ---- others who ask a store ---- */

#define HELD                                                                                       \
    "{\"header\":{\"revision\":\"9\"},\"kvs\":["                                                   \
    "{\"key\":\"L3JhbmtydW4vam9iL2N1cg==\",\"value\":\"eyJpbmMiOiIwMCJ9\",\"mod_revision\":\"3\"}" \
    ","                                                                                            \
    "{\"key\":\"L3JhbmtydW4vam9iLzAwL2xlYWQ=\",\"value\":\"eyJ1aWQiOiJ1In0=\","                    \
    "\"mod_revision\":\"4\"},"                                                                     \
    "{\"key\":\"L3JhbmtydW4vam9iLzAwL3MvdQ==\",\"value\":\"AQL/IH4=\",\"mod_revision\":\"5\","     \
    "\"lease\":\"7\"},"                                                                            \
    "{\"key\":\"L3JhbmtydW4vam9iLzAwL20vdQ==\",\"value\":\"eyJhZGRyIjoibjEifQ==\","                \
    "\"mod_revision\":\"6\"}]}"

static void test_the_store_is_asked_who_leads(void **state) {
    (void)state;
    struct answering s = {.answers = {HELD, HELD,
                                      "{\"header\":{},\"leader\":\"8\",\"raftTerm\":\"4\"}",
                                      "{\"members\":[{\"ID\":\"8\",\"name\":\"store-1\"}]}"}};
    struct leader l;
    struct err err = {0};
    int64_t keys = -7;
    answering_begin(&s);
    assert_int_equal(leader_ask_job("127.0.0.1", s.port, "job", &l, &err), 0);
    assert_string_equal(l.name, "n1");
    assert_int_equal(l.term, 4);
    assert_int_equal(leader_ask_keys("127.0.0.1", s.port, "job", &keys, &err), 0);
    assert_int_equal(keys, 4);
    assert_int_equal(leader_ask_member("127.0.0.1", s.port, &l, &err), 0);
    assert_string_equal(l.name, "store-1");
    assert_int_equal(l.term, 4);
    answering_end(&s);
    assert_asked(&s, 0, "/v3/kv/range", "{" OF_THE_JOB "}");
    assert_asked(&s, 1, "/v3/kv/range", "{" OF_THE_JOB "}");
    assert_asked(&s, 2, "/v3/maintenance/status", "{}");
    assert_asked(&s, 3, "/v3/cluster/member/list", "{}");
    answering_fini(&s);
}

static void test_without_an_answer_nobody_leads(void **state) {
    (void)state;
    struct answering s = {.answers = {"{\"header\":{},\"leader\":\"8\"}", "no list"}};
    struct leader l = {.term = -7};
    struct err err = {0};
    int64_t keys = -7;
    answering_begin(&s);
    assert_int_equal(leader_ask_member("127.0.0.1", s.port, &l, &err), -EPROTO);
    answering_end(&s);
    answering_fini(&s);
    assert_int_equal(leader_ask_member("127.0.0.1", s.port, &l, &err), -EIO);
    assert_int_equal(leader_ask_job("127.0.0.1", s.port, "job", &l, &err), -EIO);
    assert_int_equal(leader_ask_keys("127.0.0.1", s.port, "job", &keys, &err), -EIO);
    assert_true(l.term == -7 && keys == -7);
}

static void assert_written_down(const char *answer, const char *text) {
    struct answering s = {.answers = {answer}};
    struct buf out = {0};
    answering_begin(&s);
    hang_dump_store("127.0.0.1", s.port, &out);
    answering_end(&s);
    assert_asked(&s, 0, "/v3/kv/range", "{\"key\":\"AA==\",\"range_end\":\"AA==\"}");
    answering_fini(&s);
    assert_string_equal(buf_str(&out), text);
    buf_fini(&out);
}

static void test_every_key_is_written_down(void **state) {
    (void)state;
    assert_written_down(HELD, "revision 9\n"
                              "/rankrun/job/cur  (changed in 3)\n    {\"inc\":\"00\"}\n"
                              "/rankrun/job/00/lead  (changed in 4)\n    {\"uid\":\"u\"}\n"
                              "/rankrun/job/00/s/u  (changed in 5, leased)\n    ... ~\n"
                              "/rankrun/job/00/m/u  (changed in 6)\n    {\"addr\":\"n1\"}\n");
    assert_written_down("{\"header\":{\"revision\":\"1\"}}", "revision 1\nit holds no keys\n");
    assert_written_down("certainly", "its answer is no JSON: JSON: expected a value at byte 0\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_word_is_read),
        cmocka_unit_test(test_the_questions_are_those_of_an_etcd),
        cmocka_unit_test(test_the_token_is_shown),
        cmocka_unit_test(test_the_slowest_is_asked_for_until_one_is_slow_enough),
        cmocka_unit_test(test_what_is_no_answer_says_so),
        cmocka_unit_test(test_where_nobody_listens_there_is_no_answer),
        cmocka_unit_test(test_the_store_is_asked_who_leads),
        cmocka_unit_test(test_without_an_answer_nobody_leads),
        cmocka_unit_test(test_every_key_is_written_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
