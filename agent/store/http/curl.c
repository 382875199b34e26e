/* Requests by libcurl's multi interface, for its TLS. It may not be entered again from inside its
 * own callbacks. */
#include "agent/base/str.h"
#include "agent/store/access.h"
#include "agent/store/http/transport.h"
#include "agent/sys/clock.h"
#include "agent/sys/libcurl.h"
#include "agent/sys/tcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct libcurl *curl; /* NULL: not loaded yet */

struct curl_http {
    struct http http;
    CURLM *multi;
    struct loop_source *timer;
};

struct curl_call {
    struct http_call call;
    CURL *easy;
    struct curl_slist *headers;
    char error[CURL_ERROR_SIZE];
};

static struct curl_http *http_of(struct http *h) {
    return (struct curl_http *)(void *)h; /* the first member */
}

static struct curl_call *call_of(struct http_call *c) {
    return (struct curl_call *)(void *)c; /* the first member */
}

static int library_load(struct err *err) {
    struct err why = {0};
    curl = libcurl_load(&why);
    if (curl)
        return 0;
    return err_say(err, why.code, "%s; a store is reached by https through it", why.msg);
}

/* ---- ends ---- */

/* What to do about it, where it is about certificates. */
static const char *tls_hint(const struct http *h, CURLcode code) {
    const struct store_access *a = h->access;
    if (!a || !a->https)
        return a && code == CURLE_GOT_NOTHING ? HTTP_WANTS_TLS : "";
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return "; --rdzv-conf cacert= names the file of who signs the store's certificate";
    if (code == CURLE_SSL_CERTPROBLEM)
        return "; is --rdzv-conf cert=, key= a certificate and its key in PEM?";
    if (code == CURLE_SSL_CACERT_BADFILE)
        return "; is --rdzv-conf cacert= a file of certificates in PEM?";
    if (code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR || code == CURLE_SSL_CONNECT_ERROR ||
        code == CURLE_GOT_NOTHING)
        return a->cert ? "; does the store accept the certificate of --rdzv-conf cert=?"
                       : "; it may want a certificate: --rdzv-conf cert=, key=; or it has no TLS";
    return "";
}

/* libcurl's own sentence, and what the system said: it leaves that out. */
static void call_failed(struct curl_call *c, CURLcode code) {
    long system = 0;
    curl->curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &system);
    const char *said = c->error[0] ? c->error : curl->curl_easy_strerror(code);
    const char *hint = tls_hint(c->call.http, code);
    snprintf(c->call.error, sizeof(c->call.error), system ? "%s (%s)%s" : "%s%s%s", said,
             system ? strerror((int)system) : "", hint);
    http_call_end(&c->call, 0);
}

static void take_ended(struct curl_http *h) {
    int left;
    for (CURLMsg *m; (m = curl->curl_multi_info_read(h->multi, &left));) {
        struct curl_call *c = NULL;
        long status = 0;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl->curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c);
        curl->curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        if (m->data.result != CURLE_OK)
            call_failed(c, m->data.result);
        else
            http_call_end(&c->call, status);
    }
}

static void drive(struct curl_http *h, curl_socket_t fd, int what) {
    int running;
    curl->curl_multi_socket_action(h->multi, fd, what, &running);
    take_ended(h);
    http_tell(&h->http);
}

/* ---- what libcurl asks for ---- */

static void on_socket(void *arg, int fd, int what) {
    drive(arg, fd,
          (what & LOOP_READ ? CURL_CSELECT_IN : 0) | (what & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_timer(void *arg, int64_t now_ns) {
    (void)now_ns;
    drive(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg) {
    (void)easy;
    struct curl_http *h = arg;
    struct loop_source *s = socket_arg;
    int want = (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);
    if (what == CURL_POLL_REMOVE)
        s = loop_source_free(s);
    else if (s)
        loop_fd_set(s, want);
    else
        s = loop_fd(h->http.loop, fd, want, on_socket, h);
    curl->curl_multi_assign(h->multi, fd, s);
    return 0;
}

static int want_timer(CURLM *multi, long timeout_ms, void *arg) {
    (void)multi;
    struct curl_http *h = arg;
    if (timeout_ms < 0)
        loop_timer_off(h->timer);
    else
        loop_timer_at(h->timer, clock_monotonic_ns() + timeout_ms * 1000000);
    return 0;
}

static size_t take_body(char *p, size_t size, size_t n, void *arg) {
    (void)size; /* always 1 */
    return http_call_take(arg, p, n) ? n : 0;
}

static size_t take_header(char *p, size_t size, size_t n, void *arg) {
    (void)size; /* always 1 */
    http_call_take_header(arg, p, n);
    return n;
}

static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose) {
    (void)arg;
    if (purpose == CURLSOCKTYPE_IPCXN)
        tcp_bound_silence(fd, HTTP_SILENCE_S);
    return CURL_SOCKOPT_OK;
}

/* ---- the transport ---- */

static struct http *curl_open(struct loop *l, struct err *err) {
    if (library_load(err) < 0)
        return NULL;
    struct curl_http *h = calloc(1, sizeof(*h));
    if (!h)
        abort();
    h->timer = loop_timer(l, on_timer, h);
    h->multi = curl->curl_multi_init();
    if (!h->multi)
        abort();
    curl->curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl->curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    curl->curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl->curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    return &h->http;
}

static void curl_close(struct http *http) {
    struct curl_http *h = http_of(http);
    curl->curl_multi_cleanup(h->multi);
    loop_source_free(h->timer);
    free(h);
}

static struct http_call *curl_new_call(struct http *h) {
    struct curl_call *c = calloc(1, sizeof(*c));
    (void)h;
    if (!c)
        abort();
    c->easy = curl->curl_easy_init();
    if (!c->easy)
        abort();
    return &c->call;
}

static void curl_drop(struct http_call *call) {
    struct curl_call *c = call_of(call);
    curl->curl_multi_remove_handle(http_of(call->http)->multi, c->easy);
    curl->curl_easy_cleanup(c->easy);
    curl->curl_slist_free_all(c->headers);
    free(c);
}

static void call_set_tls(struct curl_call *c, const struct store_access *a) {
    if (!a || !a->https)
        return;
    if (a->cacert)
        curl->curl_easy_setopt(c->easy, CURLOPT_CAINFO, a->cacert);
    if (a->cert) {
        curl->curl_easy_setopt(c->easy, CURLOPT_SSLCERT, a->cert);
        curl->curl_easy_setopt(c->easy, CURLOPT_SSLKEY, a->key ? a->key : a->cert);
    }
}

static void add_header(struct curl_call *c, const char *name, const char *value) {
    struct buf line = {0};
    buf_printf(&line, "%s:%s%s", name, value[0] ? " " : "", value);
    c->headers = curl->curl_slist_append(c->headers, buf_str(&line));
    if (!c->headers)
        abort();
    buf_fini(&line);
}

static void call_set_body(struct curl_call *c, const struct http_letter *letter) {
    curl->curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE, (long)letter->body->len);
    curl->curl_easy_setopt(c->easy, CURLOPT_COPYPOSTFIELDS, buf_str(letter->body));
    add_header(c, "Content-Type", letter->type);
}

static void curl_send(struct http_call *call, const struct http_letter *letter) {
    struct curl_call *c = call_of(call);
    CURL *e = c->easy;
    curl->curl_easy_setopt(e, CURLOPT_PRIVATE, c);
    curl->curl_easy_setopt(e, CURLOPT_URL, letter->url);
    curl->curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    curl->curl_easy_setopt(e, CURLOPT_WRITEDATA, call);
    curl->curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header);
    curl->curl_easy_setopt(e, CURLOPT_HEADERDATA, call);
    curl->curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->error);
    curl->curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(e, CURLOPT_PROXY, ""); /* a store is reached directly */
    curl->curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    call_set_tls(c, call->http->access);
    curl->curl_easy_setopt(e, letter->waits ? CURLOPT_CONNECTTIMEOUT_MS : CURLOPT_TIMEOUT_MS,
                           (long)letter->timeout_ms);
    if (letter->token[0])
        add_header(c, "Authorization", letter->token);
    if (letter->body)
        call_set_body(c, letter);
    add_header(c, "Expect", "");
    curl->curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, letter->method);
    curl->curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->headers);
    curl->curl_multi_add_handle(http_of(call->http)->multi, e);
}

const struct http_transport http_curl = {
    .name = "libcurl",
    .open = curl_open,
    .close = curl_close,
    .new_call = curl_new_call,
    .send = curl_send,
    .drop = curl_drop,
};
