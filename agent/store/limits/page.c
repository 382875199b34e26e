#include "agent/store/limits/page.h"

#include "base/sys/tcp.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* RFC 6761, RFC 6762, RFC 8375, RFC 9476; "internal" is ICANN's for private networks, "svc" of
 * Kubernetes. */
static const char *const private_domains[] = {"localhost", "local", "internal", "home.arpa",
                                              "test",      "alt",   "svc",      "cluster.local"};

static bool is_address(const char *name) {
    unsigned char bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

static bool is_below(const char *name, const char *domain) {
    size_t n = strlen(name), m = strlen(domain);
    return n > m && name[n - m - 1] == '.' && strcasecmp(name + n - m, domain) == 0;
}

static bool is_private(const char *name) {
    for (size_t i = 0; i < sizeof(private_domains) / sizeof(*private_domains); i++)
        if (is_below(name, private_domains[i]))
            return true;
    return !strchr(name, '.');
}

/* Of this host: its name, alone or with a domain behind it. */
static bool is_own(const char *name) {
    char own[TCP_HOST_MAX] = "";
    gethostname(own, sizeof(own) - 1);
    size_t n = strlen(own);
    return n && strncasecmp(name, own, n) == 0 && (!name[n] || name[n] == '.');
}

static bool is_allowed(const char *name, const char *allowed) {
    size_t n = strlen(name);
    while (allowed && *allowed) {
        size_t m = strcspn(allowed, ",");
        if (m == n && strncasecmp(allowed, name, n) == 0)
            return true;
        allowed += m + (allowed[m] == ',');
    }
    return false;
}

const char *page_refuses(const char *origin, const char *host, const char *allowed) {
    struct tcp_endpoint e;
    if (origin)
        return "this store answers no web page: the request has an Origin";
    if (!host || !host[0])
        return NULL;
    if (tcp_endpoint_parse(host, 1, &e, NULL) < 0)
        return "this store does not understand the Host of this request";
    size_t n = strlen(e.host);
    if (n && e.host[n - 1] == '.')
        e.host[n - 1] = '\0';
    if (is_address(e.host) || is_private(e.host) || is_own(e.host) || is_allowed(e.host, allowed))
        return NULL;
    return "this store does not know the name of the Host of this request as its own: ask for it "
           "by its address, or start it with --allow-host NAME";
}
