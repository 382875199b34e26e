#include "faults/store/store_request.h"

#include "base/http/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 2000, ANSWER_MAX = 4 << 20 };

int store_request(const struct target *t, const char *path, const char *body, struct buf *ret,
                  struct err *err) {
    BUF_FINI struct buf json = {0};
    struct err why = {0};
    char url[160];
    snprintf(url, sizeof(url), "http://%s:%d%s", t->store.address, t->store.port, path);
    buf_puts(&json, body);
    const struct http_question q = {
        .way = {.token = *t->store.token ? t->store.token : NULL},
        .request =
            {.method = "POST", .url = url, .body = &json, .type = HTTP_JSON, .timeout_ms = WAIT_MS},
        .silence_ms = WAIT_MS,
        .bytes_max = ANSWER_MAX,
    };
    if (!t->store.port)
        return err_say(err, -EDESTADDRREQ, "%s: nobody said where its store is", t->name);
    int r = http_ask(&q, ret, &why);
    if (r == -EPROTO)
        return err_say(err, r, "%s: %s: %.120s", t->name, path, buf_str(ret));
    return r ? err_say(err, r, "%s: %s: %s", t->name, path, why.msg) : 0;
}

int store_request_unless(const struct target *t, const char *path, const char *body,
                         const char *words, struct err *err) {
    BUF_FINI struct buf answer = {0};
    int r = store_request(t, path, body, &answer, err);
    return r == -EPROTO && strstr(buf_str(&answer), words) ? 0 : r;
}
