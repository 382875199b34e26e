/* The command line of a store: rankrun's own, or a member of an etcd. */
#include "base/str.h"
#include "harness/launch/words.h"

static bool is_etcd(const struct plan *p) {
    return p->scenario->cluster.store == STORE_ETCD || p->scenario->cluster.store == STORE_ETCD_3;
}

static void put_url(struct words *w, const char *option, const char *host, int port) {
    words_add(w, option);
    words_put(w, "http://%s:%d", host, port);
}

/* Every member knows the others from the beginning; one that comes again has it on its disk. */
static void put_members(struct words *w, const struct plan *p) {
    BUF_FINI struct buf members = {0};
    for (size_t i = 0; i < p->nodes_n; i++)
        if (p->nodes[i].is_store)
            buf_printf(&members, "%s%s=http://%s:%d", members.len ? "," : "", p->nodes[i].name,
                       plan_node_host(&p->nodes[i]), PLAN_STORE_PORT + 1);
    words_add(w, "--initial-cluster");
    words_put(w, "%s", buf_str(&members));
}

static void put_etcd(struct words *w, const struct launch *l) {
    const char *name = l->node->name, *addr = l->node->addr, *host = plan_node_host(l->node);
    words_add(w, "etcd");
    words_add(w, "--name");
    words_add(w, name);
    words_add(w, "--data-dir");
    words_put(w, "%s/%s", l->disk, store_data(l->plan));
    /* etcd listens to addresses, not to names. */
    words_add(w, "--listen-client-urls");
    if (l->node->by_address)
        words_put(w, "http://%s:%d", addr, PLAN_STORE_PORT);
    else
        words_put(w, "http://%s:%d,http://127.0.0.1:%d", addr, PLAN_STORE_PORT, PLAN_STORE_PORT);
    put_url(w, "--advertise-client-urls", host, PLAN_STORE_PORT);
    put_url(w, "--listen-peer-urls", addr, PLAN_STORE_PORT + 1);
    put_url(w, "--initial-advertise-peer-urls", host, PLAN_STORE_PORT + 1);
    put_members(w, l->plan);
    if (l->plan->scenario->cluster.store_quota_mb) {
        words_add(w, "--quota-backend-bytes");
        words_put(w, "%lld", (long long)l->plan->scenario->cluster.store_quota_mb << 20);
    }
    words_add(w, "--logger");
    words_add(w, "zap");
    if (str_eq(l->plan->backend, "etcd-v2") || str_eq(l->plan->backend, "etcd"))
        words_add(w, "--enable-v2");
}

const char *const *store_argv(struct arena *a, const struct launch *l) {
    struct words w = {.arena = a};
    if (is_etcd(l->plan)) {
        put_etcd(&w, l);
        return w.v;
    }
    words_put(&w, "%s/rankrun", l->bin);
    words_add(&w, "store");
    words_add(&w, "--host");
    words_add(&w, plan_node_listen(l->node));
    words_add(&w, "--port");
    words_put(&w, "%d", PLAN_STORE_PORT);
    for (size_t i = 0; i < l->plan->scenario->cluster.store_args_n; i++)
        words_add(&w, l->plan->scenario->cluster.store_args[i]);
    return w.v;
}

const char *store_data(const struct plan *p) {
    return is_etcd(p) ? "etcd" : NULL;
}

const char *store_ready_line(const struct plan *p) {
    return is_etcd(p) ? "serving client traffic insecurely" : "store: listening on ";
}
