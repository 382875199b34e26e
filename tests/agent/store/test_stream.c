/* Watches over HTTP beside a plain model: what each is told, who has room, and who is given back. libevent, the crowd and whose
 * turn it is are this file's. */
#include "agent/store/stream.h"

#include "agent/store/watch.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 24 };
#define CLIENTS_ALL (CLIENTS + STREAM_RANGES_MAX + 2)
#define CLIENT_MORE                                                                                \
    int open, started, timeouts_off, removed;                                                      \
    char key[2], end[2];                                                                           \
    int64_t next; /* the revision from which on it has not been told */
#include "tests/agent/store/fake_client.h"

static void fake_chunk(struct evhttp_request *req, struct evbuffer *out) {
    size_t n = evbuffer_get_length(out);
    buf_put(&client_of(req)->text, (const char *)evbuffer_pullup(out, -1), n);
}

#define evhttp_send_reply_chunk(r, out)       fake_chunk(r, out)
#define evhttp_send_reply_start(r, code, why) (is(why, NULL), client_of(r)->started = (code))
#define evhttp_add_header(h, name, value)                                                          \
    (assert_string_equal(name, "Content-Type"), assert_string_equal(value, "application/json"))
#define evhttp_connection_get_bufferevent(c) ((void *)(c))
#define bufferevent_set_timeouts(b, r, w)    (is(r, NULL), is(w, NULL), client_of(b)->timeouts_off = 1)
#define flow_remove(i)                       (client_of((i)->req)->removed++)
#include "agent/store/stream.c"

static struct kv *kv;
static struct streams *streams;
static struct arena arena;

static void begin(size_t history_max) {
    struct stream_parts parts = {.crowd = (struct crowd *)(void *)&of_crowd,
                                 .flow = (struct flow *)(void *)&of_flow,
                                 .slow = on_slow,
                                 .arg = &slow};
    memset(clients, 0, sizeof(clients));
    kv = parts.kv = kv_new(1, history_max);
    streams = streams_new(&parts);
    slow = 0;
}

static void finish(void) {
    for (size_t i = 0; i < sizeof(clients) / sizeof(*clients); i++)
        clients[i].gone = i % 2;
    assert_null(streams_free(streams));
    for (size_t i = 0; i < sizeof(clients) / sizeof(*clients); i++) {
        if (clients[i].open) /* nobody is told any more, but of what is gone already */
            assert_int_equal(clients[i].closed != NULL, i % 2);
        buf_fini(&clients[i].text);
    }
    kv_free(kv);
    arena_fini(&arena);
}

static struct kv_bytes bytes_of(const char *text) {
    return kv_string(text);
}

static struct gateway_watch watch_of(const struct client *c, int64_t from) {
    return (struct gateway_watch){bytes_of(c->key), bytes_of(c->end), from};
}

static void open_one(struct client *c, int agent, const char *key, const char *end, int64_t from) {
    buf_fini(&c->text);
    *c = (struct client){.open = 1, .agent = agent};
    c->key[0] = key[0];
    c->end[0] = end[0];
    c->next = from ? from : kv_revision(kv) + 1;
    struct gateway_watch w = watch_of(c, from);
    size_t before = streams_count(streams);
    streams_open(streams, (struct evhttp_request *)(void *)c, &w);
    assert_int_equal(streams_count(streams), before + 1);
    assert_true(c->started == 200 && c->timeouts_off && c->closed);
    struct gateway_line line = {0};
    assert_int_equal(gateway_take_line(&arena, c->text.data, c->text.len, &line, NULL), 0);
    assert_true(line.created && !line.canceled && line.n_events == 0 &&
                line.revision == kv_revision(kv));
    buf_clear(&c->text);
}

static void close_one(struct client *c) {
    size_t before = streams_count(streams);
    c->gone = draw(2);
    c->closed((struct evhttp_connection *)(void *)c, c->closed_arg);
    c->open = 0;
    assert_int_equal(c->freed, c->gone);
    assert_int_equal(streams_count(streams), before - 1);
}

static void test_ranges_of_others_than_agents_are_bounded(void **state) {
    (void)state;
    begin(0);
    struct gateway_watch range = {bytes_of("a"), bytes_of("b"), 0},
                         single = {bytes_of("a"), bytes_of(""), 0};
    int i = 0;
    open_one(&clients[STREAM_RANGES_MAX], 1, "a", "b", 0); /* an agent's */
    open_one(&clients[STREAM_RANGES_MAX + 1], 0, "a", "", 0);
    for (; i < STREAM_RANGES_MAX; i++) {
        assert_true(streams_have_room(streams, &range, false));
        open_one(&clients[i], 0, "a", "b", 0);
    }
    assert_false(streams_have_room(streams, &range, false));
    assert_true(streams_have_room(streams, &range, true) &&
                streams_have_room(streams, &single, false));
    close_one(&clients[STREAM_RANGES_MAX]);
    close_one(&clients[STREAM_RANGES_MAX + 1]);
    assert_false(streams_have_room(streams, &range, false));
    close_one(&clients[0]);
    assert_true(streams_have_room(streams, &range, false));
    open_one(&clients[0], 0, "a", "b", 0);
    assert_false(streams_have_room(streams, &range, false));
    finish();
}

/* ---- what is told ---- */

static int count_ended(void) {
    int n = 0;
    for (int i = 0; i < CLIENTS; i++)
        n += clients[i].open && clients[i].told_end;
    return n;
}

static void write_keys(void) {
    char keys[3][2] = {{0}};
    struct kv_op ops[3];
    struct kv_txn_result r;
    size_t n = (size_t)(1 + draw(3));
    for (size_t i = 0; i < n; i++) {
        keys[i][0] = (char)('a' + draw(2) + 2 * (int)i);
        ops[i] = (struct kv_op){.kind = draw(3) ? KV_PUT : KV_DELETE, .key = bytes_of(keys[i])};
        ops[i].value = bytes_of(ops[i].kind == KV_PUT ? "value" : "");
    }
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = ops, .n_success = n}, &arena, &r, NULL),
                     0);
    int before = slow, ended = count_ended();
    streams_send(streams);
    assert_int_equal(slow - before, count_ended() - ended); /* who is slow goes */
}

struct expected {
    const struct client *client;
    const struct gateway_line *line;
    size_t n;
};

static bool concerns(const struct client *c, struct kv_bytes key) {
    return c->end[0] ? key.data[0] >= c->key[0] && key.data[0] < c->end[0]
                     : key.data[0] == c->key[0];
}

static void see_event(void *arg, const struct kv_event *event) {
    struct expected *e = arg;
    if (!concerns(e->client, event->pair.key) || e->n >= e->line->n_events)
        return;
    const struct kv_event *is = &e->line->events[e->n++];
    assert_true(is->deleted == event->deleted && is->pair.mod_revision == event->pair.mod_revision);
    assert_true(is->pair.version == event->pair.version &&
                is->pair.key.data[0] == event->pair.key.data[0]);
}

static void expect_events(struct client *c, const struct buf *text) {
    struct gateway_line line = {0};
    struct expected e = {c, &line, 0};
    assert_true(text->len && text->data[text->len - 1] == '\n');
    assert_int_equal(gateway_take_line(&arena, text->data, text->len, &line, NULL), 0);
    assert_true(line.n_events > 0 && !line.created && !line.canceled &&
                line.revision == kv_revision(kv));
    kv_each_event(kv, c->next, see_event, &e);
    assert_int_equal(e.n, line.n_events);
    c->next = kv_revision(kv) + 1;
}

static void expect_cancel(struct client *c) {
    struct gateway_line line = {0};
    assert_int_equal(gateway_take_line(&arena, c->text.data, c->text.len, &line, NULL), 0);
    assert_true(line.canceled && line.n_events == 0 && line.revision == kv_revision(kv));
    assert_int_equal(line.compact_revision, kv_compact_revision(kv));
    assert_true(c->ended == 1 && !c->closed && c->next < kv_compact_revision(kv));
    c->open = 0;
}

/* Its turn: something is being taken from then on, or there was nothing. */
static void give_turn(struct client *c) {
    struct buf out = {0};
    if (!c->open || !c->wants || c->item->held)
        return;
    c->wants = 0;
    if (c->ops->produce(c->item, &out)) {
        expect_events(c, &out);
        c->item->held = out.len;
    } else {
        assert_int_equal(out.len, 0);
        if (c->ended)
            expect_cancel(c);
    }
    buf_fini(&out);
}

static void be_taken(struct client *c) {
    if (!c->open || !c->item->held)
        return;
    c->item->held = 0;
    c->wants = 0;
    c->ops->taken(c->item);
}

/* It has taken nothing for too long. */
static void be_cut(struct client *c) {
    int before = slow;
    if (!c->open || !c->item->held)
        return;
    c->ops->cut(c->item);
    assert_true(slow == before + 1 && c->told_end == 1);
    c->item->held = 0;
    c->wants = 0;
    write_keys(); /* of which nobody is told who has been cut off */
    assert_false(c->wants);
    close_one(c);
}

/* Those that hold what they do not take while it is compacted are ended. */
static void reap_ended(void) {
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].open && clients[i].told_end) {
            assert_true(clients[i].next < kv_compact_revision(kv) && clients[i].removed);
            close_one(&clients[i]);
        }
}

static void step(void) {
    struct client *c = &clients[draw(CLIENTS)];
    static const char *const ends[] = {"", "", "c", "e", "z"};
    switch (draw(9)) {
    case 0:
    case 1:
    case 2:
        write_keys();
        break;
    case 3: {
        static const char *const keys[] = {"a", "b", "c", "d", "e"};
        const char *key = keys[draw(5)], *end = ends[draw(5)];
        if (!c->open)
            open_one(c, draw(2), key, end[0] && end[0] <= key[0] ? "z" : end,
                     draw(2) ? 0 : kv_revision(kv) - draw(4) + 1);
        streams_send(streams);
        break;
    }
    case 4:
        if (c->open && !draw(3))
            close_one(c);
        break;
    case 5:
        if (!draw(6))
            be_cut(c);
        break;
    case 6:
        be_taken(c);
        break;
    default:
        give_turn(c);
    }
    reap_ended();
}

static size_t count_open(void) {
    size_t n = 0;
    for (int i = 0; i < CLIENTS; i++)
        n += clients[i].open;
    return n;
}

static void test_each_is_told_what_concerns_it_and_nothing_twice(void **state) {
    (void)state;
    int slow_ones = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        rand_init(&chance, seed);
        begin(seed % 2 ? 12 : 0);
        for (int i = 0; i < 500; i++)
            step();
        for (int i = 0; i < CLIENTS; i++) /* and at last all of it */
            for (int turns = 0; turns < 3 && clients[i].open; turns++) {
                be_taken(&clients[i]);
                give_turn(&clients[i]);
            }
        assert_int_equal(streams_count(streams), count_open());
        for (int i = 0; i < CLIENTS; i++)
            if (clients[i].open)
                assert_false(
                    kv_watch_is_behind(list_entry(clients[i].item, struct stream, item)->watch.kv));
        slow_ones += slow;
        finish();
    }
    assert_true(slow_ones > 40);
    assert_null(streams_free(NULL));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_of_others_than_agents_are_bounded),
        cmocka_unit_test(test_each_is_told_what_concerns_it_and_nothing_twice),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
