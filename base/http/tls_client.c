#include "base/http/tls_client.h"

#include "base/mem.h"
#include "base/sys/clock.h"

#define CURL_DISABLE_TYPECHECK /* its macros cannot wrap a function that was looked up */
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBCURL_FUNCTIONS(X)                                                                       \
    X(curl_global_init)                                                                            \
    X(curl_easy_init)                                                                              \
    X(curl_easy_setopt)                                                                            \
    X(curl_easy_getinfo)                                                                           \
    X(curl_easy_strerror)                                                                          \
    X(curl_easy_send)                                                                              \
    X(curl_easy_recv)                                                                              \
    X(curl_easy_cleanup)                                                                           \
    X(curl_multi_init)                                                                             \
    X(curl_multi_setopt)                                                                           \
    X(curl_multi_add_handle)                                                                       \
    X(curl_multi_remove_handle)                                                                    \
    X(curl_multi_socket_action)                                                                    \
    X(curl_multi_info_read)                                                                        \
    X(curl_multi_cleanup)                                                                          \
    X(curl_slist_append)                                                                           \
    X(curl_slist_free_all)

/* Its functions, each under its own name. */
static struct libcurl {
#define X(name) __typeof__(&(name)) name;
    LIBCURL_FUNCTIONS(X)
#undef X
} curl;

/* libcurl looks after one connection in each: in one for all of them it would end those that have
 * been idle for long. */
struct tls_client {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *to;
    struct loop *loop;
    int fd;
    bool opened; /* fd is libcurl's */
    struct loop_source *source, *timer;
    const struct http_way *way;
    tls_client_fn *fn;
    void *arg;
    char said[CURL_ERROR_SIZE], why[2 * CURL_ERROR_SIZE];
};

int tls_client_load(struct err *err) {
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};
    static bool loaded;
    void *lib = NULL;
    if (loaded)
        return 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !lib; i++)
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return err_say(err, -ENOENT,
                       "libcurl is not installed (Debian, Ubuntu: apt install libcurl4)");
#define X(name)                                                                                    \
    curl.name = (__typeof__(curl.name))dlsym(lib, #name);                                          \
    if (!curl.name)                                                                                \
        return err_say(err, -ENOENT, "the libcurl of this machine has no %s: install libcurl4",    \
                       #name);
    LIBCURL_FUNCTIONS(X)
#undef X
    if (curl.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_say(err, -EIO, "libcurl did not initialise");
    loaded = true;
    return 0;
}

/* ---- ends ---- */

static const char *advice(const struct http_way *way, CURLcode code) {
    const char *said = NULL;
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        said = way->advice[HTTP_NOT_TRUSTED];
    else if (code == CURLE_SSL_CERTPROBLEM)
        said = way->advice[HTTP_OWN_CERTIFICATE];
    else if (code == CURLE_SSL_CACERT_BADFILE)
        said = way->advice[HTTP_BAD_CACERT];
    else if (code == CURLE_SSL_CONNECT_ERROR || code == CURLE_RECV_ERROR ||
             code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING)
        said = way->advice[HTTP_MAY_WANT_CERTIFICATE];
    return said ? said : "";
}

/* libcurl's own sentence, and what the system said: it leaves that out. */
static const char *explain(struct tls_client *c, CURLcode code, const char *behind) {
    long system = 0;
    curl.curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &system);
    const char *said = c->said[0] ? c->said : curl.curl_easy_strerror(code);
    snprintf(c->why, sizeof(c->why), system ? "%s (%s)%s" : "%s%s%s", said,
             system ? strerror((int)system) : "", behind);
    return c->why;
}

static void drive(struct tls_client *c, curl_socket_t fd, int what) {
    int running, left;
    curl.curl_multi_socket_action(c->multi, fd, what, &running);
    CURLMsg *m = curl.curl_multi_info_read(c->multi, &left);
    if (!m)
        return;
    CURLcode code = m->data.result;
    c->source = loop_source_free(c->source);
    loop_timer_off(c->timer);
    c->fn(c->arg, code == CURLE_OK ? NULL : explain(c, code, advice(c->way, code)));
}

/* ---- what libcurl asks for ---- */

static void on_socket(void *arg, int fd, int what) {
    drive(arg, fd,
          (what & LOOP_READ ? CURL_CSELECT_IN : 0) | (what & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_timer(void *arg, int64_t now_ns) {
    drive(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg) {
    struct tls_client *c = arg;
    int want = (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);
    if (what == CURL_POLL_REMOVE)
        c->source = loop_source_free(c->source);
    else if (c->source)
        loop_fd_set(c->source, want);
    else
        c->source = loop_fd(c->loop, fd, want, on_socket, c);
    return 0;
}

static int want_timer(CURLM *multi, long timeout_ms, void *arg) {
    struct tls_client *c = arg;
    if (timeout_ms < 0)
        loop_timer_off(c->timer);
    else
        loop_timer_at(c->timer, clock_monotonic_ns() + timeout_ms * 1000000);
    return 0;
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to) {
    struct tls_client *c = arg;
    if (c->opened)
        return CURL_SOCKET_BAD;
    c->opened = true;
    return c->fd;
}

/* libcurl 7.88 connects all the same, and is told how the connecting went that is over: the kernel
 * asks for no address then. */
static int is_connected(void *arg, curl_socket_t fd, curlsocktype purpose) {
    return CURL_SOCKOPT_ALREADY_CONNECTED;
}

/* ---- the connection ---- */

static void set_certificates(CURL *e, const struct http_way *way) {
    if (way->cacert)
        curl.curl_easy_setopt(e, CURLOPT_CAINFO, way->cacert);
    if (way->cert) {
        curl.curl_easy_setopt(e, CURLOPT_SSLCERT, way->cert);
        curl.curl_easy_setopt(e, CURLOPT_SSLKEY, way->key ? way->key : way->cert);
    }
}

/* It connects to nobody: a number as the address, so that it looks up nothing either. */
static void set_up(struct tls_client *c, const char *origin) {
    CURL *e = c->easy;
    c->to = curl.curl_slist_append(NULL, "::127.0.0.1:");
    if (!c->to)
        abort();
    curl.curl_easy_setopt(e, CURLOPT_URL, origin);
    curl.curl_easy_setopt(e, CURLOPT_CONNECT_TO, c->to);
    curl.curl_easy_setopt(e, CURLOPT_CONNECT_ONLY, 1L);
    curl.curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl.curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl.curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl.curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)TLS_CLIENT_HANDSHAKE_MS);
    curl.curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl.curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, c);
    curl.curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, is_connected);
    curl.curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->said);
    set_certificates(e, c->way);
    curl.curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl.curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl.curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl.curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
}

struct tls_client *tls_client_new(struct loop *l, int fd, const char *origin,
                                  const struct http_way *way, tls_client_fn *fn, void *arg) {
    struct tls_client *c = mem_new(struct tls_client);
    *c = (struct tls_client){.multi = curl.curl_multi_init(),
                             .easy = curl.curl_easy_init(),
                             .loop = l,
                             .fd = fd,
                             .way = way,
                             .fn = fn,
                             .arg = arg};
    if (!c->multi || !c->easy)
        abort();
    c->timer = loop_timer(l, on_timer, c);
    set_up(c, origin);
    curl.curl_multi_add_handle(c->multi, c->easy);
    return c;
}

struct tls_client *tls_client_free(struct tls_client *c) {
    c->source = loop_source_free(c->source);
    curl.curl_multi_remove_handle(c->multi, c->easy);
    curl.curl_easy_cleanup(c->easy);
    curl.curl_multi_cleanup(c->multi);
    curl.curl_slist_free_all(c->to);
    if (!c->opened)
        close(c->fd);
    loop_source_free(c->timer);
    free(c);
    return NULL;
}

static ssize_t result(struct tls_client *c, CURLcode code, size_t n) {
    if (code == CURLE_OK)
        return (ssize_t)n;
    if (code == CURLE_AGAIN)
        return -EAGAIN;
    explain(c, code, "");
    return -EIO;
}

ssize_t tls_client_recv(struct tls_client *c, char *p, size_t size) {
    size_t n = 0;
    CURLcode code = curl.curl_easy_recv(c->easy, p, size, &n);
    return result(c, code, n);
}

ssize_t tls_client_send(struct tls_client *c, const char *p, size_t size) {
    size_t n = 0;
    CURLcode code = curl.curl_easy_send(c->easy, p, size, &n);
    return result(c, code, n);
}

const char *tls_client_why(const struct tls_client *c) {
    return c->why;
}
