#include "agent/tls/module/module.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* libevent's table of locks, of which the program has none: bufferevents that are made without
 * threads never look into it. libevent's archive is no code for a shared object, but where it asks
 * for this variable of its core, and only there, that matters. So it has one of its own here. */
__attribute__((visibility("hidden"))) char evthread_lock_fns_[64];

extern const struct tls_module rankrun_tls;

/* Freed with the last of its connections, which libevent frees some time after it was told to. */
struct tls {
    SSL_CTX *context;
    const struct tls_watch *watch; /* NULL: nobody is told any more */
    size_t users;                  /* who opened it, and connections */
};

struct module_connection {
    struct tls *tls;
    struct bufferevent *b;
};

static int connection_index = -1; /* of struct module_connection in an SSL */

/* ---- the files ---- */

/* OpenSSL's oldest complaint is the cause of the others. */
static const char *reason(void) {
    const char *text = ERR_reason_error_string(ERR_get_error());
    ERR_clear_error();
    return text ? text : "OpenSSL does not say why";
}

/* Without one OpenSSL would ask the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *arg) {
    return -1;
}

static int check_readable(const char *path, struct err *err) {
    if (access(path, R_OK) == 0)
        return 0;
    return err_say(err, -EINVAL, "%s: %s", path, strerror(errno));
}

static int read_cert(SSL_CTX *c, const struct tls_files *f, struct err *err) {
    if (check_readable(f->cert, err) < 0)
        return -EINVAL;
    if (SSL_CTX_use_certificate_chain_file(c, f->cert) == 1)
        return 0;
    return err_say(err, -EINVAL, "%s: must be a certificate in PEM: %s", f->cert, reason());
}

static int read_key(SSL_CTX *c, const struct tls_files *f, struct err *err) {
    const char *path = f->key ? f->key : f->cert;
    if (check_readable(path, err) < 0)
        return -EINVAL;
    if (SSL_CTX_use_PrivateKey_file(c, path, SSL_FILETYPE_PEM) != 1)
        return err_say(err, -EINVAL,
                       "%s: must be the private key of %s, in PEM and without a passphrase: %s",
                       path, f->cert, reason());
    if (SSL_CTX_check_private_key(c) == 1)
        return 0;
    return err_say(err, -EINVAL, "%s: must be the private key of %s: %s", path, f->cert, reason());
}

static int read_client_ca(SSL_CTX *c, const struct tls_files *f, struct err *err) {
    STACK_OF(X509_NAME) * names;
    if (!f->client_ca)
        return 0;
    if (check_readable(f->client_ca, err) < 0)
        return -EINVAL;
    names = SSL_load_client_CA_file(f->client_ca);
    if (!names || SSL_CTX_load_verify_locations(c, f->client_ca, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return err_say(err, -EINVAL, "%s: must be certificates of authorities in PEM: %s",
                       f->client_ca, reason());
    }
    SSL_CTX_set_client_CA_list(c, names);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return 0;
}

/* ---- handshakes ---- */

/* What the client has sent is taken before it is answered: closing would be a reset otherwise,
 * which may overtake the answer. */
static void answer_plain(int fd, const char *answer) {
    char bytes[16 << 10];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n >= 0 || errno == EAGAIN)
        send(fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
}

static void on_failed(const struct tls_watch *w, const SSL *ssl, struct bufferevent *b) {
    unsigned long code = ERR_peek_error();
    const char *why = code ? ERR_reason_error_string(code) : NULL;
    if (!code)
        return; /* it waits for more, or has gone */
    if (ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST)
        answer_plain(SSL_get_fd(ssl), w->plain);
    w->failed(w->arg, b, why ? why : "OpenSSL does not say why");
}

static void on_info(const SSL *ssl, int where, int value) {
    const struct module_connection *c = SSL_get_ex_data(ssl, connection_index);
    const struct tls_watch *w = c ? c->tls->watch : NULL;
    if (!w)
        return;
    if (where & SSL_CB_HANDSHAKE_DONE)
        w->done(w->arg, c->b);
    else if (where == SSL_CB_ACCEPT_EXIT && value <= 0)
        on_failed(w, ssl, c->b);
}

static void release(struct tls *t) {
    if (--t->users)
        return;
    SSL_CTX_free(t->context);
    free(t);
}

static void on_gone(void *ssl, void *value, CRYPTO_EX_DATA *data, int index, long n, void *arg) {
    struct module_connection *c = value;
    if (!c)
        return;
    if (c->b && c->tls->watch)
        c->tls->watch->gone(c->tls->watch->arg, c->b);
    release(c->tls);
    free(c);
}

/* No session is resumed: it would be one more thing to keep, and connections are kept. A client can
 * ask for one handshake, not for any number of them. */
static void set_up(struct tls *t) {
    SSL_CTX *c = t->context;
    SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
    SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
    SSL_CTX_set_options(c, SSL_OP_IGNORE_UNEXPECTED_EOF); /* requests say their length */
#endif
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(c, 0);
    /* libevent may have moved what it gives once more; idle connections keep no buffers. */
    SSL_CTX_set_mode(c, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(c, no_passphrase);
    SSL_CTX_set_info_callback(c, on_info);
}

/* ---- the whole ---- */

static struct tls *tls_close(struct tls *t) {
    t->watch = NULL;
    release(t);
    return NULL;
}

static struct tls *tls_open(const struct tls_files *files, struct err *err) {
    struct tls *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    t->users = 1;
    t->context = SSL_CTX_new(TLS_server_method());
    if (connection_index < 0)
        connection_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, on_gone);
    if (!t->context || connection_index < 0) {
        err_say(err, -ENOEXEC, "OpenSSL does not start: %s", reason());
        return tls_close(t);
    }
    set_up(t);
    if (read_cert(t->context, files, err) < 0 || read_key(t->context, files, err) < 0 ||
        read_client_ca(t->context, files, err) < 0)
        return tls_close(t);
    return t;
}

/* With a connection it is told of ssl's end. */
static bool attach(struct tls *t, SSL *ssl, struct bufferevent *b) {
    struct module_connection *c = malloc(sizeof(*c));
    if (!c)
        return false;
    *c = (struct module_connection){.tls = t, .b = b};
    t->users++;
    if (SSL_set_ex_data(ssl, connection_index, c) == 1)
        return true;
    free(c);
    t->users--;
    return false;
}

/* The bufferevent takes over ssl. */
static struct bufferevent *tls_accept(struct tls *t, struct event_base *base,
                                      const struct tls_watch *watch) {
    SSL *ssl = SSL_new(t->context);
    struct bufferevent *b = NULL;
    t->watch = watch;
    if (ssl)
        b = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                           BEV_OPT_CLOSE_ON_FREE);
    if (b && attach(t, ssl, b))
        return b;
    if (b)
        bufferevent_free(b);
    else
        SSL_free(ssl);
    return NULL;
}

const struct tls_module rankrun_tls = {
    .version = TLS_VERSION,
    .libevent = LIBEVENT_VERSION_NUMBER,
    .open = tls_open,
    .close = tls_close,
    .accept = tls_accept,
};
