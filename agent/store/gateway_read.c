/* The reading half of gateway.h. What arrives may come from anybody: every field is tested, and
 * what is absent is zero. */
#include "base/json.h"
#include "base/base64.h"
#include "agent/store/gateway.h"

#include <errno.h>
#include <string.h>

struct gateway_read_reader {
    struct arena *arena;
    struct err *err;
    bool failed;
};

/* The first reason is kept. */
static int refuse(struct gateway_read_reader *r, const char *what) {
    if (!r->failed)
        err_say(r->err, -EPROTO, "%s", what);
    r->failed = true;
    return -EPROTO;
}

static const struct json *parse(struct gateway_read_reader *r, const char *text, size_t n) {
    const struct json *j = json_parse(r->arena, text, n, r->err);
    r->failed = !j;
    if (j && j->type != JSON_OBJECT)
        refuse(r, "expected a JSON object");
    return r->failed ? NULL : j;
}

static struct kv_bytes take_bytes(struct gateway_read_reader *r, const struct json *object,
                                  const char *name) {
    const struct json *j = json_get(object, name);
    BUF_FINI struct buf b = {0};
    struct kv_bytes out = {"", 0};
    if (!j)
        return out;
    if (j->type != JSON_STRING || !base64_take(&b, j->string, j->length)) {
        refuse(r, "a key or value is not base64");
    } else if (b.len) {
        out.data = memcpy(arena_alloc(r->arena, b.len), b.data, b.len);
        out.len = b.len;
    }
    return out;
}

static int64_t take_i64(struct gateway_read_reader *r, const struct json *object,
                        const char *name) {
    const struct json *j = json_get(object, name);
    int64_t a = json_i64(j, 0), b = json_i64(j, 1);
    if (j && a != b)
        refuse(r, "a number is not an integer");
    return a;
}

static bool take_bool(const struct json *object, const char *name) {
    return json_get_bool(object, name, false);
}

/* An enum travels by its name or its number; absent is the first. */
static int take_enum(struct gateway_read_reader *r, const struct json *j, const char *const *names,
                     int n) {
    const char *name = json_string(j, NULL);
    if (!j)
        return 0;
    for (int i = 0; i < n; i++)
        if (name ? strcmp(name, names[i]) == 0 : json_i64(j, -1) == i)
            return i;
    return refuse(r, "a compare has an unknown target or result"), 0;
}

static void take_pair(struct gateway_read_reader *r, const struct json *j, struct kv_pair *ret) {
    ret->key = take_bytes(r, j, "key");
    ret->value = take_bytes(r, j, "value");
    ret->create_revision = take_i64(r, j, "create_revision");
    ret->mod_revision = take_i64(r, j, "mod_revision");
    ret->version = take_i64(r, j, "version");
    ret->lease = take_i64(r, j, "lease");
}

/* ---- requests ---- */

static void take_compare(struct gateway_read_reader *r, const struct json *j,
                         struct kv_compare *ret) {
    ret->target = (enum kv_target)take_enum(r, json_get(j, "target"), gateway_targets, 5);
    ret->relation = (enum kv_relation)take_enum(r, json_get(j, "result"), gateway_relations, 4);
    ret->key = take_bytes(r, j, "key");
    ret->range_end = take_bytes(r, j, "range_end");
    if (ret->target == KV_VALUE)
        ret->value = take_bytes(r, j, "value");
    else
        ret->number = take_i64(r, j, gateway_target_fields[ret->target]);
}

static void take_op(struct gateway_read_reader *r, const struct json *j, enum kv_op_kind kind,
                    struct kv_op *ret) {
    *ret = (struct kv_op){.kind = kind};
    ret->key = take_bytes(r, j, "key");
    ret->range_end = take_bytes(r, j, "range_end");
    ret->value = take_bytes(r, j, "value");
    ret->lease = take_i64(r, j, "lease");
    ret->limit = take_i64(r, j, "limit");
    ret->revision = take_i64(r, j, "revision");
    ret->keys_only = take_bool(j, "keys_only");
    ret->count_only = take_bool(j, "count_only");
    ret->prev_kv = take_bool(j, "prev_kv");
}

static void take_ops(struct gateway_read_reader *r, const struct json *list,
                     const struct kv_op **ret, size_t *ret_n) {
    size_t n = 0;
    struct kv_op *ops = arena_array(r->arena, struct kv_op, (list ? list->length : 0) + 1);
    json_each(it, list) {
        int kind = 0;
        while (kind < 3 && !json_get(it, gateway_requests[kind]))
            kind++;
        if (kind == 3)
            refuse(r, "an operation of a transaction is neither range, put nor delete_range");
        else
            take_op(r, json_get(it, gateway_requests[kind]), (enum kv_op_kind)kind, &ops[n++]);
    }
    *ret = ops;
    *ret_n = n;
}

int gateway_take_txn(struct arena *a, const char *text, size_t n, struct kv_txn *ret,
                     struct err *err) {
    struct gateway_read_reader r = {.arena = a, .err = err};
    const struct json *j = parse(&r, text, n), *list = json_get(j, "compare");
    struct kv_compare *compares = arena_array(a, struct kv_compare, (list ? list->length : 0) + 1);
    struct kv_txn txn = {.compares = compares};
    json_each(it, list) take_compare(&r, it, &compares[txn.n_compares++]);
    take_ops(&r, json_get(j, "success"), &txn.success, &txn.n_success);
    take_ops(&r, json_get(j, "failure"), &txn.failure, &txn.n_failure);
    if (r.failed)
        return -EPROTO;
    *ret = txn;
    return 0;
}

int gateway_take_op(struct arena *a, const char *text, size_t n, enum kv_op_kind kind,
                    struct kv_op *ret, struct err *err) {
    struct gateway_read_reader r = {.arena = a, .err = err};
    const struct json *j = parse(&r, text, n);
    struct kv_op op;
    take_op(&r, j, kind, &op);
    if (r.failed)
        return -EPROTO;
    *ret = op;
    return 0;
}

int gateway_take_watch(struct arena *a, const char *text, size_t n, struct gateway_watch *ret,
                       struct err *err) {
    struct gateway_read_reader r = {.arena = a, .err = err};
    const struct json *j = json_get(parse(&r, text, n), "create_request");
    if (!j)
        refuse(&r, "expected a create_request");
    struct gateway_watch w = {.key = take_bytes(&r, j, "key"),
                              .range_end = take_bytes(&r, j, "range_end"),
                              .start_revision = take_i64(&r, j, "start_revision")};
    if (r.failed)
        return -EPROTO;
    if (!w.key.len)
        w.key = (struct kv_bytes){"\0", 1}; /* the smallest, as etcd has it */
    *ret = w;
    return 0;
}

static int take_lease(struct gateway_read_reader *r, const struct json *j,
                      struct gateway_lease *ret) {
    struct gateway_lease l = {.id = take_i64(r, j, "ID"), .ttl_s = take_i64(r, j, "TTL")};
    if (r->failed)
        return -EPROTO;
    *ret = l;
    return 0;
}

int gateway_take_lease(struct arena *a, const char *text, size_t n, struct gateway_lease *ret,
                       struct err *err) {
    struct gateway_read_reader r = {.arena = a, .err = err};
    return take_lease(&r, parse(&r, text, n), ret);
}

/* ---- answers ---- */

int gateway_take_lease_answer(struct arena *a, const char *text, size_t n,
                              struct gateway_lease *ret, struct err *err) {
    struct gateway_read_reader r = {.arena = a, .err = err};
    const struct json *j = parse(&r, text, n), *wrapped = json_get(j, "result");
    return take_lease(&r, wrapped ? wrapped : j, ret);
}

static void take_result(struct gateway_read_reader *r, const struct json *response,
                        struct kv_op_result *ret) {
    static const char *const counts[] = {"count", NULL, "deleted"};
    int kind = 0;
    while (kind < 3 && !json_get(response, gateway_responses[kind]))
        kind++;
    if (kind == 3) {
        refuse(r, "an answer is neither that of a range, a put nor a delete_range");
        return;
    }
    const struct json *j = json_get(response, gateway_responses[kind]);
    const struct json *list = gateway_lists[kind] ? json_get(j, gateway_lists[kind]) : NULL;
    ret->kind = (enum kv_op_kind)kind;
    ret->pairs = arena_array(r->arena, struct kv_pair, (list ? list->length : 0) + 1);
    json_each(it, list) take_pair(r, it, &ret->pairs[ret->n_pairs++]);
    if (kind == KV_PUT && json_get(j, "prev_kv"))
        take_pair(r, json_get(j, "prev_kv"), &ret->pairs[ret->n_pairs++]);
    ret->more = take_bool(j, "more");
    ret->count = counts[kind] ? take_i64(r, j, counts[kind]) : 0;
}

static int64_t take_revision(struct gateway_read_reader *r, const struct json *j) {
    return take_i64(r, json_get(j, "header"), "revision");
}

int gateway_take_txn_result(struct arena *a, const char *text, size_t n, struct kv_txn_result *ret,
                            struct err *err) {
    struct gateway_read_reader r = {.arena = a, .err = err};
    const struct json *j = parse(&r, text, n), *list = json_get(j, "responses");
    struct kv_txn_result out = {.succeeded = take_bool(j, "succeeded"),
                                .revision = take_revision(&r, j)};
    out.results = arena_array(a, struct kv_op_result, (list ? list->length : 0) + 1);
    json_each(it, list) take_result(&r, it, &out.results[out.n_results++]);
    if (!json_get(j, "header"))
        refuse(&r, "the answer has no header: this is no etcd v3 store");
    if (r.failed)
        return -EPROTO;
    *ret = out;
    return 0;
}

int gateway_take_line(struct arena *a, const char *text, size_t n, struct gateway_line *ret,
                      struct err *err) {
    struct gateway_read_reader r = {.arena = a, .err = err};
    const struct json *line = parse(&r, text, n), *j = json_get(line, "result");
    const struct json *list = json_get(j, "events");
    struct gateway_line out = {.revision = take_revision(&r, j),
                               .created = take_bool(j, "created"),
                               .canceled = take_bool(j, "canceled"),
                               .compact_revision = take_i64(&r, j, "compact_revision")};
    if (!j)
        refuse(&r, "a line of the watch has no result");
    out.events = arena_array(a, struct kv_event, (list ? list->length : 0) + 1);
    json_each(it, list) {
        struct kv_event *e = &out.events[out.n_events++];
        const struct json *type = json_get(it, "type");
        e->deleted = strcmp(json_string(type, ""), "DELETE") == 0 || json_i64(type, 0) == 1;
        take_pair(&r, json_get(it, "kv"), &e->pair);
    }
    if (r.failed)
        return -EPROTO;
    *ret = out;
    return 0;
}

const char *gateway_take_error(struct arena *a, const char *text, size_t n) {
    const struct json *j = json_parse(a, text, n, NULL);
    const struct json *nested = json_get(j, "error"); /* a stream's error is an object */
    const char *message = json_get_string(j, "message", NULL);
    message = message ? message : json_string(nested, NULL);
    return message ? message : json_get_string(nested, "message", NULL);
}

const char *gateway_advise(struct arena *a, const char *text) {
    static const struct {
        const char *text, *advice;
    } advices[] = {
        {"database space exceeded", "etcd is full: compact, defrag and alarm disarm with etcdctl"},
        {"user name is empty", "give --rdzv-conf user=NAME,password_file=FILE"},
        {"invalid user ID or password", "these are of --rdzv-conf user and password"},
        {"permission denied", "the user of --rdzv-conf needs a role for the keys /rankrun/"},
        {"invalid auth token", "etcd took our token back"},
    };
    for (size_t i = 0; i < sizeof(advices) / sizeof(*advices); i++)
        if (strstr(text, advices[i].text))
            return arena_printf(a, "%s; %s", text, advices[i].advice);
    return text;
}

const char *gateway_describe_stranger(struct arena *a, long status, const struct buf *body) {
    int n = 0;
    while (n < 80 && (size_t)n < body->len && body->data[n] >= ' ' && body->data[n] < 0x7f)
        n++;
    return arena_printf(a, "HTTP status %ld%s%.*s: this is no answer of an etcd v3%s", status,
                        n ? ", " : "", n, n ? body->data : "",
                        status == 400 ? "; does it want --rdzv-conf protocol=https?" : "");
}

bool gateway_error_is_of_token(long status, const char *text) {
    return status == 401 || (text && (strstr(text, "invalid auth token") ||
                                      strstr(text, "user name is empty") || /* wants one now */
                                      strstr(text, "revision of auth store is old")));
}

/* 4xx: the store has judged the request, unless it wants TLS first (426); anything else that is no
 * answer leaves it open (an etcd without a leader says 503, or 500 when it gave up waiting for
 * one). An etcd that is full, or lets us do nothing, is as one that is away: asking again at once
 * would not help. */
bool gateway_error_is_final(long status, const char *text) {
    return text && status >= 400 && status < 500 && status != 401 && status != 403 &&
           status != 426 && status != 429 && !strstr(text, "user name is empty") &&
           !strstr(text, "database space exceeded");
}
