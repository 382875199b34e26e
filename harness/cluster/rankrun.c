#include "harness/cluster/launcher.h"

#include <stdarg.h>

enum { WORDS_MAX = 32 };

struct words {
    struct arena *arena;
    const char **v;
    size_t n;
};

static void word(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void word(struct words *w, const char *fmt, ...) {
    struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    w->v[w->n++] = arena_strdup(w->arena, buf_str(&text));
    buf_fini(&text);
}

static void put_rendezvous(struct words *w, const struct plan *p, const struct plan_node *n) {
    const struct job_spec *job = &p->scenario->job;
    word(w, "--nnodes");
    word(w, "%d:%d", job->min_nodes, job->max_nodes);
    word(w, "--rdzv-id");
    word(w, "%s", p->scenario->name);
    word(w, "--rdzv-backend");
    word(w, "embedded");
    word(w, "--rdzv-endpoint");
    word(w, "%s", p->endpoint);
    word(w, "--local-addr");
    word(w, "%s", n->name);
}

static void put_conf(struct words *w, const struct job_spec *job) {
    struct buf conf = {0};
    for (size_t i = 0; i < job->rdzv_conf_n; i++)
        buf_printf(&conf, "%s%s=%s", i ? "," : "", job->rdzv_conf[i].key, job->rdzv_conf[i].value);
    if (conf.len) {
        word(w, "--rdzv-conf");
        word(w, "%s", buf_str(&conf));
    }
    buf_fini(&conf);
}

/* Without a store of its own the job is one node's: the store is in the agent. */
static const char *const *agent_argv(struct arena *a, const struct plan *p,
                                     const struct plan_node *n, const char *bin,
                                     const char *const *run) {
    const struct job_spec *job = &p->scenario->job;
    size_t run_n = 0;
    while (run[run_n])
        run_n++;
    struct words w = {a, arena_array(a, const char *, WORDS_MAX + run_n), 0};
    word(&w, "%s/rankrun", bin);
    if (p->endpoint)
        put_rendezvous(&w, p, n);
    else
        word(&w, "--standalone");
    word(&w, "--nproc-per-node");
    word(&w, "%d", job->workers_per_node);
    word(&w, "--max-restarts");
    word(&w, "%d", job->max_restarts);
    put_conf(&w, job);
    word(&w, "--no-python");
    word(&w, "%s/rankprobe", bin);
    for (size_t i = 0; i < run_n; i++)
        w.v[w.n++] = run[i];
    return w.v;
}

static const char *const *store_argv(struct arena *a, const struct plan *p,
                                     const struct plan_node *n, const char *bin) {
    struct words w = {a, arena_array(a, const char *, WORDS_MAX), 0};
    (void)p, (void)n;
    word(&w, "%s/rankrun", bin);
    word(&w, "store");
    word(&w, "--host");
    word(&w, "0.0.0.0");
    word(&w, "--port");
    word(&w, "%d", PLAN_STORE_PORT);
    return w.v;
}

const struct launcher launcher_rankrun = {
    .name = "rankrun",
    .agent_argv = agent_argv,
    .store_argv = store_argv,
};
