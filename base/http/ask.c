/* One question, on a loop of its own. */
#include "base/http/http.h"
#include "base/str.h"
#include "base/sys/clock.h"

#include <errno.h>

enum { HTTP_OK = 200 };

struct asking {
    const struct http_question *question;
    struct loop *loop;
    struct loop_source *silence;
    struct buf *body;
    size_t before; /* what was in body */
    bool ended;
    int code; /* why nothing more is to be heard; 0: it has ended by itself */
    long status;
    char error[sizeof(((struct err *)NULL)->msg)];
};

/* What comes first counts. */
static bool stop(struct asking *a, int code) {
    bool first = !a->ended;
    a->code = first ? code : a->code;
    a->ended = true;
    loop_stop(a->loop);
    return first;
}

static void hear_within(struct asking *a, int64_t ms) {
    if (a->question->silence_ms)
        loop_timer_at(a->silence, clock_monotonic_ns() + ms * 1000000);
}

static void on_silence(void *arg, int64_t now_ns) {
    stop(arg, -EAGAIN);
}

static void on_data(void *arg, const char *p, size_t n) {
    struct asking *a = arg;
    hear_within(a, a->question->silence_ms);
    if (a->body->len - a->before + n > a->question->bytes_max)
        stop(a, -EMSGSIZE);
    else
        buf_put(a->body, p, n);
    if (!a->ended && a->question->enough && a->question->enough(a->body) && stop(a, 0))
        a->status = HTTP_OK;
}

static void on_done(void *arg, long status, const struct buf *body, const char *error) {
    struct asking *a = arg;
    if (!stop(a, 0))
        return;
    a->status = status;
    str_copy(a->error, sizeof(a->error), error);
}

static int tell(const struct asking *a, struct err *err) {
    const struct http_question *q = a->question;
    if (a->code == -EMSGSIZE)
        return err_say(err, a->code, "it answered with more than %zu MB", q->bytes_max >> 20);
    if (a->code)
        return err_say(err, a->code, "connected, but no whole answer within %d s",
                       (int)(q->silence_ms / 1000));
    if (!a->status)
        return err_say(err, -EIO, "%s: %s",
                       a->body->len > a->before ? "its answer broke off" : "no answer", a->error);
    if (a->status < 200 || a->status > 299)
        return err_say(err, -EPROTO, "it answered with HTTP status %ld", a->status);
    return 0;
}

int http_ask(const struct http_question *q, struct buf *ret, struct err *err) {
    struct http_way way = q->way;
    struct http_request r = q->request;
    struct asking a = {.question = q, .body = ret, .before = ret->len};
    struct http *h = NULL;
    way.https = str_starts(r.url, "https://");
    r.on_data = on_data;
    a.loop = loop_new(err);
    if (a.loop && (h = http_new(a.loop, &way, err))) {
        a.silence = loop_timer(a.loop, on_silence, &a);
        http_send(h, &r, on_done, &a);
        hear_within(&a, r.timeout_ms + q->silence_ms);
        loop_run(a.loop, err);
    }
    int code = h ? tell(&a, err) : err->code;
    http_free(h);
    loop_source_free(a.silence);
    loop_free(a.loop);
    return code;
}
