/* What is read of each state that torchelastic, or anybody, may have written, field by field, and what each change makes of
 * it, in every combination: documents.txt has all of it. `make transcripts` writes it anew. */
#include "agent/legacy/document.h"
#include "tests/agent/on_record.h"

#include <stdio.h>

static const char path[] = "tests/agent/legacy/documents.txt";

static struct buf *out;
static struct document d;

static bool put_keep_alive(void *arg, const char *key) {
    buf_printf(out, " %s", key);
    return str_eq(key, arg);
}

static void say_read(const char *text) {
    document_read(&d, text, 44);
    assert_string_equal(d.text, text ? text : "");
    assert_true(d.text != text);
    buf_printf(out, "%s\n  is %d at %lld, version %lld, of %d, confirmed %d, waiting %d;",
               text ? text : "(none)", (int)d.status, (long long)d.modified, (long long)d.version,
               d.n, d.confirmed, d.waiting);
    for (int rank = -1; rank <= 3; rank++)
        buf_printf(out, " \"%s\"/\"%s\"", document_node(&d, rank), document_host(&d, rank));
    buf_printf(out, ";%s a %d, b %d, \"\" %d; end %s; keys", document_is_pure(&d) ? " pure;" : "",
               document_rank(&d, "a"), document_rank(&d, "b"), document_rank(&d, ""),
               document_end(&d) ? document_end(&d) : "is not told");
    bool any = document_any_keep_alive(&d, put_keep_alive, "/k2");
    buf_printf(out, "%s;%s%s\n", any ? "" : " and no more",
               document_has_keep_alive(&d, "/k1") ? " has /k1" : "",
               document_has_keep_alive(&d, "/k3") ? " has /k3" : "");
}

/* ---- reading ---- */

static const char *const values[] = {
    "0",
    "1",
    "-1",
    "1.5",
    "\"1\"",
    "\"0\"",
    "\"-1\"",
    "\"9223372036854775807\"",
    "\"9223372036854775808\"",
    "\"1x\"",
    "\"\"",
    "\"x\"",
    "null",
    "true",
    "[]",
    "[0]",
    "[0,1]",
    "[0,1,2]",
    "[\"/k1\"]",
    "[\"/k1\",\"/k2\",\"/k3\"]",
    "[7,\"/k3\"]",
    "{}",
    "{\"0\":\"a\"}",
    "{\"0\":\"a\",\"1\":\"b\"}",
    "{\"1\":\"b\",\"2\":\"a\"}",
    "{\"0\":7,\"1\":null}",
    "{\"01\":\"a\",\"x\":\"b\",\"-1\":\"a\"}",
    "2147483647",
    "\"setup\"",
    "\"joinable\"",
    "\"frozen\"",
    "\"final\"",
    "\"closed\"",
    "\"Final\"",
    "\"fina\"",
    "\"finals\"",
};

/* The others, and one field at each value. */
static void say_field(const char *name, const char *others) {
    char text[512];
    snprintf(text, sizeof(text), "{%s}", others);
    say_read(text);
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        snprintf(text, sizeof(text), "{\"%s\":%s%s%s}", name, values[i], others[0] ? "," : "",
                 others);
        say_read(text);
    }
}

#define VERSION "\"version\":\"6\""
#define PEOPLE  "\"participants\":[0,1]"
#define KEYS    "\"keep_alives\":[\"/k1\",\"/k3\"]"
#define FINAL   "\"status\":\"final\"," VERSION

static void say_fields(void) {
    static const char *const none[] = {NULL, "", " ", "{", "[]", "7", "null", "\"final\""};
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        say_read(none[i]);
    say_field("status", VERSION "," PEOPLE "," KEYS ",\"num_workers_waiting\":3");
    say_field("version", "\"status\":\"joinable\"," PEOPLE);
    say_field("version", "\"status\":\"setup\"");
    say_field("participants", "\"status\":\"joinable\"," VERSION "," KEYS);
    say_field("participants", FINAL "," KEYS);
    say_field("keep_alives", "\"status\":\"frozen\"," VERSION "," PEOPLE);
    say_field("num_workers_waiting", FINAL "," PEOPLE "," KEYS);
    say_field("rankrun", FINAL "," PEOPLE "," KEYS);
    say_field("rankrun_nodes", FINAL "," PEOPLE "," KEYS);
    say_field("rankrun_hosts", FINAL "," PEOPLE "," KEYS);
    say_field("rankrun_end", "\"status\":\"closed\"");
}

/* So many have joined. */
static void say_many(size_t n) {
    BUF_FINI struct buf text = {0};
    buf_puts(&text, "{\"status\":\"joinable\"," VERSION ",\"participants\":[0");
    for (size_t i = 1; i < n; i++)
        buf_puts(&text, ",0");
    buf_puts(&text, "]}");
    document_read(&d, buf_str(&text), 1);
    buf_printf(out, "of %zu: %d, %d\n", n, (int)d.status, d.n);
}

/* ---- changes ---- */

static void say_edits(const char *text) {
    buf_printf(out, "-- %s\n", text);
    document_read(&d, text, 1);
    for (unsigned n = 0; n < 256; n++) {
        BUF_FINI struct buf b = {0};
        const struct document_edit e = {.status = n & 1 ? "new" : NULL,
                                        .add_rank = n & 2 ? 2 : -1,
                                        .uid = n & 2 ? "me" : NULL,
                                        .node = n & 4 ? "node" : NULL,
                                        .host = n & 8 ? "host" : NULL,
                                        .begin_keep_alives = n & 16,
                                        .add_keep_alive = n & 32 ? "/k\"4" : NULL,
                                        .waiting = n & 64 ? (int)(n & 1) : -1,
                                        .end = n & 128 ? (n & 2 ? "" : "why") : NULL};
        document_write(&d, &e, &b);
        buf_printf(out, "%02x %s\n", n, buf_str(&b));
    }
}

static void say(struct buf *to) {
    out = to;
    say_fields();
    say_many(99999);
    say_many(100000);
    say_many(100001);
    say_edits("{\"status\":\"old\",\"participants\":[0,1],\"rankrun\":{\"0\":\"a\"},\"rankrun_"
              "nodes\":{\"1\":\"n\"},"
              "\"rankrun_hosts\":{\"0\":\"h\"},\"keep_alives\":[\"/"
              "k1\"],\"num_workers_waiting\":9,\"rankrun_end\":\"e\","
              "\"later\":[{\"a\":null}]}");
    say_edits("{}");
    say_edits("{\"status\":\"old\",\"participants\":7,\"rankrun\":null,\"keep_alives\":\"/k1\"}");
    document_fini(&d);
}

static void test_states_are_read_and_changed_to_the_last_field(void **state) {
    (void)state;
    on_record_same(path, say, "states of a rendezvous are read or written otherwise");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test =
        cmocka_unit_test(test_states_are_read_and_changed_to_the_last_field);
    return on_record_main(argc, argv, path, say, &test);
}
