/* What is made of each answer of an etcd's v2 API, to the last field: by what was asked, status, body and index, error by error
 * and field by field, also where a field is of another type or not there. tree_answers.txt has all of it; `make transcripts`
 * writes it anew. */
#include "agent/store/tree_answer.h"
#include "tests/agent/on_record.h"

#include <stdio.h>

static const char path[] = "tests/agent/store/tree_answers.txt";

static struct buf *out;

static void say_one(enum tree_verb verb, long status, const char *body, const char *index) {
    ARENA_FINI struct arena arena = {0};
    BUF_FINI struct buf b = {0};
    buf_puts(&b, body);
    struct tree_answer a = tree_answer_read(&arena, verb, status, &b, index);
    buf_printf(out, "%d %ld %s", (int)verb, status, index[0] ? index : "-");
    buf_printf(out, ": %d at %lld \"%s\"", (int)a.result, (long long)a.index, a.text);
    for (size_t i = 0; i < a.n; i++)
        buf_printf(out, " [%s = %s%s%s %lld]", a.nodes[i].key, a.nodes[i].value,
                   a.nodes[i].dir ? " dir" : "", a.nodes[i].gone ? " gone" : "",
                   (long long)a.nodes[i].modified);
    buf_putc(out, '\n');
}

/* Asked by each verb, at some statuses. */
static void say_body(const char *body, const long *statuses) {
    buf_printf(out, "-- %s\n", body);
    for (; *statuses; statuses++)
        for (int verb = 0; verb <= TREE_WAIT; verb++)
            say_one((enum tree_verb)verb, *statuses, body, "5");
}

static const long all[] = {199, 200, 201, 202, 400, 403, 404, 405, 412, 499, 500, 503, 0};
static const long good[] = {200, 0};
static const long bad[] = {400, 0};

static void say_errors(void) {
    static const int codes[] = {0,   1,   99,  100, 101, 102, 104, 105, 106, 299,
                                300, 301, 399, 400, 401, 402, 403, 500, -100};
    static const char *const causes[] = {"x", "nodePath /1/a : Not a file ()", NULL};
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        for (int k = 0; k < 3; k++) {
            BUF_FINI struct buf body = {0};
            buf_printf(&body, "{\"errorCode\":%d,\"message\":\"m\"", codes[i]);
            if (causes[k])
                buf_printf(&body, ",\"cause\":\"%s\",\"index\":%d", causes[k], 8 + k);
            buf_putc(&body, '}');
            buf_printf(out, "-- %s\n", buf_str(&body));
            say_one(TREE_PUT, 400, buf_str(&body), "7");
        }
}

static void say_nodes(void) {
    static const char *const nodes[] = {
        "{}",
        "7",
        "null",
        "[]",
        "{\"key\":\"/a\",\"value\":\"v\",\"dir\":false,\"modifiedIndex\":6}",
        "{\"key\":\"/a\",\"dir\":true,\"nodes\":[]}",
        "{\"key\":\"/a\",\"nodes\":[{\"key\":\"/a/b\",\"nodes\":[{\"key\":\"/a/b/"
        "c\"}]},{\"key\":\"/a/d\",\"value\":\"w\"}]}",
        "{\"key\":1,\"value\":2,\"dir\":3,\"modifiedIndex\":\"4\",\"nodes\":5}",
        "{\"nodes\":[1,null,[{}],{}]}",
    };
    static const char *const actions[] = {
        "get", "set", "delete", "expire", "compareAndDelete", "compareAndSwap", "create", "update"};
    for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
        for (size_t k = 0; k < (i == 4 || i == 6 ? sizeof(actions) / sizeof(*actions) : 1); k++) {
            BUF_FINI struct buf body = {0};
            buf_printf(&body, "{\"action\":\"%s\",\"node\":%s,\"prevNode\":{\"key\":\"/p\"}}",
                       actions[k], nodes[i]);
            say_body(buf_str(&body), good);
        }
    say_body("{\"node\":{\"key\":\"/a\"}}", good);
    say_body("{\"action\":7,\"node\":{\"key\":\"/a\"}}", good);
    say_body("{\"action\":\"get\"}", good);
}

static void say_indices(void) {
    static const char *const indices[] = {
        "", "0", "1", "-1", "9223372036854775807", "9223372036854775808", "7x", " 7", "x"};
    for (size_t i = 0; i < sizeof(indices) / sizeof(*indices); i++) {
        say_one(TREE_GET, 200, "{\"action\":\"get\",\"node\":{\"key\":\"/a\"}}", indices[i]);
        say_one(TREE_GET, 404, "{\"errorCode\":100,\"message\":\"m\",\"cause\":\"c\"}", indices[i]);
        say_one(TREE_GET, 503, "", indices[i]);
    }
}

/* A folder of so many keys, and its own. */
static void say_many(size_t n) {
    ARENA_FINI struct arena arena = {0};
    BUF_FINI struct buf body = {0};
    buf_puts(&body, "{\"node\":{\"nodes\":[0");
    for (size_t i = 2; i < n; i++)
        buf_puts(&body, ",0");
    buf_puts(&body, "]}}");
    struct tree_answer a = tree_answer_read(&arena, TREE_GET, 200, &body, "3");
    buf_printf(out, "of %zu: %d, %zu\n", n, (int)a.result, a.n);
    assert_true(a.n == 0 || strcmp(a.nodes[a.n - 1].key, "/") == 0);
}

static void say(struct buf *to) {
    static const char *const bodies[] = {
        "",
        "<html>",
        "{",
        "{}",
        "[]",
        "null",
        "{\"message\":\"no\"}",
        "{\"etcdserver\":\"3.4.23\"}",
        "{\"etcdserver\":7}",
        "{\"errorCode\":100,\"message\":\"Key not found\",\"cause\":\"/k\",\"index\":8}",
        "{\"errorCode\":\"100\"}",
    };
    out = to;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++)
        say_body(bodies[i], all);
    say_body("{\"errorCode\":105}", bad);
    say_errors();
    say_nodes();
    say_indices();
    for (size_t n = 2; n <= 4; n++)
        say_many(n);
    for (size_t n = 1 << 20; n <= (1 << 20) + 1; n++)
        say_many(n);
}

static void test_each_answer_is_read_to_the_last_field(void **state) {
    (void)state;
    on_record_same(path, say, "answers of an etcd are read otherwise");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_each_answer_is_read_to_the_last_field);
    return on_record_main(argc, argv, path, say, &test);
}
