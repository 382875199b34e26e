#include "agent/store/gateway.h"

#include "base/json.h"
#include "base/base64.h"

const char *const gateway_targets[] = {"VERSION", "CREATE", "MOD", "VALUE", "LEASE"};
const char *const gateway_target_fields[] = {"version", "create_revision", "mod_revision", "value",
                                             "lease"};
const char *const gateway_relations[] = {"EQUAL", "GREATER", "LESS", "NOT_EQUAL"};
const char *const gateway_requests[] = {"request_range", "request_put", "request_delete_range"};
const char *const gateway_responses[] = {"response_range", "response_put", "response_delete_range"};
const char *const gateway_lists[] = {"kvs", NULL, "prev_kvs"};

/* ---- writing. Base64 and numbers need no escaping, so the text is put together by hand. ---- */

/* A field goes in only when it is not zero; *sep is what stands before the next one. */
static void put_key(struct buf *out, const char **sep, const char *name) {
    buf_puts(out, *sep);
    buf_putc(out, '"');
    buf_puts(out, name);
    buf_puts(out, "\":");
    *sep = ",";
}

static void put_bytes(struct buf *out, const char **sep, const char *name, struct kv_bytes b) {
    if (!b.len)
        return;
    put_key(out, sep, name);
    buf_putc(out, '"');
    base64_put(out, b.data, b.len);
    buf_putc(out, '"');
}

static void put_i64(struct buf *out, const char **sep, const char *name, int64_t v) {
    if (!v)
        return;
    put_key(out, sep, name);
    buf_printf(out, "\"%lld\"", (long long)v);
}

static void put_true(struct buf *out, const char **sep, const char *name, bool v) {
    if (!v)
        return;
    put_key(out, sep, name);
    buf_puts(out, "true");
}

static void put_pair(struct buf *out, const struct kv_pair *p) {
    const char *sep = "{";
    put_bytes(out, &sep, "key", p->key);
    put_i64(out, &sep, "create_revision", p->create_revision);
    put_i64(out, &sep, "mod_revision", p->mod_revision);
    put_i64(out, &sep, "version", p->version);
    put_bytes(out, &sep, "value", p->value);
    put_i64(out, &sep, "lease", p->lease);
    buf_puts(out, *sep == '{' ? "{}" : "}");
}

static void put_compare(struct buf *out, const struct kv_compare *c) {
    const char *sep = ",";
    buf_printf(out, "{\"target\":\"%s\",\"result\":\"%s\"", gateway_targets[c->target],
               gateway_relations[c->relation]);
    put_bytes(out, &sep, "key", c->key);
    put_bytes(out, &sep, "range_end", c->range_end);
    if (c->target == KV_VALUE) {
        put_key(out, &sep, "value");
        buf_putc(out, '"');
        base64_put(out, c->value.data, c->value.len);
        buf_putc(out, '"');
    } else { /* also when it is zero: which field is there says what is compared */
        put_key(out, &sep, gateway_target_fields[c->target]);
        buf_printf(out, "\"%lld\"", (long long)c->number);
    }
    buf_putc(out, '}');
}

static void put_op(struct buf *out, const struct kv_op *op) {
    const char *sep = "";
    buf_printf(out, "{\"%s\":{", gateway_requests[op->kind]);
    put_bytes(out, &sep, "key", op->key);
    put_bytes(out, &sep, "range_end", op->range_end);
    put_bytes(out, &sep, "value", op->value);
    put_i64(out, &sep, "lease", op->lease);
    put_i64(out, &sep, "limit", op->limit);
    put_i64(out, &sep, "revision", op->revision);
    put_true(out, &sep, "keys_only", op->keys_only);
    put_true(out, &sep, "count_only", op->count_only);
    put_true(out, &sep, "prev_kv", op->prev_kv);
    buf_puts(out, "}}");
}

static void put_ops(struct buf *out, const char **sep, const char *name, const struct kv_op *ops,
                    size_t n) {
    if (!n)
        return;
    put_key(out, sep, name);
    for (size_t i = 0; i < n; i++) {
        buf_putc(out, i ? ',' : '[');
        put_op(out, &ops[i]);
    }
    buf_putc(out, ']');
}

void gateway_put_txn(struct buf *out, const struct kv_txn *txn) {
    const char *sep = "";
    buf_putc(out, '{');
    if (txn->n_compares)
        put_key(out, &sep, "compare");
    for (size_t i = 0; i < txn->n_compares; i++) {
        buf_putc(out, i ? ',' : '[');
        put_compare(out, &txn->compares[i]);
    }
    if (txn->n_compares)
        buf_putc(out, ']');
    put_ops(out, &sep, "success", txn->success, txn->n_success);
    put_ops(out, &sep, "failure", txn->failure, txn->n_failure);
    buf_putc(out, '}');
}

static void put_header_field(struct buf *out, int64_t revision) {
    buf_printf(out, "\"header\":{\"revision\":\"%lld\"}", (long long)revision);
}

/* ---- answers, piece by piece: what is read slowly is not written at once ---- */

/* Up to the first pair. */
static void begin_result(struct buf *out, const struct kv_op_result *r, int64_t revision,
                         const char **sep) {
    put_header_field(out, revision);
    if (!r->n_pairs)
        return;
    put_key(out, sep, r->kind == KV_PUT ? "prev_kv" : gateway_lists[r->kind]);
    if (r->kind != KV_PUT)
        buf_putc(out, '[');
}

static void end_result(struct buf *out, const struct kv_op_result *r) {
    const char *sep = ",";
    if (r->kind == KV_PUT)
        return;
    if (r->n_pairs)
        buf_putc(out, ']');
    put_true(out, &sep, "more", r->more);
    put_i64(out, &sep, r->kind == KV_RANGE ? "count" : "deleted", r->count);
}

/* The inside of one answer, without its braces. False: it is full before the end. */
static bool put_result_fields(struct buf *out, const struct gateway_answer *a,
                              const struct kv_op_result *r, size_t *pair, size_t max) {
    const char *sep = ",";
    if (!*pair)
        begin_result(out, r, a->result.revision, &sep);
    while (*pair < r->n_pairs) {
        if (*pair && out->len >= max)
            return false;
        struct kv_pair p = kv_result_pair(r, *pair);
        if ((*pair)++)
            buf_putc(out, ',');
        put_pair(out, &p);
    }
    end_result(out, r);
    *pair = 0;
    return true;
}

static void begin_txn(struct buf *out, const struct kv_txn_result *r) {
    const char *sep = ",";
    buf_putc(out, '{');
    put_header_field(out, r->revision);
    put_true(out, &sep, "succeeded", r->succeeded);
    if (r->n_results)
        put_key(out, &sep, "responses");
}

static bool put_txn_some(struct buf *out, struct gateway_answer *a, size_t max) {
    const struct kv_txn_result *r = &a->result;
    if (!a->begun)
        begin_txn(out, r);
    a->begun = true;
    for (; a->at < r->n_results; a->at++) {
        const struct kv_op_result *one = &r->results[a->at];
        if (!a->pair)
            buf_printf(out, "%s{\"%s\":{", a->at ? "," : "[", gateway_responses[one->kind]);
        if (!put_result_fields(out, a, one, &a->pair, max))
            return false;
        buf_puts(out, "}}");
    }
    buf_puts(out, r->n_results ? "]}" : "}");
    return true;
}

bool gateway_put_some(struct buf *out, struct gateway_answer *a, size_t max) {
    if (!a->lone)
        return put_txn_some(out, a, max);
    if (!a->begun)
        buf_putc(out, '{');
    a->begun = true;
    if (!put_result_fields(out, a, a->result.results, &a->pair, max))
        return false;
    buf_putc(out, '}');
    return true;
}

void gateway_put_watch(struct buf *out, const struct gateway_watch *w) {
    const char *sep = "";
    buf_puts(out, "{\"create_request\":{");
    put_bytes(out, &sep, "key", w->key);
    put_bytes(out, &sep, "range_end", w->range_end);
    put_i64(out, &sep, "start_revision", w->start_revision);
    buf_puts(out, "}}");
}

void gateway_put_line(struct buf *out, const struct gateway_line *line) {
    const char *sep = ",";
    buf_puts(out, "{\"result\":{");
    put_header_field(out, line->revision);
    put_true(out, &sep, "created", line->created);
    put_true(out, &sep, "canceled", line->canceled);
    put_i64(out, &sep, "compact_revision", line->compact_revision);
    if (line->n_events)
        put_key(out, &sep, "events");
    for (size_t i = 0; i < line->n_events; i++) {
        buf_puts(out, i ? "," : "[");
        buf_puts(out, line->events[i].deleted ? "{\"type\":\"DELETE\",\"kv\":" : "{\"kv\":");
        put_pair(out, &line->events[i].pair);
        buf_putc(out, '}');
    }
    buf_puts(out, line->n_events ? "]}}\n" : "}}\n");
}

void gateway_put_lease(struct buf *out, const struct gateway_lease *l) {
    const char *sep = "";
    buf_putc(out, '{');
    put_i64(out, &sep, "ID", l->id);
    put_i64(out, &sep, "TTL", l->ttl_s);
    buf_putc(out, '}');
}

void gateway_put_lease_answer(struct buf *out, const struct gateway_lease *l, int64_t revision,
                              bool stream) {
    const char *sep = ",";
    buf_puts(out, stream ? "{\"result\":{" : "{");
    put_header_field(out, revision);
    put_i64(out, &sep, "ID", l->id);
    put_i64(out, &sep, "TTL", l->ttl_s);
    buf_puts(out, stream ? "}}\n" : "}");
}

void gateway_put_header(struct buf *out, int64_t revision) {
    buf_putc(out, '{');
    put_header_field(out, revision);
    buf_putc(out, '}');
}

void gateway_put_error(struct buf *out, int code, const char *message) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_string(&w, "error", message);
    json_put_i64(&w, "code", code);
    json_put_string(&w, "message", message);
    json_end_object(&w);
}
