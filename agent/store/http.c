#include "agent/store/http.h"

#include "agent/base/list.h"
#include "agent/base/str.h"
#include "agent/store/access.h"
#include "agent/sys/clock.h"
#include "agent/sys/libcurl.h"
#include "agent/sys/tcp.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* An answer that is collected may not be longer: nothing the agents ask for comes near. */
enum { BODY_MAX = 64 << 20, SILENCE_S = 20, HEADER_SIZE = 64, TOKEN_SIZE = 4096 };

static const struct libcurl *curl; /* NULL: not loaded yet */

struct http {
    struct loop *loop;
    CURLM *multi;
    struct curl_slist *headers, *plain; /* of a body in JSON, of any other request */
    struct loop_source *timer;
    struct list calls; /* in flight */
    struct list ready; /* have something to tell their owner */
    bool telling;
    char header[HEADER_SIZE]; /* of the call that is being told */
    const struct store_access *access;
    char token[TOKEN_SIZE]; /* "": none */
};

struct http_call {
    struct list node;
    struct http *http;
    CURL *easy;
    http_data_fn *on_data;
    http_done_fn *on_done;
    void *arg;
    const char *header; /* wanted, or NULL */
    char header_value[HEADER_SIZE];
    struct curl_slist *headers; /* with a token; NULL: those of all */
    struct buf received;
    bool ended;
    long status;
    char error[CURL_ERROR_SIZE];
};

static int library_load(struct err *err) {
    struct err why = {0};
    curl = libcurl_load(&why);
    if (curl)
        return 0;
    return err_say(err, why.code,
                   "%s; a store elsewhere is reached through it, --standalone needs none", why.msg);
}

/* ---- telling the owners; never from inside libcurl, which may not be entered again there ---- */

static void call_free(struct http_call *c) {
    curl->curl_multi_remove_handle(c->http->multi, c->easy);
    curl->curl_easy_cleanup(c->easy);
    curl->curl_slist_free_all(c->headers);
    list_remove(&c->node);
    buf_fini(&c->received);
    free(c);
}

static void call_make_ready(struct http_call *c) {
    list_remove(&c->node);
    list_append(&c->http->ready, &c->node);
}

/* The call may be cancelled by its owner from inside either function: nothing of it is touched
 * after the last one, and what is told is held apart. */
static void call_tell(struct http_call *c) {
    struct buf received = c->received;
    c->received = (struct buf){0};
    list_remove(&c->node);
    list_append(&c->http->calls, &c->node);
    if (c->on_data && received.len) {
        if (c->ended)
            call_make_ready(c); /* comes again, for its end */
        c->on_data(c->arg, received.data, received.len);
    } else if (c->ended) {
        struct http_call end = *c;
        call_free(c);
        if (end.on_data)
            buf_clear(&received);
        str_copy(end.http->header, HEADER_SIZE, end.header_value);
        end.on_done(end.arg, end.status, &received, end.error);
    }
    buf_fini(&received);
}

/* What to do about it, where it is about certificates. */
static const char *tls_hint(const struct http *h, CURLcode code) {
    const struct store_access *a = h->access;
    if (!a || !a->https)
        return a && code == CURLE_GOT_NOTHING ? "; does it want --rdzv-conf protocol=https?" : "";
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
static void call_failed(struct http_call *c, CURLcode code) {
    long system = 0;
    c->status = 0;
    curl->curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &system);
    if (!c->error[0])
        str_copy(c->error, sizeof(c->error), curl->curl_easy_strerror(code));
    size_t n = strlen(c->error);
    if (system)
        snprintf(c->error + n, sizeof(c->error) - n, " (%s)", strerror((int)system));
    n = strlen(c->error);
    str_copy(c->error + n, sizeof(c->error) - n, tls_hint(c->http, code));
}

static void take_ended(struct http *h) {
    int left;
    for (CURLMsg *m; (m = curl->curl_multi_info_read(h->multi, &left));) {
        struct http_call *c = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl->curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c);
        curl->curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &c->status);
        if (m->data.result != CURLE_OK)
            call_failed(c, m->data.result);
        c->ended = true;
        call_make_ready(c);
    }
}

static void drive(struct http *h, curl_socket_t fd, int what) {
    int running;
    curl->curl_multi_socket_action(h->multi, fd, what, &running);
    take_ended(h);
    if (h->telling)
        return;
    h->telling = true;
    while (!list_empty(&h->ready))
        call_tell(list_entry(h->ready.next, struct http_call, node));
    h->telling = false;
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
    struct http *h = arg;
    struct loop_source *s = socket_arg;
    int want = (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);
    if (what == CURL_POLL_REMOVE)
        s = loop_source_free(s);
    else if (s)
        loop_fd_set(s, want);
    else
        s = loop_fd(h->loop, fd, want, on_socket, h);
    curl->curl_multi_assign(h->multi, fd, s);
    return 0;
}

static int want_timer(CURLM *multi, long timeout_ms, void *arg) {
    (void)multi;
    struct http *h = arg;
    if (timeout_ms < 0)
        loop_timer_off(h->timer);
    else
        loop_timer_at(h->timer, clock_monotonic_ns() + timeout_ms * 1000000);
    return 0;
}

static size_t take_body(char *p, size_t size, size_t n, void *arg) {
    struct http_call *c = arg;
    (void)size; /* always 1 */
    if (c->received.len + n > BODY_MAX)
        return 0;
    buf_put(&c->received, p, n);
    if (c->on_data)
        call_make_ready(c);
    return n;
}

static size_t take_header(char *p, size_t size, size_t n, void *arg) {
    struct http_call *c = arg;
    size_t name = strlen(c->header), k = 0;
    (void)size; /* always 1 */
    if (n <= name || strncasecmp(p, c->header, name) != 0)
        return n;
    for (size_t i = name; i < n && k + 1 < sizeof(c->header_value); i++)
        if (!isspace((unsigned char)p[i]))
            c->header_value[k++] = p[i];
    c->header_value[k] = '\0';
    return n;
}

static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose) {
    (void)arg;
    if (purpose == CURLSOCKTYPE_IPCXN)
        tcp_bound_silence(fd, SILENCE_S);
    return CURL_SOCKOPT_OK;
}

/* ---- the public part ---- */

struct http *http_new(struct loop *l, const struct store_access *access, struct err *err) {
    if (library_load(err) < 0)
        return NULL;
    struct http *h = calloc(1, sizeof(*h));
    if (!h)
        abort();
    h->loop = l;
    h->access = access;
    list_init(&h->calls);
    list_init(&h->ready);
    h->timer = loop_timer(l, on_timer, h);
    h->multi = curl->curl_multi_init();
    h->headers = curl->curl_slist_append(NULL, "Content-Type: application/json");
    h->headers = curl->curl_slist_append(h->headers, "Expect:");
    h->plain = curl->curl_slist_append(NULL, "Expect:");
    if (!h->multi || !h->headers || !h->plain)
        abort();
    curl->curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl->curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    curl->curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl->curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    return h;
}

struct http *http_free(struct http *h) {
    if (!h)
        return NULL;
    list_each_safe(it, next, &h->calls) call_free(list_entry(it, struct http_call, node));
    list_each_safe(it, next, &h->ready) call_free(list_entry(it, struct http_call, node));
    curl->curl_multi_cleanup(h->multi);
    curl->curl_slist_free_all(h->headers);
    curl->curl_slist_free_all(h->plain);
    loop_source_free(h->timer);
    free(h);
    return NULL;
}

static void call_set_tls(struct http_call *c, const struct store_access *a) {
    if (!a || !a->https)
        return;
    if (a->cacert)
        curl->curl_easy_setopt(c->easy, CURLOPT_CAINFO, a->cacert);
    if (a->cert) {
        curl->curl_easy_setopt(c->easy, CURLOPT_SSLCERT, a->cert);
        curl->curl_easy_setopt(c->easy, CURLOPT_SSLKEY, a->key ? a->key : a->cert);
    }
}

static void call_set_up(struct http_call *c, const char *url, bool waits, int64_t timeout_ms) {
    CURL *e = c->easy;
    curl->curl_easy_setopt(e, CURLOPT_PRIVATE, c);
    curl->curl_easy_setopt(e, CURLOPT_URL, url);
    curl->curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    curl->curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
    curl->curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->error);
    curl->curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(e, CURLOPT_PROXY, ""); /* a store is reached directly */
    curl->curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    call_set_tls(c, c->http->access);
    curl->curl_easy_setopt(e, waits ? CURLOPT_CONNECTTIMEOUT_MS : CURLOPT_TIMEOUT_MS,
                           (long)timeout_ms);
}

static void call_set_body(struct http_call *c, const struct buf *body) {
    curl->curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE, (long)body->len);
    curl->curl_easy_setopt(c->easy, CURLOPT_COPYPOSTFIELDS, buf_str(body));
}

static struct http_call *call_new(struct http *h, http_data_fn *on_data, http_done_fn *on_done,
                                  void *arg) {
    struct http_call *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    *c = (struct http_call){.http = h, .on_data = on_data, .on_done = on_done, .arg = arg};
    c->easy = curl->curl_easy_init();
    if (!c->easy)
        abort();
    list_append(&h->calls, &c->node);
    return c;
}

void http_authorize(struct http *h, const char *token) {
    str_copy(h->token, sizeof(h->token), token);
}

static void call_set_headers(struct http_call *c) {
    struct http *h = c->http;
    struct buf line = {0};
    if (h->token[0]) {
        buf_printf(&line, "Authorization: %s", h->token);
        c->headers = curl->curl_slist_append(NULL, buf_str(&line));
        for (struct curl_slist *s = h->headers; s; s = s->next)
            curl->curl_slist_append(c->headers, s->data);
    }
    curl->curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers ? c->headers : h->headers);
    buf_fini(&line);
}

struct http_call *http_post(struct http *h, const char *url, const struct buf *body,
                            int64_t timeout_ms, http_data_fn *on_data, http_done_fn *on_done,
                            void *arg) {
    struct http_call *c = call_new(h, on_data, on_done, arg);
    call_set_up(c, url, on_data, timeout_ms);
    call_set_body(c, body);
    call_set_headers(c);
    curl->curl_multi_add_handle(h->multi, c->easy);
    return c;
}

struct http_call *http_send(struct http *h, const struct http_request *r, http_done_fn *on_done,
                            void *arg) {
    struct http_call *c = call_new(h, NULL, on_done, arg);
    call_set_up(c, r->url, r->waits, r->timeout_ms);
    if (r->form)
        call_set_body(c, r->form);
    curl->curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, r->method);
    curl->curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, h->plain);
    c->header = r->header;
    if (r->header) {
        curl->curl_easy_setopt(c->easy, CURLOPT_HEADERFUNCTION, take_header);
        curl->curl_easy_setopt(c->easy, CURLOPT_HEADERDATA, c);
    }
    curl->curl_multi_add_handle(h->multi, c->easy);
    return c;
}

const char *http_header(const struct http *h) {
    return h->header;
}

void http_cancel(struct http_call *c) {
    call_free(c);
}
