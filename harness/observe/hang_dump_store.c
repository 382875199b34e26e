/* Writes down every key of a run's store. */
#include "harness/observe/hang_dump.h"

#include "base/base64.h"
#include "harness/observe/gateway.h"

#include <string.h>

static void put_base64(struct buf *out, const char *text) {
    BUF_FINI struct buf plain = {0};
    base64_take(&plain, text, strlen(text));
    for (size_t i = 0; i < plain.len; i++)
        buf_putc(out, plain.data[i] >= ' ' && plain.data[i] < 127 ? plain.data[i] : '.');
}

static void put_keys(const struct json *answer, struct buf *out) {
    const struct json *keys = json_get(answer, "kvs");
    buf_printf(out, "revision %lld\n",
               (long long)json_get_i64(json_get(answer, "header"), "revision", 0));
    json_each(it, keys) {
        put_base64(out, json_get_string(it, "key", ""));
        buf_printf(out, "  (changed in %lld%s)\n    ",
                   (long long)json_get_i64(it, "mod_revision", 0),
                   json_get_i64(it, "lease", 0) ? ", leased" : "");
        put_base64(out, json_get_string(it, "value", ""));
        buf_putc(out, '\n');
    }
    if (!json_first(keys))
        buf_puts(out, "it holds no keys\n");
}

/* All keys. */
void hang_dump_store(const char *addr, uint16_t port, struct buf *out) {
    static const char all[] = "{\"key\":\"AA==\",\"range_end\":\"AA==\"}";
    ARENA_FINI struct arena a = {0};
    struct err err = {0};
    const struct json *answer = gateway_ask(&a, addr, port, "/v3/kv/range", all, &err);
    if (answer)
        put_keys(answer, out);
    else
        buf_printf(out, "%s\n", err.msg);
}
