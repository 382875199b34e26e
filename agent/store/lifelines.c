#include "agent/store/lifelines.h"

#include "agent/core/kv_request.h"
#include "agent/store/codec.h"
#include "agent/store/limits/crowd.h"
#include "base/http/http.h"
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

/* One, first as a connection, then as a certificate that is to be written. */
struct lifeline_kept {
    struct list node;
    struct lifelines *all;
    struct evhttp_connection *connection; /* NULL: it has ended */
    struct loop_source *end;              /* readable: it ends */
    struct loop_source *due;
    char run_id[RUN_ID_MAX + 1];
    struct lifeline_claim claim;
};

struct lifelines {
    struct loop *loop;
    struct kv *kv;
    struct crowd *crowd;
    void (*written)(void *arg);
    void *arg;
    struct list list;
    size_t open;
};

struct lifelines *lifelines_new(struct loop *l, struct kv *kv, struct crowd *crowd,
                                void (*written)(void *arg), void *arg) {
    struct lifelines *s = mem_new(struct lifelines);
    *s = (struct lifelines){.loop = l, .kv = kv, .crowd = crowd, .written = written, .arg = arg};
    list_init(&s->list);
    return s;
}

size_t lifelines_count(const struct lifelines *s) {
    return s->open;
}

static void kept_free(struct lifeline_kept *k) {
    if (k->connection)
        k->all->open--;
    loop_source_free(k->end);
    loop_source_free(k->due);
    list_remove(&k->node);
    free(k);
}

struct lifelines *lifelines_free(struct lifelines *s) {
    if (!s)
        return NULL;
    list_each_safe(it, next, &s->list) {
        struct lifeline_kept *k = list_entry(it, struct lifeline_kept, node);
        if (k->connection)
            crowd_on_close(s->crowd, k->connection, NULL, NULL);
        kept_free(k);
    }
    free(s);
    return NULL;
}

/* ---- the certificate ---- */

static void certify(struct lifeline_kept *k) {
    struct lifeline_certificate c;
    ARENA_FINI struct arena arena = {0};
    struct kv_txn_result result;
    lifeline_certify(&k->claim, &c);
    struct kv_txn txn = kv_request_txn(&arena, k->run_id, &c.txn, codec_bytes);
    if (kv_txn(k->all->kv, &txn, &arena, &result, NULL) == 0 && result.succeeded)
        k->all->written(k->all->arg);
}

static void on_due(void *arg, int64_t now_ns) {
    struct lifeline_kept *k = arg;
    certify(k);
    kept_free(k);
}

/* ---- the connection ---- */

/* The connection has ended, one way or the other, or says what it should not. */
static void on_end(void *arg, int fd, int what) {
    struct lifeline_kept *k = arg;
    struct evhttp_connection *connection = k->connection;
    enum lifeline_end how = tcp_ended_in_order(fd) ? LIFELINE_CLOSED : LIFELINE_BROKEN;
    int64_t due_ns = lifeline_due_ns(how, clock_monotonic_ns());
    k->end = loop_source_free(k->end);
    k->connection = NULL;
    k->all->open--;
    crowd_on_close(k->all->crowd, connection, NULL, NULL);
    evhttp_connection_free(connection);
    if (due_ns == INT64_MAX) {
        kept_free(k);
        return;
    }
    k->due = loop_timer(k->all->loop, on_due, k);
    loop_timer_at(k->due, due_ns);
}

/* evhttp has closed it, for a reason of its own: that is no end of anybody. */
static void on_closed(struct evhttp_connection *connection, void *arg) {
    kept_free(arg);
}

static bool is_hex(const char *text, size_t size) {
    return strlen(text) == size - 1 && strspn(text, "0123456789abcdef") == size - 1;
}

static int read_claim(struct lifeline_kept *k, const struct json *j, struct err *err) {
    const char *inc = json_get_string(j, "inc", ""), *uid = json_get_string(j, "uid", "");
    if (!str_copy(k->run_id, sizeof(k->run_id), json_get_string(j, "run_id", "")) ||
        key_run_id_check(k->run_id, NULL) < 0)
        return err_say(err, -EINVAL, "lifeline: run_id is missing or too long");
    if (!is_hex(inc, INC_SIZE) || !is_hex(uid, UID_SIZE))
        return err_say(err, -EINVAL, "lifeline: inc and uid must be 16 and 32 hex digits");
    str_copy(k->claim.inc, sizeof(k->claim.inc), inc);
    str_copy(k->claim.uid, sizeof(k->claim.uid), uid);
    k->claim.revision = json_get_i64(j, "revision", 0);
    if (k->claim.revision > 0)
        return 0;
    return err_say(err, -EINVAL, "lifeline: revision must be that of the session's creation");
}

static int check_ends(int fd, const struct json *j, struct err *err) {
    char own[TCP_ENDS_MAX], peer[TCP_ENDS_MAX];
    const char *from = json_get_string(j, "from", ""), *to = json_get_string(j, "to", "");
    if (tcp_ends(fd, own, peer) < 0)
        return err_say(err, -EINVAL, "lifeline: the connection has no ends any more");
    if (str_eq(from, peer) && str_eq(to, own))
        return 0;
    return err_say(err, -EINVAL,
                   "lifeline: from %s to %s is here from %s to %s: something in between could end "
                   "it",
                   from, to, peer, own);
}

int lifelines_take(struct lifelines *s, struct evhttp_request *req, const char *body, size_t n,
                   struct err *err) {
    struct evhttp_connection *connection = evhttp_request_get_connection(req);
    struct bufferevent *b = evhttp_connection_get_bufferevent(connection);
    ARENA_FINI struct arena arena = {0};
    struct lifeline_kept *k = mem_new(struct lifeline_kept);
    const struct json *j = json_parse(&arena, body, n, err);
    int rc = j ? read_claim(k, j, err) : -EINVAL;
    if (rc == 0 && evbuffer_get_length(bufferevent_get_input(b)) > 0)
        rc = err_say(err, -EINVAL, "lifeline: nothing may follow the request");
    if (rc == 0)
        rc = check_ends(bufferevent_getfd(b), j, err);
    if (rc < 0) {
        free(k);
        return rc;
    }
    k->all = s;
    k->connection = connection;
    list_append(&s->list, &k->node);
    s->open++;
    /* From here on nobody reads but us: an error is told only once. */
    bufferevent_disable(b, EV_READ | EV_WRITE);
    bufferevent_set_timeouts(b, NULL, NULL);
    crowd_on_close(s->crowd, connection, on_closed, k);
    k->end = loop_fd(s->loop, bufferevent_getfd(b), LOOP_READ, on_end, k);
    return 0;
}

void lifelines_put_request(struct buf *out, const char *run_id, const struct lifeline_claim *claim,
                           const struct lifeline_ends *ends, const char *token) {
    BUF_FINI struct buf body = {0}, shown = {0};
    struct json_writer w = {.out = &body};
    json_object(&w, NULL);
    json_put_string(&w, "run_id", run_id);
    json_put_string(&w, "inc", claim->inc);
    json_put_string(&w, "uid", claim->uid);
    json_put_i64(&w, "revision", claim->revision);
    json_put_string(&w, "from", ends->from);
    json_put_string(&w, "to", ends->to);
    json_end_object(&w);
    struct http_request r = {.method = "POST", .body = &body, .type = HTTP_JSON};
    http_put_bearer(&shown, token);
    http_put_request(out, &r, ends->to, LIFELINE_PATH, buf_str(&shown));
}
