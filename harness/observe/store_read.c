#include "harness/observe/store_read.h"

#include "base/base64.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/observe/gateway.h"

#include <errno.h>
#include <inttypes.h>

static const struct json *ask(struct arena *a, const struct store_question *q, const char *path,
                              const char *body, struct err *err) {
    return gateway_ask(a, q->address, q->port, path, body, err);
}

/* All keys of the job, without their values. */
static const struct json *ask_keys(struct arena *a, const struct store_question *q,
                                   struct err *err) {
    BUF_FINI struct buf body = {0}, key = {0};
    buf_printf(&key, "/rankrun/%s/", q->run_id);
    buf_puts(&body, "{\"key\":\"");
    base64_put(&body, key.data, key.len);
    key.data[key.len - 1]++;
    buf_puts(&body, "\",\"range_end\":\"");
    base64_put(&body, key.data, key.len);
    buf_puts(&body, "\",\"keys_only\":true}");
    return ask(a, q, "/v3/kv/range", buf_str(&body), err);
}

/* Of several incarnations the newest key's. */
static int read_lease(struct arena *a, const struct store_question *q, int64_t *ret,
                      struct err *err) {
    const struct json *range = ask_keys(a, q, err);
    int64_t newest = -1;
    *ret = 0;
    json_each(it, json_get(range, "kvs")) {
        int64_t lease = json_get_i64(it, "lease", 0);
        int64_t revision = json_get_i64(it, "create_revision", 0);
        if (lease && revision > newest) {
            newest = revision;
            *ret = lease;
        }
    }
    return range ? 0 : err->code;
}

static int read_lease_keys(struct arena *a, const struct store_question *q, int64_t *ret,
                           struct err *err) {
    const struct json *range = ask_keys(a, q, err);
    *ret = 0;
    json_each(it, json_get(range, "kvs")) *ret += json_get_i64(it, "lease", 0) == q->number;
    return range ? 0 : err->code;
}

/* By a watch, as rankrun's store reads no revision but the newest. 1: it can be watched from there,
 * 0: what came since is compacted. */
static int is_kept(struct arena *a, const struct store_question *q, int64_t revision,
                   struct err *err) {
    bool compacted = false;
    int r = gateway_watch_first(a, q->address, q->port, revision, &compacted, err);
    return r ? r : !compacted;
}

static int read_revision(struct arena *a, const struct store_question *q, int64_t *ret,
                         struct err *err) {
    const struct json *j = ask(a, q, "/v3/kv/range", "{\"key\":\"AA==\"}", err);
    int64_t newest = json_get_i64(json_get(j, "header"), "revision", 0);
    if (!j)
        return err->code;
    int r = newest > 1 ? is_kept(a, q, newest - 1, err) : 0;
    *ret = r > 0 ? newest : 0;
    return r < 0 ? r : 0;
}

static int read_revision_gone(struct arena *a, const struct store_question *q, int64_t *ret,
                              struct err *err) {
    int r = q->number > 1 ? is_kept(a, q, q->number - 1, err) : 1;
    *ret = r == 0;
    return r < 0 ? r : 0;
}

static int read_alarms(struct arena *a, const struct store_question *q, int64_t *ret,
                       struct err *err) {
    const struct json *j = ask(a, q, "/v3/maintenance/alarm", "{\"action\":\"GET\"}", err);
    *ret = 0;
    json_each(it, json_get(j, "alarms")) *ret +=
        str_eq(json_get_string(it, "alarm", ""), "NOSPACE");
    return j ? 0 : err->code;
}

/* One question after the other, as long as one may stand still, and of each how long it took. */
static int read_slowest(struct arena *a, const struct store_question *q, int64_t *ret,
                        struct err *err) {
    static const int64_t for_ns = 1600000000;
    int64_t began_ns = clock_monotonic_ns(), asked_ns = began_ns;
    *ret = 0;
    while (*ret < q->number && asked_ns - began_ns < for_ns) {
        if (!ask(a, q, "/v3/kv/range", "{\"key\":\"AA==\"}", err))
            return err->code;
        int64_t now_ns = clock_monotonic_ns();
        *ret = now_ns - asked_ns > *ret ? now_ns - asked_ns : *ret;
        asked_ns = now_ns;
    }
    return 0;
}

int store_read_ask(const struct store_question *q, int64_t *ret, struct err *err) {
    static const struct {
        const char *word;
        int (*read)(struct arena *a, const struct store_question *q, int64_t *ret, struct err *err);
    } words[] = {{"lease", read_lease},       {"lease-keys", read_lease_keys},
                 {"revision", read_revision}, {"revision-gone", read_revision_gone},
                 {"alarms", read_alarms},     {"slowest", read_slowest}};
    ARENA_FINI struct arena a = {0};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (str_eq(q->word, words[i].word))
            return words[i].read(&a, q, ret, err);
    return err_say(err, -EINVAL, "%s is nothing that is read in a store", q->word);
}
