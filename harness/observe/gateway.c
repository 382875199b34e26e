#include "harness/observe/gateway.h"

#include "base/http/http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 2000, ANSWER_MAX = 4 << 20 };

static struct http_question question_of(struct arena *a, const char *addr, uint16_t port,
                                        const char *path, const struct buf *json) {
    return (struct http_question){
        .way = {.token = getenv("RANKRUN_STORE_TOKEN")},
        .request = {.method = "POST",
                    .url = arena_printf(a, "http://%s:%u%s", addr, port, path),
                    .body = json,
                    .type = HTTP_JSON,
                    .timeout_ms = WAIT_MS},
        .silence_ms = WAIT_MS,
        .bytes_max = ANSWER_MAX,
    };
}

const struct json *gateway_ask(struct arena *a, const char *addr, uint16_t port, const char *path,
                               const char *question, struct err *err) {
    BUF_FINI struct buf json = {0}, answer = {0};
    struct err why = {0};
    const struct json *ret = NULL;
    buf_puts(&json, question);
    struct http_question q = question_of(a, addr, port, path, &json);
    int r = http_ask(&q, &answer, &why);
    if (r == -EPROTO)
        err_say(err, r, "%s: %.200s", why.msg, buf_str(&answer));
    else if (r)
        *err = why;
    else if (!(ret = json_parse(a, buf_str(&answer), answer.len, &why)))
        err_say(err, -EPROTO, "its answer is no JSON: %s", why.msg);
    return ret;
}

/* Every line is an answer of its own; the first only says that the watch is there. */
static bool has_news(const struct buf *lines) {
    return strstr(buf_str(lines), "\"events\"") || strstr(buf_str(lines), "\"canceled\"");
}

int gateway_watch_first(struct arena *a, const char *addr, uint16_t port, int64_t revision,
                        bool *ret_compacted, struct err *err) {
    BUF_FINI struct buf json = {0}, lines = {0};
    buf_printf(&json,
               "{\"create_request\":{\"key\":\"AA==\",\"range_end\":\"AA==\",\"start_revision\":"
               "\"%" PRId64 "\"}}",
               revision);
    struct http_question q = question_of(a, addr, port, "/v3/watch", &json);
    struct err why = {0};
    q.enough = has_news;
    int r = http_ask(&q, &lines, &why);
    if (r || !has_news(&lines))
        return err_say(err, r ? r : -EPROTO, "watch from revision %" PRId64 ": %s %.120s", revision,
                       why.msg, buf_str(&lines));
    *ret_compacted = strstr(buf_str(&lines), "\"compact_revision\"");
    return 0;
}
