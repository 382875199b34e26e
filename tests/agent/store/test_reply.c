/* Answers on their way, beside a plain model: each comes whole and as it was when it was asked for, however it is read, and what is held
 * for it is given back. libevent, the crowd and whose turn it is are this file's. */
#include "agent/store/reply.h"

#include "agent/core/kv.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>

enum { CLIENTS = 12, KEYS = 4000 };
#define CLIENTS_ALL CLIENTS
#define CLIENT_MORE                                                                                \
    int status;                                                                                    \
    size_t held;         /* keys that it holds; 0: none is on its way to it */                     \
    struct buf expected; /* the whole answer */                                                    \
    bool taken_over;
#include "tests/agent/store/fake_client.h"

static void fake_remove(const struct flow_item *i) {
    client_of(i->req)->item = NULL;
}

#define evhttp_request_get_output_buffer(r) ((struct evbuffer *)(void *)(r))
#define evhttp_send_reply(r, code, why, out)                                                       \
    (assert_null(why), assert_null(out), client_of(r)->status = (code), client_of(r)->ended++)
#define evhttp_send_reply_start(r, code, why) (assert_null(why), client_of(r)->status = (code))
#define evhttp_add_header(h, name, value)                                                          \
    (assert_string_equal(name, "Content-Type"), assert_string_equal(value, type_expected))
#define evbuffer_add(b, p, n) buf_put(&client_of(b)->text, p, n)
#define flow_remove(i)        fake_remove(i)
static const char *type_expected = "application/json";
#include "agent/store/reply.c"

static struct kv *kv;
static struct replies *replies;

static void put_key(int i, int value) {
    char key[16], text[40];
    struct arena a = {0};
    struct kv_txn_result r;
    snprintf(key, sizeof(key), "k%05d", i);
    snprintf(text, sizeof(text), "value %d", value);
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = kv_string(text)};
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL), 0);
    arena_fini(&a);
}

/* So many keys, whole at once. */
static void put_whole(struct buf *out, const char *body) {
    struct answer a = {0};
    answer_request(&a, kv, "/v3/kv/range", body, strlen(body), 1, NULL);
    for (BUF_FINI struct buf rest = {0}; a.more; buf_clear(&rest)) {
        a.more = !answer_more(&a, &rest);
        buf_put(&a.body, rest.data, rest.len);
    }
    buf_put(out, a.body.data, a.body.len);
    answer_fini(&a, kv);
}

static void ask(struct client *c, int agent, int limit) {
    char body[100];
    struct answer a = {0};
    buf_fini(&c->text);
    buf_fini(&c->expected);
    *c = (struct client){.agent = agent};
    snprintf(body, sizeof(body), "{\"key\":\"AA==\",\"range_end\":\"AA==\",\"limit\":\"%d\"}",
             limit);
    put_whole(&c->expected, body);
    answer_request(&a, kv, "/v3/kv/range", body, strlen(body), 1, NULL);
    bool more = a.more;
    assert_int_equal(more, c->expected.len > ANSWER_PIECE + 200);
    size_t n = a.hold->n;
    reply_send(replies, (struct evhttp_request *)(void *)c, &a);
    assert_int_equal(c->status, 200);
    c->held = more ? n : 0;
    c->taken_over = true;
    assert_int_equal(c->ended, !more);
    assert_true(more ? c->closed && c->wants && c->item : !c->closed);
    if (more)
        assert_int_equal(n, limit);
    else
        assert_string_equal(buf_str(&c->text), buf_str(&c->expected));
}

static void give_turn(struct client *c) {
    BUF_FINI struct buf out = {0};
    if (!c->held || !c->wants || c->item->held)
        return;
    c->wants = 0;
    assert_true(c->ops->produce(c->item, &out) && out.len);
    assert_true(out.len < ANSWER_PIECE + 400);
    buf_put(&c->text, out.data, out.len);
    c->item->held = out.len;
}

static void be_taken(struct client *c) {
    if (!c->held || !c->item->held)
        return;
    c->item->held = 0;
    c->ops->taken(c->item);
    if (c->wants)
        return;
    assert_true(c->ended == 1 && !c->closed && !c->item);
    assert_string_equal(buf_str(&c->text), buf_str(&c->expected));
    c->held = 0;
}

static void be_closed(struct client *c) {
    if (!c->held)
        return;
    c->gone = draw(2);
    c->closed((struct evhttp_connection *)(void *)c, c->closed_arg);
    assert_true(c->freed == c->gone && !c->item && !c->ended);
    c->held = 0;
}

static void be_cut(struct client *c) {
    int before = slow;
    if (!c->held || !c->item->held)
        return;
    c->ops->cut(c->item);
    assert_true(slow == before + 1 && c->told_end == 1);
    be_closed(c);
}

static void step(void) {
    struct client *c = &clients[draw(CLIENTS)];
    switch (draw(8)) {
    case 0:
        if (!c->held)
            ask(c, draw(2), draw(2) ? 1 + draw(20) : 1000 + draw(KEYS - 999));
        break;
    case 1:
        put_key(draw(KEYS), draw(100000)); /* that is not seen by who has asked */
        break;
    case 2:
        if (!draw(4))
            be_closed(c);
        break;
    case 3:
        if (!draw(4))
            be_cut(c);
        break;
    case 4:
    case 5:
        be_taken(c);
        break;
    default:
        give_turn(c);
    }
    size_t held = 0;
    for (int i = 0; i < CLIENTS; i++)
        held += clients[i].agent ? 0 : clients[i].held;
    assert_int_equal(replies_held(replies), held);
}

static void test_each_answer_comes_whole_as_it_was(void **state) {
    (void)state;
    struct stream_parts parts = {.crowd = (struct crowd *)(void *)&of_crowd,
                                 .flow = (struct flow *)(void *)&of_flow,
                                 .slow = on_slow,
                                 .arg = &slow};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        rand_init(&chance, seed);
        kv = parts.kv = kv_new(1, 0);
        replies = replies_new(&parts);
        for (int i = 0; i < KEYS; i++)
            put_key(i, i);
        for (int i = 0; i < 400; i++)
            step();
        int left = 0;
        for (int i = 0; i < CLIENTS; i++) {
            left += clients[i].held > 0;
            clients[i].gone = i % 2;
        }
        assert_true(left > 0);
        assert_null(replies_free(replies));
        for (int i = 0; i < CLIENTS; i++) {
            struct client *c = &clients[i];
            if (c->held)
                assert_true(!c->item && (c->gone || !c->closed));
            buf_fini(&c->text);
            buf_fini(&c->expected);
            *c = (struct client){0};
        }
        kv_free(kv);
    }
    assert_true(slow > 5);
    assert_null(replies_free(NULL));
}

static void test_a_text_is_sent_as_what_it_is(void **state) {
    (void)state;
    struct client c = {0};
    BUF_FINI struct buf text = {0};
    buf_puts(&text, "# numbers\n");
    type_expected = "text/plain";
    reply_send_text((struct evhttp_request *)(void *)&c, 203, &text, "text/plain");
    assert_true(c.status == 203 && c.ended == 1);
    assert_string_equal(buf_str(&c.text), "# numbers\n");
    buf_fini(&c.text);
    type_expected = "application/json";
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_answer_comes_whole_as_it_was),
        cmocka_unit_test(test_a_text_is_sent_as_what_it_is),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
