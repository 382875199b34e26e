/* What stores are asked, in a network that is played: each question in full, each answer and error, and what is read
 * out of them by those who ask. */
#include "tests/played.h"

#include "base/base64.h"
#include "base/http/http.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/observe/gateway.h"
#include "harness/observe/hang_dump.h"
#include "harness/observe/leader.h"
#include "harness/observe/store_read.h"

#include <inttypes.h>

static struct {
    int64_t now_ns;
    int asked;
} world;

static int64_t played_now(void) {
    return world.now_ns += 100000000 + draw(400000000);
}

static void put_text(struct buf *out, const char *key, const char *text) {
    buf_printf(out, "\"%s\":\"", key);
    base64_put(out, text, strlen(text));
    buf_puts(out, "\"");
}

/* Of a job, as its store holds them; some are missing, some are odd. */
static void put_keys(struct buf *out) {
    static const struct {
        const char *key, *value;
    } rows[] = {{"/rankrun/job/cur", "{\"inc\":\"00ff\"}"},
                {"/rankrun/job/00ff/lead", "{\"uid\":\"u2\"}"},
                {"/rankrun/job/00ff/m/u1", "{\"addr\":\"n0\"}"},
                {"/rankrun/job/00ff/m/u2", "{\"addr\":\"n1\"}"},
                {"/rankrun/job/00ff/s/u2", "\x01{\"seq\":4}\x7f~ "},
                {"/rankrun/job/00fe/lead", "{\"uid\":\"u1\"}"},
                {"/rankrun/job/00ff/gone/u2", "{}"},
                {"/rankrun/job/cur", "{\"inc\":\"00aa\"}"}};
    bool first = true;
    buf_printf(out, "{\"header\":{\"revision\":\"%d\"},\"kvs\":[", draw(4) ? 40 : draw(3));
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (draw(8) == 0 || (i == 6 && draw(3)))
            continue;
        buf_puts(out, first ? "{" : ",{");
        first = false;
        put_text(out, "key", rows[i].key);
        buf_puts(out, ",");
        put_text(out, "value", draw(12) ? rows[i].value : draw(2) ? "{}" : "no JSON");
        buf_printf(out, ",\"mod_revision\":\"%d\",\"create_revision\":\"%d\"", 10 + draw(9),
                   draw(9));
        if (draw(2))
            buf_printf(out, ",\"lease\":\"%d\"", 5 + draw(2));
        buf_puts(out, "}");
    }
    buf_puts(out, "]}");
}

static const char *const answers[] = {
    "{\"header\":{\"revision\":\"7\"}}",
    "{\"header\":{},\"leader\":\"8\",\"raftTerm\":\"4\"}",
    "{\"header\":{},\"leader\":\"0\"}",
    "{\"members\":[{\"ID\":\"8\",\"name\":\"store-1\"},{\"ID\":\"9\",\"name\":\"store-2\"}]}",
    "{\"members\":[{\"ID\":\"18\"}]}",
    "{\"alarms\":[{\"alarm\":\"NOSPACE\"},{\"alarm\":\"CORRUPT\"},{\"alarm\":\"NOSPACE\"}]}",
    "{\"result\":{\"created\":true}}\n",
    "{\"result\":{\"created\":true}}\n{\"result\":{\"events\":[]}}\n",
    "{\"result\":{\"canceled\":true,\"compact_revision\":\"6\"}}\n",
    "certainly no JSON, and so long that whoever quotes it ends before a hundred and twenty bytes, "
    "or before two hundred at the very least, as it is to be one line that a terminal can show, is "
    "it not, so here are some more of them",
    "[]",
    "7",
    ""};

static int played_ask(const struct http_question *q, struct buf *answer, struct err *err) {
    note("%s %s, %s, %d ms, %d ms, %zu bytes: %s; token %s", q->request.method, q->request.url,
         q->request.type, (int)q->request.timeout_ms, (int)q->silence_ms, (size_t)q->bytes_max,
         buf_str(q->request.body), q->way.token ? q->way.token : "none");
    world.asked++;
    if (fails("ask"))
        return err_set(err, -errno, "reach it");
    if (draw(8) == 0)
        buf_puts(answer, answers[draw(13)]);
    else if (str_ends(q->request.url, "/range"))
        put_keys(answer);
    else if (str_ends(q->request.url, "/status"))
        buf_puts(answer, answers[draw(6) ? 1 : 2]);
    else if (str_ends(q->request.url, "/list"))
        buf_puts(answer, answers[draw(3) ? 3 : 4]);
    else if (str_ends(q->request.url, "/alarm"))
        buf_puts(answer, answers[draw(2) ? 5 : 0]);
    else
        buf_puts(answer, answers[6 + draw(3)]);
    note("  enough %d", q->enough ? q->enough(answer) : -1);
    return draw(10) ? 0 : err_say(err, -EPROTO, "it said 500");
}

static char *played_getenv(const char *name) {
    assert_string_equal(name, "RANKRUN_STORE_TOKEN");
    static char token[] = "t0ken";
    return draw(2) ? token : NULL;
}

#define http_ask(q, a, e)  played_ask(q, a, e)
#define getenv             played_getenv
#define clock_monotonic_ns played_now
#define put_keys           put_held
#include "harness/observe/gateway.c"
#include "harness/observe/hang_dump_store.c"
#undef put_keys
#define find find_pair
#define ask  ask_question
#include "harness/observe/leader.c"
#include "harness/observe/store_read.c"
#undef getenv

static void ask_all(uint64_t seed) {
    static const char *const words[] = {"lease",  "lease-keys", "revision", "revision-gone",
                                        "alarms", "slowest",    "tea"};
    struct err err = {0};
    struct leader l = {.name = "untouched", .term = -7};
    BUF_FINI struct buf out = {0};
    int64_t n = -7;
    memset(&world, 0, sizeof(world));
    int code = leader_ask_job("10.0.0.1", 2379, "job", &l, &err);
    note("> leads: %d %s, %s %lld", code, err.msg, l.name, (long long)l.term);
    err = (struct err){0};
    code = leader_ask_member("10.0.0.1", 2379, &l, &err);
    note("> leads: %d %s, %s %lld", code, err.msg, l.name, (long long)l.term);
    err = (struct err){0};
    code = leader_ask_keys("10.0.0.1", 65535, "job", &n, &err);
    note("> keys: %d %s, %lld", code, err.msg, (long long)n);
    hang_dump_store("10.0.0.1", 2379, &out);
    note("> holds: %s", buf_str(&out));
    for (int i = 0; i < 7; i++) {
        struct store_question q = {"10.0.0.2", 1, words[i], "job", draw(3) ? 5 : 900000000};
        err = (struct err){0};
        q.number = i == 3 && draw(2) ? 1 : q.number;
        code = store_read_ask(&q, &n, &err);
        note("> %s of %lld: %d %s, %lld", words[i], (long long)q.number, code, err.msg,
             (long long)n);
    }
}

static const struct play plays[] = {
    {"tests/harness/observe/record/gateway.txt", ask_all, 60, true, {ECONNREFUSED, ETIMEDOUT}}};

static void test_what_stores_are_asked_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_stores_are_asked_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
