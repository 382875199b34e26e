/* The wire format of a store, both ways and to the last byte: gateway.txt has what is written of each field alone and of all, in
 * pieces of each size, and what is read of each field at each value, there twice, not there, and of another type, with the
 * sentence. What is refused is written into nothing. `make transcripts` writes it anew. */
#include "agent/store/gateway.h"
#include "tests/agent/on_record.h"

#include <errno.h>
#include <stdio.h>

static const char path[] = "tests/agent/store/gateway.txt";

static struct buf *out;
static struct arena arena;

static void say_text(const char *what, const struct buf *text) {
    buf_printf(out, "%s: %s%s", what, buf_str(text),
               text->len && text->data[text->len - 1] == '\n' ? "" : "\n");
}

/* ---- writing ---- */

static const struct kv_op op_parts[] = {
    {.key = {"k", 1}},   {.range_end = {"", 1}}, {.value = {"v\n\xff", 3}},
    {.lease = -7},       {.limit = 3},           {.revision = 9},
    {.keys_only = true}, {.count_only = true},   {.prev_kv = true},
};

static void say_requests(void) {
    for (int kind = KV_RANGE; kind <= KV_DELETE; kind++)
        for (size_t i = 0; i < sizeof(op_parts) / sizeof(*op_parts); i++) {
            BUF_FINI struct buf text = {0};
            struct kv_op ops[3] = {op_parts[i], op_parts[i], {.lease = 1}};
            for (int k = 0; k < 3; k++)
                ops[k].kind = (enum kv_op_kind)((kind + k) % 3);
            gateway_put_txn(&text, &(struct kv_txn){.success = ops,
                                                    .n_success = 1 + i % 3,
                                                    .failure = ops,
                                                    .n_failure = i % 4 ? 0 : 2});
            say_text("txn", &text);
        }
    for (int target = KV_VERSION; target <= KV_LEASE; target++)
        for (int relation = KV_EQUAL; relation <= KV_NOT_EQUAL; relation++) {
            BUF_FINI struct buf text = {0};
            struct kv_compare c[2] = {{.target = (enum kv_target)target,
                                       .relation = (enum kv_relation)relation,
                                       .key = {"a", 1},
                                       .range_end = {"b", relation % 2},
                                       .value = {"vw", (size_t)relation % 3},
                                       .number = relation}};
            c[1] = (struct kv_compare){.number = INT64_MIN};
            gateway_put_txn(&text, &(struct kv_txn){.compares = c, .n_compares = 1 + relation % 2});
            say_text("compare", &text);
        }
    for (int i = 0; i < 8; i++) {
        BUF_FINI struct buf text = {0};
        gateway_put_watch(&text, &(struct gateway_watch){{"k", i & 1}, {"e", i / 2 & 1}, i & 4});
        say_text("watch", &text);
    }
    for (int i = 0; i < 4; i++) {
        BUF_FINI struct buf text = {0};
        const struct gateway_lease l = {i & 1 ? INT64_MAX : 0, i & 2};
        gateway_put_lease(&text, &l);
        buf_putc(&text, ' ');
        gateway_put_lease_answer(&text, &l, 5 + i, false);
        buf_putc(&text, ' ');
        gateway_put_lease_answer(&text, &l, 5 + i, true);
        say_text("lease", &text);
    }
}

static struct kv_pair pair(int i) {
    return (struct kv_pair){.key = {"key", (size_t)i % 4},
                            .value = {"value", (size_t)i % 6},
                            .create_revision = i % 3,
                            .mod_revision = i % 5,
                            .version = i % 2,
                            .lease = i % 7};
}

static void say_answer(struct gateway_answer a) {
    for (size_t max = 1; max <= 400; max = max < 4 ? max + 1 : 2 * max) {
        struct gateway_answer some = a;
        BUF_FINI struct buf text = {0};
        bool last;
        do {
            BUF_FINI struct buf piece = {0};
            last = gateway_put_some(&piece, &some, max);
            assert_true(last || piece.len > 0);
            buf_puts(&text, buf_str(&piece));
            buf_puts(&text, last ? "" : "|");
        } while (!last);
        buf_printf(out, "up to %zu: %s\n", max, buf_str(&text));
    }
}

static void say_answers(void) {
    struct kv_pair pairs[42];
    struct kv_op_result r[6];
    for (int i = 0; i < 42; i++)
        pairs[i] = pair(i);
    for (int i = 0; i < 6; i++) {
        bool put = i % 3 == KV_PUT;
        r[i] = (struct kv_op_result){.kind = (enum kv_op_kind)(i % 3),
                                     .pairs = pairs + 3 * i,
                                     .n_pairs = put ? (size_t)i / 3 : (size_t)i,
                                     .more = i % 2,
                                     .count = i};
        say_answer((struct gateway_answer){
            .result = {.results = &r[i], .n_results = 1, .revision = 80 + i}, .lone = true});
    }
    r[3].pairs = pairs;
    r[3].n_pairs = 42;
    say_answer((struct gateway_answer){.result = {.results = &r[3], .n_results = 1, .revision = 80},
                                       .lone = true});
    r[3].n_pairs = 2;
    for (size_t n = 0; n <= 6; n++)
        say_answer((struct gateway_answer){
            .result = {.results = r, .n_results = n, .revision = 90 + (int)n, .succeeded = n % 2}});
}

static void say_lines(void) {
    static const char *const messages[] = {"", "a \"b\" \n", "etcdserver: no leader"};
    struct kv_event events[3];
    for (int i = 0; i < 3; i++)
        events[i] = (struct kv_event){.deleted = i == 1, .pair = pair(11 + i)};
    for (int i = 0; i < 16; i++) {
        BUF_FINI struct buf text = {0};
        gateway_put_line(&text, &(struct gateway_line){.revision = i,
                                                       .created = i & 1,
                                                       .canceled = i & 2,
                                                       .compact_revision = i & 12,
                                                       .events = events,
                                                       .n_events = (size_t)i / 4});
        say_text("line", &text);
    }
    for (int i = 0; i < 3; i++) {
        BUF_FINI struct buf text = {0};
        gateway_put_header(&text, i - 1);
        buf_putc(&text, ' ');
        gateway_put_error(&text, i * 5, messages[i]);
        say_text("rest", &text);
    }
}

/* ---- reading ---- */

static void put_bytes(const char *name, struct kv_bytes b) {
    buf_printf(out, " %s=", name);
    for (size_t i = 0; i < b.len; i++)
        buf_printf(out, b.data[i] > ' ' && b.data[i] < 0x7f ? "%c" : "\\%02x",
                   (unsigned char)b.data[i]);
}

static void put_number(const char *name, int64_t n) {
    buf_printf(out, " %s=%lld", name, (long long)n);
}

static void put_pair(const struct kv_pair *p) {
    put_bytes("key", p->key);
    put_bytes("value", p->value);
    put_number("created", p->create_revision);
    put_number("mod", p->mod_revision);
    put_number("version", p->version);
    put_number("lease", p->lease);
}

static void put_op(const struct kv_op *op) {
    buf_printf(out, " {%d", (int)op->kind);
    put_bytes("key", op->key);
    put_bytes("end", op->range_end);
    put_bytes("value", op->value);
    put_number("lease", op->lease);
    put_number("limit", op->limit);
    put_number("revision", op->revision);
    buf_printf(out, "%s%s%s}", op->keys_only ? " keys" : "", op->count_only ? " count" : "",
               op->prev_kv ? " prev" : "");
}

static void put_txn(const struct kv_txn *t) {
    for (size_t i = 0; i < t->n_compares; i++) {
        const struct kv_compare *c = &t->compares[i];
        buf_printf(out, " {%d %d", (int)c->target, (int)c->relation);
        put_bytes("key", c->key);
        put_bytes("end", c->range_end);
        put_bytes("value", c->value);
        put_number("number", c->number);
        buf_putc(out, '}');
    }
    buf_puts(out, " then");
    for (size_t i = 0; i < t->n_success; i++)
        put_op(&t->success[i]);
    buf_puts(out, " else");
    for (size_t i = 0; i < t->n_failure; i++)
        put_op(&t->failure[i]);
}

static void put_result(const struct kv_txn_result *r) {
    put_number("revision", r->revision);
    buf_puts(out, r->succeeded ? " succeeded" : "");
    for (size_t i = 0; i < r->n_results; i++) {
        const struct kv_op_result *one = &r->results[i];
        buf_printf(out, " {%d%s", (int)one->kind, one->more ? " more" : "");
        put_number("count", one->count);
        for (size_t k = 0; k < one->n_pairs; k++) {
            buf_puts(out, " pair");
            put_pair(&one->pairs[k]);
        }
        buf_putc(out, '}');
    }
}

static void put_line(const struct gateway_line *l) {
    put_number("revision", l->revision);
    buf_printf(out, "%s%s", l->created ? " created" : "", l->canceled ? " canceled" : "");
    put_number("compact", l->compact_revision);
    for (size_t i = 0; i < l->n_events; i++) {
        buf_puts(out, l->events[i].deleted ? " deleted" : " put");
        put_pair(&l->events[i].pair);
    }
}

enum reading { TXN, RANGE, PUT, DELETE, WATCH, LEASE, LEASE_ANSWER, RESULT, LINE, READINGS };

union read {
    struct kv_txn txn;
    struct kv_op op;
    struct gateway_watch watch;
    struct gateway_lease lease;
    struct kv_txn_result result;
    struct gateway_line line;
};

static int take(enum reading what, const char *text, size_t n, union read *ret, struct err *err) {
    switch (what) {
    case TXN:
        return gateway_take_txn(&arena, text, n, &ret->txn, err);
    case RANGE:
    case PUT:
    case DELETE:
        return gateway_take_op(&arena, text, n, (enum kv_op_kind)(what - RANGE), &ret->op, err);
    case WATCH:
        return gateway_take_watch(&arena, text, n, &ret->watch, err);
    case LEASE:
        return gateway_take_lease(&arena, text, n, &ret->lease, err);
    case LEASE_ANSWER:
        return gateway_take_lease_answer(&arena, text, n, &ret->lease, err);
    case RESULT:
        return gateway_take_txn_result(&arena, text, n, &ret->result, err);
    case LINE:
    case READINGS:
        break;
    }
    return gateway_take_line(&arena, text, n, &ret->line, err);
}

static void put_read(enum reading what, const union read *r) {
    if (what == TXN)
        put_txn(&r->txn);
    else if (what <= DELETE)
        put_op(&r->op);
    else if (what == WATCH) {
        put_bytes("key", r->watch.key);
        put_bytes("end", r->watch.range_end);
        put_number("from", r->watch.start_revision);
    } else if (what <= LEASE_ANSWER) {
        put_number("id", r->lease.id);
        put_number("ttl", r->lease.ttl_s);
    } else if (what == RESULT)
        put_result(&r->result);
    else
        put_line(&r->line);
}

static void say_read(enum reading what, const char *text, size_t n) {
    union read is, was;
    struct err err = {0};
    memset(&was, 0x5a, sizeof(was));
    is = was;
    int code = take(what, text, n, &is, &err);
    buf_printf(out, "  %d:", code);
    if (code == 0)
        put_read(what, &is);
    else
        assert_memory_equal(&is, &was, sizeof(is));
    buf_printf(out, "%s%s\n", err.msg[0] ? " " : "", err.msg);
    arena_fini(&arena);
}

/* What stands for a field when it is looked at: base64 of one byte and of three, none, a number as a string, and so on. */
static const char *const values[] = {
    "\"YQ==\"",
    "\"AP9h\"",
    "\"\"",
    "\"YQ=\"",
    "\"7\"",
    "\"-9223372036854775808\"",
    "\"9223372036854775808\"",
    "0",
    "1",
    "5",
    "1.5",
    "\"x\"",
    "true",
    "false",
    "null",
    "[]",
    "{}",
};
static const char *const enums[] = {
    "\"VERSION\"", "\"CREATE\"", "\"MOD\"",
    "\"VALUE\"",   "\"LEASE\"",  "\"EQUAL\"",
    "\"GREATER\"", "\"LESS\"",   "\"NOT_EQUAL\"",
    "0",           "1",          "2",
    "3",           "4",          "5",
    "-1",          "\"value\"",  "\"\"",
    "null",
};

/* A message with one hole. */
struct pattern {
    enum reading what;
    const char *before, *name, *behind;
    const char *const *with;
    size_t n;
};

#define ANY  values, sizeof(values) / sizeof(*values)
#define ENUM enums, sizeof(enums) / sizeof(*enums)

static const struct pattern patterns[] = {
    {TXN, "{\"compare\":[{\"key\":\"aw==\"},{", "target", "}]}", ENUM},
    {TXN, "{\"compare\":[{\"target\":\"VALUE\",", "result", "}]}", ENUM},
    {TXN, "{\"compare\":[{", "key", "}]}", ANY},
    {TXN, "{\"compare\":[{", "range_end", "}]}", ANY},
    {TXN, "{\"compare\":[{", "version", "}]}", ANY},
    {TXN, "{\"compare\":[{\"target\":\"CREATE\",", "create_revision", "}]}", ANY},
    {TXN, "{\"compare\":[{\"target\":\"MOD\",", "mod_revision", "}]}", ANY},
    {TXN, "{\"compare\":[{\"target\":\"VALUE\",", "value", "}]}", ANY},
    {TXN, "{\"compare\":[{\"target\":\"LEASE\",", "lease", "}]}", ANY},
    {TXN, "{\"compare\":[{\"target\":\"MOD\",\"create_revision\":\"4\",", "value", "}]}", ANY},
    {TXN, "{", "compare", "}", ANY},
    {TXN, "{", "success", "}", ANY},
    {TXN, "{\"success\":[{", "request_range", "}]}", ANY},
    {TXN, "{\"success\":[{", "request_txn", "}]}", ANY},
    {TXN, "{\"failure\":[{\"request_put\":{", "value", "}},{\"request_delete_range\":{}}]}", ANY},
    {RANGE, "{", "key", "}", ANY},
    {RANGE, "{", "range_end", "}", ANY},
    {PUT, "{", "value", "}", ANY},
    {PUT, "{", "lease", "}", ANY},
    {RANGE, "{", "limit", "}", ANY},
    {RANGE, "{", "revision", "}", ANY},
    {RANGE, "{", "keys_only", "}", ANY},
    {RANGE, "{", "count_only", "}", ANY},
    {DELETE, "{", "prev_kv", "}", ANY},
    {WATCH, "{", "create_request", "}", ANY},
    {WATCH, "{\"create_request\":{", "key", "}}", ANY},
    {WATCH, "{\"create_request\":{", "range_end", "}}", ANY},
    {WATCH, "{\"create_request\":{", "start_revision", "}}", ANY},
    {LEASE, "{\"TTL\":\"3\",", "ID", "}", ANY},
    {LEASE, "{\"ID\":\"3\",", "TTL", "}", ANY},
    {LEASE_ANSWER, "{\"ID\":\"3\",", "TTL", "}", ANY},
    {LEASE_ANSWER, "{\"ID\":\"3\",\"result\":{", "ID", "}}", ANY},
    {LEASE_ANSWER, "{\"ID\":\"3\",", "result", "}", ANY},
    {RESULT, "{", "header", "}", ANY},
    {RESULT, "{\"header\":{", "revision", "}}", ANY},
    {RESULT, "{\"header\":{},", "succeeded", "}", ANY},
    {RESULT, "{\"header\":{},", "responses", "}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{", "response_put", "}]}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{", "response_txn", "}]}", ANY},
    {RESULT, "{\"responses\":[{\"response_put\":{", "prev_kv", "}}],\"header\":{}}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_range\":{\"deleted\":\"6\",", "count",
     "}}]}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_delete_range\":{\"count\":\"6\",",
     "deleted", "}}]}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_put\":{\"deleted\":\"6\",", "count", "}}]}",
     ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_range\":{", "kvs", "}}]}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_delete_range\":{", "prev_kvs", "}}]}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_range\":{\"kvs\":[{\"version\":\"2\"},{",
     "key", "}]}}]}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_range\":{\"kvs\":[{", "value", "}]}}]}",
     ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_range\":{\"kvs\":[{", "create_revision",
     "}]}}]}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_range\":{\"kvs\":[{", "mod_revision",
     "}]}}]}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_put\":{\"prev_kv\":{", "version", "}}}]}",
     ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_delete_range\":{\"prev_kvs\":[{", "lease",
     "}]}}]}", ANY},
    {RESULT, "{\"header\":{},\"responses\":[{\"response_range\":{", "more",
     "}},{\"response_put\":{}}]}", ANY},
    {LINE, "{", "result", "}", ANY},
    {LINE, "{\"result\":{", "header", "}}", ANY},
    {LINE, "{\"result\":{\"header\":{", "revision", "}}}", ANY},
    {LINE, "{\"result\":{", "created", "}}", ANY},
    {LINE, "{\"result\":{", "canceled", "}}", ANY},
    {LINE, "{\"result\":{", "compact_revision", "}}", ANY},
    {LINE, "{\"result\":{", "events", "}}", ANY},
    {LINE, "{\"result\":{\"events\":[{", "kv", "},{\"type\":\"DELETE\"}]}}", ANY},
    {LINE, "{\"result\":{\"events\":[{", "type", "},{\"kv\":{\"key\":\"YQ==\"}}]}}", ANY},
    {LINE, "{\"result\":{\"events\":[{\"type\":\"PUT\",\"kv\":{", "lease", "}}]}}", ANY},
};

static void say_patterns(void) {
    for (const struct pattern *p = patterns; p < patterns + sizeof(patterns) / sizeof(*p); p++) {
        BUF_FINI struct buf absent = {0};
        buf_printf(&absent, "%s\"z\":0%s", p->before, p->behind);
        buf_printf(out, "%d: %s\"%s\":_%s\n", (int)p->what, p->before, p->name, p->behind);
        say_read(p->what, absent.data, absent.len);
        for (size_t i = 0; i < p->n; i++) {
            BUF_FINI struct buf text = {0};
            buf_printf(&text, "%s\"%s\":%s%s", p->before, p->name, p->with[i], p->behind);
            say_read(p->what, text.data, text.len);
        }
    }
}

/* What is no message at all, for each that is read. */
static void say_strange(void) {
    static const char *const none[] = {"", "[]", "\"a\"", "7", "null", "{", "<html>", "{}", "{} x"};
    for (int what = TXN; what < READINGS; what++) {
        buf_printf(out, "%d, what is none\n", what);
        for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
            say_read((enum reading)what, none[i], strlen(none[i]));
    }
}

/* ---- errors ---- */

static void say_error_bodies(void) {
    static const char *const bodies[] = {
        "{\"error\":\"a\",\"message\":\"b\",\"code\":9}",
        "{\"error\":\"a\"}",
        "{\"message\":\"b\"}",
        "{\"error\":{\"message\":\"c\"}}",
        "{\"error\":{\"message\":\"c\"},\"message\":\"b\"}",
        "{\"error\":{\"message\":7}}",
        "{\"error\":7,\"message\":8}",
        "{}",
        "[]",
        "",
        "<html>",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        const char *text = gateway_take_error(&arena, bodies[i], strlen(bodies[i]));
        buf_printf(out, "error of %s: %s\n", bodies[i], text ? text : "none");
    }
}

/* For each message what is advised, whether it is of the token, and whether it is final, by statuses. */
static void say_messages(void) {
    static const char *const messages[] = {
        NULL,
        "",
        "etcdserver: mvcc: database space exceeded",
        "etcdserver: user name is empty",
        "etcdserver: authentication failed, invalid user ID or password",
        "etcdserver: permission denied",
        "etcdserver: invalid auth token",
        "etcdserver: revision of auth store is old",
        "etcdserver: requested lease not found",
    };
    for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
        const char *m = messages[i];
        buf_printf(out, "%s: %s;", m ? m : "none", m ? gateway_advise(&arena, m) : "");
        for (long status = 199; status <= 600; status++) {
            bool of_token = gateway_error_is_of_token(status, m);
            bool final = gateway_error_is_final(status, m);
            static bool was_of_token, was_final;
            if (status == 199 || of_token != was_of_token || final != was_final)
                buf_printf(out, " from %ld%s%s", status, of_token ? " of the token" : "",
                           final ? " final" : "");
            was_of_token = of_token;
            was_final = final;
        }
        buf_putc(out, '\n');
    }
    arena_fini(&arena);
}

static void say_strangers(void) {
    static const long statuses[] = {0, 200, 399, 400, 401, 502};
    for (int n = 0; n <= 90; n += n < 2 || n > 77 ? 1 : 25) {
        BUF_FINI struct buf body = {0};
        for (int i = 0; i < n; i++)
            buf_putc(&body, (char)('a' + i % 26));
        for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
            if (n < 2 || i == 3)
                buf_printf(out, "%s\n", gateway_describe_stranger(&arena, statuses[i], &body));
    }
    for (int c = 0; c < 256; c++) {
        char text[] = "ab?d";
        text[2] = (char)c;
        const struct buf body = {.data = text, .len = 4};
        const char *said = gateway_describe_stranger(&arena, 200, &body);
        assert_int_equal(strstr(said, ", ab: ") == NULL, c >= ' ' && c < 0x7f);
    }
    arena_fini(&arena);
}

static void say(struct buf *to) {
    out = to;
    say_requests();
    say_answers();
    say_lines();
    say_patterns();
    say_strange();
    say_error_bodies();
    say_messages();
    say_strangers();
}

static void test_the_wire_format_is_the_same_to_the_last_byte(void **state) {
    (void)state;
    on_record_same(path, say, "requests and answers are another text");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test =
        cmocka_unit_test(test_the_wire_format_is_the_same_to_the_last_byte);
    return on_record_main(argc, argv, path, say, &test);
}
