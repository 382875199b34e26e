#include "harness/observe/gateway.h"

#include "base/http/http.h"

#include <errno.h>
#include <stdlib.h>

enum { WAIT_MS = 2000, ANSWER_MAX = 4 << 20 };

int gateway_ask(const char *addr, uint16_t port, const char *path, const char *question,
                struct buf *ret, struct err *err) {
    struct buf url = {0}, json = {0}, answer = {0};
    buf_printf(&url, "http://%s:%u%s", addr, port, path);
    buf_puts(&json, question);
    struct http_question q = {.url = buf_str(&url),
                              .token = getenv("RANKRUN_STORE_TOKEN"),
                              .json = &json,
                              .connect_ms = WAIT_MS,
                              .silence_ms = WAIT_MS,
                              .bytes_max = ANSWER_MAX};
    int r = http_ask(&q, &answer, err);
    if (r == 0) {
        buf_put(ret, answer.data, answer.len);
    } else if (r == -EPROTO) {
        struct err status = *err;
        err_say(err, r, "%s: %.200s", status.msg, buf_str(&answer));
    }
    buf_fini(&url);
    buf_fini(&json);
    buf_fini(&answer);
    return r;
}
