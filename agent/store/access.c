#include "agent/store/access.h"

#include "base/http/http.h"

#include <errno.h>
#include <string.h>

const char *store_access_token(const struct store_access *a) {
    if (a->token)
        return a->token;
    return a->sealed && (*a->sealed)[0] ? *a->sealed : NULL;
}

struct http *store_access_http(struct loop *l, const struct store_access *a, struct err *err) {
    struct http_way way = {0};
    if (!a)
        return http_new(l, &way, err);
    way = (struct http_way){
        .https = a->https,
        .cacert = a->cacert,
        .cert = a->cert,
        .key = a->key,
        .advice = {
            [HTTP_MAY_WANT_TLS] = "; does it want --rdzv-conf protocol=https?",
            [HTTP_MAY_WANT_CERTIFICATE] =
                a->cert ? "; does the store accept the certificate of --rdzv-conf cert=?"
                        : "; it may want a certificate: --rdzv-conf cert=, key=; or it has no TLS",
            [HTTP_NOT_TRUSTED] =
                "; --rdzv-conf cacert= names the file of who signs the store's certificate",
            [HTTP_OWN_CERTIFICATE] =
                "; is --rdzv-conf cert=, key= a certificate and its key in PEM?",
            [HTTP_BAD_CACERT] = "; is --rdzv-conf cacert= a file of certificates in PEM?",
        }};
    struct err why = {0};
    struct http *h = http_new(l, &way, &why);
    if (!h)
        err_say(err, why.code, "%s; a store is reached by https through it", why.msg);
    return h;
}

void store_access_put_origin(struct buf *url, const struct store_access *a,
                             const struct tcp_endpoint *e) {
    buf_puts(url, a && a->https ? "https" : "http");
    buf_printf(url, strchr(e->host, ':') ? "://[%s]:%u" : "://%s:%u", e->host, e->port);
}
