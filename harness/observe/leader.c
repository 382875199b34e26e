#include "harness/observe/leader.h"

#include "base/base64.h"
#include "base/str.h"
#include "harness/observe/gateway.h"

#include <errno.h>
#include <string.h>

/* ---- a job ---- */

/* The pair of this key; NULL: there is none. */
static const struct json *find(const struct json *range, const char *key) {
    BUF_FINI struct buf wanted = {0};
    const struct json *found = NULL;
    base64_put(&wanted, key, strlen(key));
    json_each(it, json_get(range, "kvs")) {
        if (!found && str_eq(json_get_string(it, "key", ""), buf_str(&wanted)))
            found = it;
    }
    return found;
}

/* A text in the value of a pair, which is an object; "" when it has none. */
static const char *text_of(struct arena *a, const struct json *pair, const char *name) {
    BUF_FINI struct buf plain = {0};
    const char *value = json_get_string(pair, "value", "");
    base64_take(&plain, value, strlen(value));
    return json_get_string(json_parse(a, buf_str(&plain), plain.len, NULL), name, "");
}

static int read_job(struct arena *a, const struct json *range, const char *run_id,
                    struct leader *ret, struct err *err) {
    struct leader found = {0};
    const char *job = arena_printf(a, "/rankrun/%s", run_id);
    const char *inc = text_of(a, find(range, arena_printf(a, "%s/cur", job)), "inc");
    if (!json_get(range, "header"))
        return err_say(err, -EPROTO, "that is not the answer of a store");
    if (!*inc)
        return err_say(err, -ENOENT, "the store knows no job %s", run_id);
    job = arena_printf(a, "%s/%s", job, inc);
    const struct json *lead = find(range, arena_printf(a, "%s/lead", job));
    const char *uid = text_of(a, lead, "uid");
    if (!*uid)
        return err_say(err, -ENOENT, "nobody coordinates the job %s", run_id);
    if (!find(range, arena_printf(a, "%s/s/%s", job, uid)) ||
        find(range, arena_printf(a, "%s/gone/%s", job, uid)))
        return err_say(err, -ENOENT,
                       "who coordinated the job %s is gone, and nobody has taken over", run_id);
    const struct json *member = find(range, arena_printf(a, "%s/m/%s", job, uid));
    if (!str_copy(found.name, sizeof(found.name), text_of(a, member, "addr")) || !*found.name)
        return err_say(err, -EPROTO, "the store does not say where the coordinator is");
    found.term = json_get_i64(lead, "mod_revision", 0);
    *ret = found;
    return 0;
}

int leader_of_job(const struct json *range, const char *run_id, struct leader *ret,
                  struct err *err) {
    ARENA_FINI struct arena a = {0};
    return read_job(&a, range, run_id, ret, err);
}

int leader_keys_of(const struct json *range, int64_t *ret, struct err *err) {
    int64_t n = 0;
    if (!json_get(range, "header"))
        return err_say(err, -EPROTO, "that is not the answer of a store");
    json_each(it, json_get(range, "kvs")) n += json_get(it, "key") != NULL;
    *ret = n;
    return 0;
}

/* ---- an etcd ---- */

/* Ids are 64 bits without a sign: they are compared as text. Absent is 0. */
int leader_of_members(const struct json *status, const struct json *list, struct leader *ret,
                      struct err *err) {
    const char *id = json_get_string(status, "leader", "0");
    struct leader found = {.term = json_get_i64(status, "raftTerm", 0)};
    if (!json_get(status, "header"))
        return err_say(err, -EPROTO, "that is not the answer of an etcd");
    if (str_eq(id, "0"))
        return err_say(err, -ENOENT, "it knows of no leader");
    json_each(it, json_get(list, "members")) {
        if (!str_eq(json_get_string(it, "ID", ""), id))
            continue;
        str_copy(found.name, sizeof(found.name), json_get_string(it, "name", ""));
        *ret = found;
        return 0;
    }
    return err_say(err, -EPROTO, "its leader %s is none of its members", id);
}

/* ---- asking ---- */

/* All keys of the job: at one moment. */
static void put_range(struct buf *out, const char *run_id) {
    struct buf key = {0};
    buf_printf(&key, "/rankrun/%s/", run_id);
    buf_puts(out, "{\"key\":\"");
    base64_put(out, key.data, key.len);
    key.data[key.len - 1]++;
    buf_puts(out, "\",\"range_end\":\"");
    base64_put(out, key.data, key.len);
    buf_puts(out, "\"}");
    buf_fini(&key);
}

static const struct json *ask_range(struct arena *a, const char *addr, uint16_t port,
                                    const char *run_id, struct err *err) {
    BUF_FINI struct buf question = {0};
    put_range(&question, run_id);
    return gateway_ask(a, addr, port, "/v3/kv/range", buf_str(&question), err);
}

int leader_ask_job(const char *addr, uint16_t port, const char *run_id, struct leader *ret,
                   struct err *err) {
    ARENA_FINI struct arena a = {0};
    const struct json *range = ask_range(&a, addr, port, run_id, err);
    return range ? leader_of_job(range, run_id, ret, err) : err->code;
}

int leader_ask_keys(const char *addr, uint16_t port, const char *run_id, int64_t *ret,
                    struct err *err) {
    ARENA_FINI struct arena a = {0};
    const struct json *range = ask_range(&a, addr, port, run_id, err);
    return range ? leader_keys_of(range, ret, err) : err->code;
}

int leader_ask_member(const char *addr, uint16_t port, struct leader *ret, struct err *err) {
    ARENA_FINI struct arena a = {0};
    const struct json *list = NULL,
                      *status = gateway_ask(&a, addr, port, "/v3/maintenance/status", "{}", err);
    if (status)
        list = gateway_ask(&a, addr, port, "/v3/cluster/member/list", "{}", err);
    return list ? leader_of_members(status, list, ret, err) : err->code;
}
