#include "agent/host_name.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/lookup.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t PATIENCE_NS = 3000000000;

struct host_check {
    struct loop *loop;
    struct loop_source *timer;
    struct lookup *lookup; /* NULL: it could not be begun, or has ended */
    struct tcp_endpoint addr;
    host_check_fn *fn;
    void *arg;
};

static bool is_among(const struct tcp_endpoint *addr, const struct tcp_address *found, int n) {
    struct tcp_address own;
    if (tcp_resolve_number(addr, &own, 1) != 1)
        return false;
    for (int i = 0; i < n; i++)
        if (found[i].len == own.len && memcmp(found[i].bytes, own.bytes, own.len) == 0)
            return true;
    return false;
}

/* ---- the own one ---- */

/* What the system calls the canonical name. */
static bool full_name(char ret[TCP_HOST_MAX]) {
    const struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[TCP_HOST_MAX] = "";
    if (gethostname(host, sizeof(host) - 1) < 0 || getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    bool named = found->ai_canonname && str_copy(ret, TCP_HOST_MAX, found->ai_canonname);
    freeaddrinfo(found);
    return named;
}

const char *host_name_full(struct arena *a) {
    char name[TCP_HOST_MAX];
    return full_name(name) ? arena_strdup(a, name) : NULL;
}

const char *host_name_find(const char *addr, struct arena *a) {
    struct tcp_endpoint name = {0}, number = {0};
    struct tcp_address found[LOOKUP_MAX];
    struct err err;
    if (tcp_number_is_loopback(addr) || !full_name(name.host) ||
        !str_copy(number.host, sizeof(number.host), addr))
        return NULL;
    int n = tcp_resolve(&name, found, LOOKUP_MAX, &err);
    if (str_eq(name.host, addr) || !is_among(&number, found, n))
        return NULL;
    return arena_printf(a, "%s %s", name.host, addr);
}

/* ---- another's ---- */

static void tell(struct host_check *c, bool found) {
    host_check_fn *fn = c->fn;
    void *arg = c->arg;
    host_check_cancel(c);
    fn(arg, found);
}

static void on_found(void *arg, const struct tcp_address *found, int n, const char *why) {
    struct host_check *c = arg;
    c->lookup = NULL;
    tell(c, is_among(&c->addr, found, n));
}

static void on_timer(void *arg, int64_t now_ns) {
    tell(arg, false);
}

struct host_check *host_check_begin(struct loop *l, const char *host, host_check_fn *fn,
                                    void *arg) {
    struct host_check *c = mem_new(struct host_check);
    struct tcp_endpoint name = {0};
    struct err err;
    const char *space = strchr(host, ' ');
    *c = (struct host_check){.loop = l, .fn = fn, .arg = arg};
    c->timer = loop_timer(l, on_timer, c);
    if (space && (size_t)(space - host) < sizeof(name.host)) {
        memcpy(name.host, host, (size_t)(space - host));
        str_copy(c->addr.host, sizeof(c->addr.host), space + 1);
        c->lookup = lookup_begin(l, &name, on_found, c, &err);
    }
    loop_timer_at(c->timer, c->lookup ? clock_monotonic_ns() + PATIENCE_NS : 0);
    return c;
}

struct host_check *host_check_cancel(struct host_check *c) {
    if (!c)
        return NULL;
    lookup_cancel(c->lookup);
    loop_source_free(c->timer);
    free(c);
    return NULL;
}
