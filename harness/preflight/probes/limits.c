/* Whether the limits of whoever runs jobs leave them room. */
#include "harness/preflight/probe.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILES_LEAST = 4096, PROCESSES_LEAST = 4096, LOCKED_LEAST_MB = 64 };

/* The hard one: up to there a program may help itself. */
static void put_limit(struct json_writer *w, const char *key, int what) {
    struct rlimit l;
    bool known = getrlimit(what, &l) == 0 && l.rlim_max != RLIM_INFINITY;
    json_put_i64(w, key, known ? (int64_t)l.rlim_max : -1); /* -1: none */
}

/* How many hosts of its own network the kernel remembers the cards of; of those beyond, packets are lost, now
 * and then and of any of them. -1: it is not told, as in a network namespace. */
static int64_t neighbours_most(void) {
    BUF_FINI struct buf text = {0};
    ARENA_FINI struct arena a = {0};
    int64_t most = -1;
    file_read("/proc/sys/net/ipv4/neigh/default/gc_thresh3", 64, &text, NULL);
    str_to_i64(arena_strndup(&a, buf_str(&text), strcspn(buf_str(&text), "\n")), 0, INT64_MAX,
               &most);
    return most;
}

static void look(const struct json *given, struct json_writer *w) {
    (void)given;
    put_limit(w, "nofile", RLIMIT_NOFILE);
    put_limit(w, "nproc", RLIMIT_NPROC);
    put_limit(w, "memlock", RLIMIT_MEMLOCK);
    json_put_i64(w, "neighbours", neighbours_most());
    json_put_bool(w, "rdma", access("/sys/class/infiniband", F_OK) == 0);
}

static void check(struct probing *p, size_t i, const struct json *v, const char *key, int64_t least,
                  const char *for_what) {
    int64_t is = json_get_i64(v, key, -1);
    if (is >= 0 && is < least)
        probe_fail(
            p, "%s: %s is %lld, and %s needs %lld: raise it in /etc/security/limits.d or the unit",
            p->v[i].host, key, (long long)is, for_what, (long long)least);
}

static void ask(struct probing *p) {
    const struct json **v = probe_look_all(p);
    for (size_t i = 0; i < p->n; i++) {
        if (!v[i])
            continue;
        check(p, i, v[i], "nofile", FILES_LEAST, "a store of many ranks");
        check(p, i, v[i], "nproc", PROCESSES_LEAST, "a node of many workers and loaders");
        if (json_get_bool(v[i], "rdma", false)) /* it pins what it sends */
            check(p, i, v[i], "memlock", (int64_t)LOCKED_LEAST_MB << 20, "RDMA");
        int64_t most = json_get_i64(v[i], "neighbours", -1);
        if (most >= 0 && most < (int64_t)p->n)
            probe_fail(p,
                       "%s: its kernel remembers %lld neighbours, of %zu hosts: raise "
                       "net.ipv4.neigh.default.gc_thresh3",
                       p->v[i].host, (long long)most, p->n);
    }
    probe_pass(p, "open files, processes and locked memory suffice");
}

const struct probe probe_limits = {
    .name = "limits",
    .text = "room for open files, processes and, with RDMA, locked memory",
    .within_ns = INT64_C(5) * 1000000000,
    .look = look,
    .ask = ask,
};
