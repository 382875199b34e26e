#include "harness/observe/gateway.h"

#include "base/http/http.h"

#include <errno.h>
#include <stdlib.h>

enum { WAIT_MS = 2000, ANSWER_MAX = 4 << 20 };

const struct json *gateway_ask(struct arena *a, const char *addr, uint16_t port, const char *path,
                               const char *question, struct err *err) {
    BUF_FINI struct buf json = {0}, answer = {0};
    struct err why = {0};
    const struct json *ret = NULL;
    buf_puts(&json, question);
    struct http_question q = {
        .way = {.token = getenv("RANKRUN_STORE_TOKEN")},
        .request = {.method = "POST",
                    .url = arena_printf(a, "http://%s:%u%s", addr, port, path),
                    .body = &json,
                    .type = HTTP_JSON,
                    .timeout_ms = WAIT_MS},
        .silence_ms = WAIT_MS,
        .bytes_max = ANSWER_MAX,
    };
    int r = http_ask(&q, &answer, &why);
    if (r == -EPROTO)
        err_say(err, r, "%s: %.200s", why.msg, buf_str(&answer));
    else if (r)
        *err = why;
    else if (!(ret = json_parse(a, buf_str(&answer), answer.len, &why)))
        err_say(err, -EPROTO, "its answer is no JSON: %s", why.msg);
    return ret;
}
