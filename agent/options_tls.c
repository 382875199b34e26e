/* The certificate with which a store is served. */
#include "agent/options_given.h"
#include "base/str.h"

#include <errno.h>
#include <stddef.h>

static const struct field {
    const char *name;
    size_t offset;
} fields[] = {
    {"store_cert", offsetof(struct tls_files, cert)},
    {"store_key", offsetof(struct tls_files, key)},
    {"store_client_ca", offsetof(struct tls_files, client_ca)},
};

int options_set_tls(struct tls_files *f, const char *name, const char *value) {
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (str_eq(name, fields[i].name)) {
            *(const char **)(void *)((char *)f + fields[i].offset) = value;
            return 1;
        }
    return 0;
}

static int check_complete(const struct tls_files *f, const char *before, const char *const names[3],
                          struct err *err) {
    const char *alone = f->key ? f->key : f->client_ca;
    if (f->cert || !alone)
        return 0;
    return err_say(err, -EINVAL, "%s%s: the certificate of the store is missing: %s", before,
                   f->key ? names[1] : names[2], names[0]);
}

/* What serves TLS is asked by TLS, by each agent with the same command line. */
int options_settle_tls(struct options_rdzv *r, struct err *err) {
    static const char *const names[] = {"store_cert=FILE", "store_key", "store_client_ca"};
    if (check_complete(&r->tls, "--rdzv-conf ", names, err) < 0)
        return -EINVAL;
    if (r->tls.cert && r->access.plain)
        return err_say(err, -EINVAL,
                       "--rdzv-conf store_cert=%s: a store with a certificate speaks https, and "
                       "protocol=http was given",
                       r->tls.cert);
    if (r->tls.cert)
        r->access.https = true;
    return 0;
}

int options_settle_store_tls(struct tls_files *f, const struct options_given *g, struct err *err) {
    static const char *const names[] = {"--cert FILE", "--key", "--client-ca"};
    *f = (struct tls_files){.cert = g->cert, .key = g->key, .client_ca = g->client_ca};
    return check_complete(f, "", names, err);
}
