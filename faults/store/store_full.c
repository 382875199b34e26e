/* Fills the database of an etcd until it takes no more, and empties it again. */
#include "faults/arguments.h"

#include "base/base64.h"
#include "base/json.h"
#include "faults/store/store_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Values of 512 KiB; keys behind this prefix, and before the next one, are ours. */
static const char prefix[] = "/rankquake/full/", behind[] = "/rankquake/full0";
enum { VALUE_BYTES = 512 << 10, MIB_VALUES = (1 << 20) / VALUE_BYTES };

static int check(const struct fault_args *a, struct err *err) {
    int64_t most;
    return fault_count(a, "most", "64", 1, 8192, &most, err);
}

static int suits(const struct fault_args *a, const struct fault_store *store, struct err *err) {
    if (!store->etcd)
        return err_say(err, -EINVAL,
                       "store-full: rankrun's store has no database that could be "
                       "full; take cluster: {store: etcd, store_quota_mb: 16}");
    if (!store->quota_bytes)
        return err_say(err, -EINVAL,
                       "store-full: an etcd is full at 2 GiB unless the scenario "
                       "says less; write cluster: {store_quota_mb: 16}");
    return 0;
}

static void put_key(struct buf *out, const char *name, const char *key) {
    buf_printf(out, "\"%s\":\"", name);
    base64_put(out, key, strlen(key));
    buf_puts(out, "\"");
}

/* 1: it is full. */
static int put_value(const struct target *t, int64_t i, const struct buf *value, struct err *err) {
    BUF_FINI struct buf body = {0}, answer = {0};
    char key[sizeof(prefix) + 24];
    snprintf(key, sizeof(key), "%s%" PRId64, prefix, i);
    buf_puts(&body, "{");
    put_key(&body, "key", key);
    buf_printf(&body, ",\"value\":\"%s\"}", buf_str(value));
    int r = store_request(t, "/v3/kv/put", buf_str(&body), &answer, err);
    return r == -EPROTO && strstr(buf_str(&answer), "space exceeded") ? 1 : r;
}

/* One that is not full when `most` is written is left so: then nothing shows that it was. */
static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    BUF_FINI struct buf value = {0}, plain = {0};
    int64_t most;
    int r = fault_count(a, "most", "64", 1, 8192, &most, err);
    for (size_t i = 0; i < VALUE_BYTES; i++)
        buf_putc(&plain, (char)(i * 31 >> 3));
    base64_put(&value, plain.data, plain.len);
    for (int64_t i = 0; r == 0 && i < most * MIB_VALUES; i++)
        r = put_value(t, i, &value, err);
    return r < 0 ? r : 0;
}

static int remove_values(const struct target *t, int64_t *ret_revision, struct err *err) {
    ARENA_FINI struct arena arena = {0};
    BUF_FINI struct buf body = {0}, answer = {0};
    buf_puts(&body, "{");
    put_key(&body, "key", prefix);
    buf_puts(&body, ",");
    put_key(&body, "range_end", behind);
    buf_puts(&body, "}");
    int r = store_request(t, "/v3/kv/deleterange", buf_str(&body), &answer, err);
    const struct json *j = json_parse(&arena, buf_str(&answer), answer.len, NULL);
    *ret_revision = json_get_i64(json_get(j, "header"), "revision", 0);
    return r;
}

/* An alarm is its member's; ids are numbers without a sign, and travel as text. */
static int disarm(const struct target *t, struct err *err) {
    static const char list[] = "{\"action\":\"GET\"}";
    ARENA_FINI struct arena arena = {0};
    BUF_FINI struct buf answer = {0}, done = {0};
    int r = store_request(t, "/v3/maintenance/alarm", list, &answer, err);
    const struct json *j = r ? NULL : json_parse(&arena, buf_str(&answer), answer.len, NULL);
    json_each(it, json_get(j, "alarms")) {
        const char *off = arena_printf(
            &arena, "{\"action\":\"DEACTIVATE\",\"memberID\":\"%s\",\"alarm\":\"NOSPACE\"}",
            json_get_string(it, "memberID", "0"));
        buf_clear(&done);
        r = r ? r : store_request(t, "/v3/maintenance/alarm", off, &done, err);
    }
    return r;
}

/* As etcd's manual says: delete, compact, defragment, disarm. Every member does its own part. */
static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    BUF_FINI struct buf answer = {0};
    char body[80];
    int64_t revision;
    int r = remove_values(t, &revision, err);
    snprintf(body, sizeof(body), "{\"revision\":\"%" PRId64 "\",\"physical\":true}", revision);
    r = r ? r : store_request_unless(t, "/v3/kv/compaction", body, "compacted", err);
    r = r ? r : store_request(t, "/v3/maintenance/defragment", "{}", &answer, err);
    return r ? r : disarm(t, err);
}

const struct fault fault_store_full = {
    .name = "store-full",
    .summary = "the database of an etcd is full: it answers, and refuses to write (NOSPACE)",
    .effects = EFFECT_HINDERS_STORE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_STORE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(store_alarm),
    .params =
        (const struct fault_param[]){
            {"most", "int", "64", "how many MiB are written at most until it is full"}, {0}},
    .undo = "what was written is deleted, the history compacted, the database defragmented and the "
            "alarm disarmed",
    .blast = "no agent can write: neither a beat nor a new round, until it is undone",
    .example = "{when: {step: 20}, fault: store-full, on: store, for: 1s}",
    .check = check,
    .suits = suits,
    .inject = inject,
    .recover = recover,
};
