/* Calls: what is asked, and what their owners are told. */
#include "base/http/http.h"

#include "base/base64.h"
#include "base/http/state.h"
#include "base/http/tls_client.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* An answer that is collected may not be longer: nothing the agents ask for comes near. */
enum { BODY_MAX = 64 << 20, HTTP_PORT = 80, HTTPS_PORT = 443 };

/* ---- what a connection hands over ---- */

static void call_make_ready(struct http_call *c) {
    list_remove(&c->node);
    list_append(&c->http->ready, &c->node);
}

bool http_call_take(void *call, const char *p, size_t n) {
    struct http_call *c = call;
    if (c->received.len + n > BODY_MAX)
        return false;
    buf_put(&c->received, p, n);
    if (c->on_data)
        call_make_ready(c);
    return true;
}

void http_call_take_header(void *call, const char *line, size_t n) {
    struct http_call *c = call;
    size_t name = c->header ? strlen(c->header) : n, k = 0;
    if (n <= name || strncasecmp(line, c->header, name) != 0)
        return;
    for (size_t i = name; i < n && k + 1 < sizeof(c->header_value); i++)
        if (!isspace((unsigned char)line[i]))
            c->header_value[k++] = line[i];
    c->header_value[k] = '\0';
}

void http_call_end(struct http_call *c, long status) {
    loop_timer_off(c->deadline);
    c->status = status;
    c->ended = true;
    call_make_ready(c);
}

/* ---- telling the owners ---- */

static void call_free(struct http_call *c) {
    exchange_drop(c);
    list_remove(&c->node);
    loop_source_free(c->deadline);
    buf_fini(&c->received);
    buf_fini(&c->request);
    free(c);
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
        if (end.on_data || !end.status)
            buf_clear(&received);
        str_copy(end.http->header, sizeof(end.http->header), end.header_value);
        end.on_done(end.arg, end.status, &received, end.error);
    }
    buf_fini(&received);
}

void http_tell(struct http *h) {
    if (h->telling)
        return;
    h->telling = true;
    while (!list_empty(&h->ready))
        call_tell(list_entry(h->ready.next, struct http_call, node));
    h->telling = false;
}

static void on_soon(void *arg, int64_t now_ns) {
    http_tell(arg);
}

/* ---- requests ---- */

void http_put_bearer(struct buf *out, const char *token) {
    if (token)
        buf_printf(out, "Bearer %s", token);
}

const char *http_bearer_of(const char *authorization) {
    static const char scheme[] = "Bearer ";
    bool is = authorization && str_starts(authorization, scheme);
    return is ? authorization + sizeof(scheme) - 1 : NULL;
}

static void put_header(struct buf *out, const char *name, const char *value) {
    if (value && *value)
        buf_printf(out, "%s: %s\r\n", name, value);
}

void http_put_request(struct buf *out, const struct http_request *r, const char *authority,
                      const char *path, const char *authorization) {
    buf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: */*\r\n", r->method, path, authority);
    put_header(out, "User-Agent", r->agent);
    put_header(out, "Authorization", authorization);
    if (r->body)
        buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n", r->type, r->body->len);
    buf_puts(out, "\r\n");
    if (r->body)
        buf_put(out, r->body->data, r->body->len);
}

struct url {
    struct tcp_endpoint at;
    struct buf origin; /* "http://host:port" */
    const char *authority;
    struct buf path;  /* with its query */
    struct buf basic; /* for Authorization, of "user:password@"; empty: there was none */
};

static void url_fini(struct url *u) {
    buf_fini(&u->origin);
    buf_fini(&u->path);
    buf_fini(&u->basic);
}

/* "user:password", as it is behind its escapes. */
static void put_basic(struct buf *out, const char *text, size_t n) {
    struct buf plain = {0};
    for (size_t i = 0; i < n; i++) {
        char hex[3] = {0};
        bool escaped = text[i] == '%' && n - i > 2 && isxdigit((unsigned char)text[i + 1]) &&
                       isxdigit((unsigned char)text[i + 2]);
        if (escaped)
            memcpy(hex, text + i + 1, 2);
        buf_putc(&plain, escaped ? (char)strtol(hex, NULL, 16) : text[i]);
        i += escaped ? 2 : 0;
    }
    buf_puts(out, "Basic ");
    base64_put(out, plain.data, plain.len);
    buf_fini(&plain);
}

/* "http://[USER[:PASSWORD]@]HOST[:PORT][/PATH][#...]". */
static int url_read(struct url *u, const struct http *h, const char *text, struct err *err) {
    const char *scheme = h->way.https ? "https://" : "http://";
    if (!str_starts(text, scheme))
        return err_say(err, -EINVAL, "'%s' is no address of %s", text,
                       h->way.https ? "https" : "plain HTTP");
    const char *at = text + strlen(scheme), *path = at + strcspn(at, "/?#");
    const char *user_end = memrchr(at, '@', (size_t)(path - at));
    if (user_end) {
        put_basic(&u->basic, at, (size_t)(user_end - at));
        at = user_end + 1;
    }
    buf_printf(&u->origin, "%s%.*s", scheme, (int)(path - at), at);
    u->authority = buf_str(&u->origin) + strlen(scheme);
    buf_printf(&u->path, "%s%.*s", *path == '/' ? "" : "/", (int)strcspn(path, "#"), path);
    return tcp_endpoint_parse(u->authority, h->way.https ? HTTPS_PORT : HTTP_PORT, &u->at, err);
}

/* Where the host is. */
static void place(struct tcp_endpoint *at, const struct http_way *way) {
    size_t n = strlen(at->host);
    for (size_t i = 0; i < way->names_n; i++)
        if (strncmp(way->names[i], at->host, n) == 0 && way->names[i][n] == '=') {
            str_copy(at->host, sizeof(at->host), way->names[i] + n + 1);
            return;
        }
}

/* Whoever asks is told from the loop, also of what fails at once. */
static void call_send(struct http_call *c, const struct http_request *r) {
    struct http *h = c->http;
    struct url u = {0};
    struct err err;
    if (url_read(&u, h, r->url, &err) < 0) {
        str_copy(c->error, sizeof(c->error), err.msg);
        http_call_end(c, 0);
        loop_timer_at(h->soon, 0);
    } else {
        place(&u.at, &h->way);
        c->peer = peer_of(h, buf_str(&u.origin), &u.at);
        http_put_request(&c->request, r, u.authority, buf_str(&u.path),
                         u.basic.len ? buf_str(&u.basic) : h->authorization);
        exchange_begin(c);
    }
    url_fini(&u);
}

struct http_call *http_send(struct http *h, const struct http_request *r, http_done_fn *on_done,
                            void *arg) {
    struct http_call *c = mem_new(struct http_call);
    *c = (struct http_call){.http = h,
                            .on_data = r->on_data,
                            .on_done = on_done,
                            .arg = arg,
                            .header = r->header,
                            .waits = r->waits || r->on_data,
                            .timeout_ms = r->timeout_ms};
    list_init(&c->waiting);
    list_append(&h->calls, &c->node);
    c->deadline = loop_timer(h->loop, exchange_on_deadline, c);
    call_send(c, r);
    return c;
}

const char *http_header(const struct http *h) {
    return h->header;
}

void http_cancel(struct http_call *c) {
    call_free(c);
}

/* ---- all of them ---- */

struct http *http_new_by(struct loop *l, const struct http_way *way, bool libcurl,
                         struct err *err) {
    if (libcurl && tls_client_load(err) < 0)
        return NULL;
    struct http *h = mem_new(struct http);
    *h = (struct http){.loop = l, .way = *way, .by_libcurl = libcurl};
    list_init(&h->peers);
    list_init(&h->calls);
    list_init(&h->ready);
    h->soon = loop_timer(l, on_soon, h);
    http_show_token(h, way->token);
    return h;
}

struct http *http_new(struct loop *l, const struct http_way *way, struct err *err) {
    return http_new_by(l, way, way->https, err);
}

struct http *http_free(struct http *h) {
    if (!h)
        return NULL;
    list_each_safe(it, next, &h->calls) call_free(list_entry(it, struct http_call, node));
    list_each_safe(it, next, &h->ready) call_free(list_entry(it, struct http_call, node));
    peers_free(h);
    loop_source_free(h->soon);
    free(h);
    return NULL;
}

void http_authorize(struct http *h, const char *text) {
    str_copy(h->authorization, sizeof(h->authorization), text);
}

void http_show_token(struct http *h, const char *token) {
    BUF_FINI struct buf text = {0};
    http_put_bearer(&text, token);
    http_authorize(h, buf_str(&text));
}
