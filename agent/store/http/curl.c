/* Requests by libcurl's multi interface, for its TLS. It may not be entered again from inside its
 * own callbacks.
 *
 * A request that is given up takes its connection along, and with it a handshake that was not done:
 * where that takes longer than a request may, on a starved machine, each would begin it anew and
 * none would come to its end. So the first one that is given up in a handshake leaves a knock
 * behind: a request of nothing, with a deadline for handshakes, whose connection is then there for
 * others. Those that come meanwhile wait for it, within their own time. */
#include "agent/base/str.h"
#include "agent/store/access.h"
#include "agent/store/http/transport.h"
#include "agent/sys/clock.h"
#include "agent/sys/libcurl.h"
#include "agent/sys/tcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* KNOCKS: so many calls of an agent are under way beside each other: two watches, a beat, a write.
 * With fewer connections one would fail, for which the watches are begun anew, on new ones. */
enum { HANDSHAKE_MS = 30000, KNOCKS = 4 };

static const struct libcurl *curl; /* NULL: not loaded yet */

struct curl_http {
    struct http http;
    CURLM *multi;
    struct loop_source *timer;
    struct list places, knocks, waiting;
};

/* A server, as far as its connections are known from the ends of calls: one that it has closed in
 * between is found out by the call that takes it for there. */
struct place {
    struct list node;
    char *origin; /* "https://10.0.0.1:29400" */
    size_t idle;  /* connections that no call has */
    size_t knocks;
};

struct curl_call {
    struct http_call call;
    CURL *easy;
    struct curl_slist *headers;
    char error[CURL_ERROR_SIZE];
    struct place *place;
    bool stream;
    int64_t until_ns;
    struct list waiting;          /* in no list: it is libcurl's */
    struct loop_source *deadline; /* while it waits */
};

struct knock {
    struct list node;
    CURL *easy;
    struct curl_slist *headers;
    struct place *place;
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

static struct place *place_of(struct curl_http *h, const char *url) {
    const char *host = strstr(url, "://");
    size_t n = host ? 3 + (size_t)(host - url) : 0;
    n += strcspn(url + n, "/");
    list_each(it, &h->places) {
        struct place *p = list_entry(it, struct place, node);
        if (strncmp(p->origin, url, n) == 0 && !p->origin[n])
            return p;
    }
    struct place *p = calloc(1, sizeof(*p));
    if (!p || !(p->origin = strndup(url, n)))
        abort();
    list_append(&h->places, &p->node);
    return p;
}

static void set_up(struct curl_http *h, CURL *e, const char *url);
static void add_header(struct curl_slist **headers, const char *name, const char *value);

/* ---- calls that wait ---- */

static struct curl_call *next_waiting(const struct curl_http *h, const struct place *p) {
    list_each(it, &h->waiting) {
        struct curl_call *c = list_entry(it, struct curl_call, waiting);
        if (c->place == p)
            return c;
    }
    return NULL;
}

static void begin(struct curl_http *h, struct curl_call *c) {
    c->place->idle -= c->place->idle > 0;
    curl->curl_multi_add_handle(h->multi, c->easy);
}

static void hand_over(struct curl_http *h, struct curl_call *c) {
    int64_t left_ms = (c->until_ns - clock_monotonic_ns()) / 1000000;
    list_remove(&c->waiting);
    c->deadline = loop_source_free(c->deadline);
    curl->curl_easy_setopt(c->easy, c->stream ? CURLOPT_CONNECTTIMEOUT_MS : CURLOPT_TIMEOUT_MS,
                           (long)(left_ms > 1 ? left_ms : 1));
    begin(h, c);
}

static void on_deadline(void *arg, int64_t now_ns) {
    struct curl_call *c = arg;
    struct http *h = c->call.http;
    (void)now_ns;
    snprintf(c->call.error, sizeof(c->call.error), "the TLS handshake with %s is still going on",
             c->place->origin);
    http_call_end(&c->call, 0);
    http_tell(h);
}

static void wait_for_knock(struct curl_http *h, struct curl_call *c) {
    list_append(&h->waiting, &c->waiting);
    c->deadline = loop_timer(h->http.loop, on_deadline, c);
    loop_timer_at(c->deadline, c->until_ns);
}

/* ---- knocks ---- */

static size_t ignore_body(char *p, size_t size, size_t n, void *arg) {
    (void)p, (void)size, (void)arg;
    return n;
}

/* What is asked is known to etcd, and refused by our own store: either is an answer. */
static void knock_at(struct curl_http *h, struct place *p) {
    struct knock *k = calloc(1, sizeof(*k));
    struct buf url = {0};
    if (!k || !(k->easy = curl->curl_easy_init()))
        abort();
    k->place = p;
    p->knocks++;
    buf_printf(&url, "%s/version", p->origin);
    set_up(h, k->easy, buf_str(&url));
    curl->curl_easy_setopt(k->easy, CURLOPT_PRIVATE, NULL);
    curl->curl_easy_setopt(k->easy, CURLOPT_WRITEFUNCTION, ignore_body);
    curl->curl_easy_setopt(k->easy, CURLOPT_TIMEOUT_MS, (long)HANDSHAKE_MS);
    if (h->http.token[0])
        add_header(&k->headers, "Authorization", h->http.token);
    curl->curl_easy_setopt(k->easy, CURLOPT_HTTPHEADER, k->headers);
    list_append(&h->knocks, &k->node);
    curl->curl_multi_add_handle(h->multi, k->easy);
    buf_fini(&url);
}

static void knock_free(struct curl_http *h, struct knock *k) {
    list_remove(&k->node);
    curl->curl_multi_remove_handle(h->multi, k->easy);
    curl->curl_easy_cleanup(k->easy);
    curl->curl_slist_free_all(k->headers);
    k->place->knocks--;
    free(k);
}

/* Its connection is for one of those that wait; behind the last knock nobody waits any more. */
static void knock_ended(struct curl_http *h, CURL *easy, bool answered) {
    struct knock *k = NULL;
    struct curl_call *c;
    list_each(it, &h->knocks) {
        k = list_entry(it, struct knock, node);
        if (k->easy == easy)
            break;
    }
    struct place *p = k->place;
    p->idle += answered;
    knock_free(h, k);
    while ((p->idle || !p->knocks) && (c = next_waiting(h, p)))
        hand_over(h, c);
}

/* A new connection, and no TLS on it yet. */
static bool is_in_handshake(const struct curl_call *c) {
    curl_off_t done_us = 0;
    long connections = 0;
    curl->curl_easy_getinfo(c->easy, CURLINFO_NUM_CONNECTS, &connections);
    curl->curl_easy_getinfo(c->easy, CURLINFO_APPCONNECT_TIME_T, &done_us);
    return str_starts(c->place->origin, "https:") && connections > 0 && done_us == 0;
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
    struct curl_http *h = http_of(c->call.http);
    if (code == CURLE_OPERATION_TIMEDOUT && is_in_handshake(c) && !c->place->knocks)
        for (int i = 0; i < KNOCKS; i++)
            knock_at(h, c->place);
}

/* Its connection is for the next, be it one that waits. */
static void call_answered(struct curl_http *h, struct curl_call *c, long status) {
    struct curl_call *next = next_waiting(h, c->place);
    http_call_end(&c->call, status);
    c->place->idle++;
    if (next)
        hand_over(h, next);
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
        if (!c)
            knock_ended(h, m->easy_handle, m->data.result == CURLE_OK);
        else if (m->data.result != CURLE_OK)
            call_failed(c, m->data.result);
        else
            call_answered(h, c, status);
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
    list_init(&h->places);
    list_init(&h->knocks);
    list_init(&h->waiting);
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
    list_each_safe(it, next, &h->knocks) knock_free(h, list_entry(it, struct knock, node));
    list_each_safe(it, next, &h->places) {
        struct place *p = list_entry(it, struct place, node);
        free(p->origin);
        free(p);
    }
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
    list_init(&c->waiting);
    return &c->call;
}

static void curl_drop(struct http_call *call) {
    struct curl_call *c = call_of(call);
    curl->curl_multi_remove_handle(http_of(call->http)->multi, c->easy);
    curl->curl_easy_cleanup(c->easy);
    curl->curl_slist_free_all(c->headers);
    list_remove(&c->waiting);
    loop_source_free(c->deadline);
    free(c);
}

static void set_tls(CURL *e, const struct store_access *a) {
    if (!a || !a->https)
        return;
    if (a->cacert)
        curl->curl_easy_setopt(e, CURLOPT_CAINFO, a->cacert);
    if (a->cert) {
        curl->curl_easy_setopt(e, CURLOPT_SSLCERT, a->cert);
        curl->curl_easy_setopt(e, CURLOPT_SSLKEY, a->key ? a->key : a->cert);
    }
}

/* What knocks and calls have in common, so that one may use the other's connection. */
static void set_up(struct curl_http *h, CURL *e, const char *url) {
    curl->curl_easy_setopt(e, CURLOPT_URL, url);
    curl->curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(e, CURLOPT_PROXY, ""); /* a store is reached directly */
    curl->curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    set_tls(e, h->http.access);
}

static void add_header(struct curl_slist **headers, const char *name, const char *value) {
    struct buf line = {0};
    buf_printf(&line, "%s:%s%s", name, value[0] ? " " : "", value);
    *headers = curl->curl_slist_append(*headers, buf_str(&line));
    if (!*headers)
        abort();
    buf_fini(&line);
}

static void call_set_body(struct curl_call *c, const struct http_letter *letter) {
    curl->curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE, (long)letter->body->len);
    curl->curl_easy_setopt(c->easy, CURLOPT_COPYPOSTFIELDS, buf_str(letter->body));
    add_header(&c->headers, "Content-Type", letter->type);
}

static void curl_send(struct http_call *call, const struct http_letter *letter) {
    struct curl_call *c = call_of(call);
    CURL *e = c->easy;
    struct curl_http *h = http_of(call->http);
    c->place = place_of(h, letter->url);
    c->stream = letter->waits;
    c->until_ns = clock_monotonic_ns() + letter->timeout_ms * 1000000;
    set_up(h, e, letter->url);
    curl->curl_easy_setopt(e, CURLOPT_PRIVATE, c);
    curl->curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    curl->curl_easy_setopt(e, CURLOPT_WRITEDATA, call);
    curl->curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header);
    curl->curl_easy_setopt(e, CURLOPT_HEADERDATA, call);
    curl->curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->error);
    curl->curl_easy_setopt(e, letter->waits ? CURLOPT_CONNECTTIMEOUT_MS : CURLOPT_TIMEOUT_MS,
                           (long)letter->timeout_ms);
    if (letter->token[0])
        add_header(&c->headers, "Authorization", letter->token);
    if (letter->body)
        call_set_body(c, letter);
    add_header(&c->headers, "Expect", "");
    curl->curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, letter->method);
    curl->curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->headers);
    if (c->place->knocks && !c->place->idle)
        wait_for_knock(h, c);
    else
        begin(h, c);
}

const struct http_transport http_curl = {
    .name = "libcurl",
    .open = curl_open,
    .close = curl_close,
    .new_call = curl_new_call,
    .send = curl_send,
    .drop = curl_drop,
};
