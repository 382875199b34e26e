/* The command line of torchrun. */
#include "base/str.h"
#include "harness/launch/launchers.h"
#include "harness/launch/words.h"

#include <stdlib.h>
#include <string.h>

/* Where all nodes have addresses of one host each would take itself for the one that serves c10d's
 * store. */
static bool serves(const struct launch *l) {
    size_t n = strlen(l->node->addr);
    return strncmp(l->plan->endpoint, l->node->addr, n) == 0 && l->plan->endpoint[n] == ':';
}

/* Since 2.0 a node can be told its address; before, all of one host give its name. */
static void put_address(struct words *w, const struct launch *l) {
    if (!l->node->by_address || atoi(l->plan->python.torch) < 2)
        return;
    words_add(w, "--local_addr");
    words_add(w, l->node->addr);
}

/* torchrun's times are whole seconds; a duration of the scenario is rounded up to them. What it
 * does not know (rankrun's profile) it ignores. */
static void put_conf(struct words *w, const struct launch *l) {
    const struct job_spec *job = &l->plan->scenario->job;
    BUF_FINI struct buf conf = {0};
    for (size_t i = 0; i < job->rdzv_conf_n; i++) {
        const struct pair *c = &job->rdzv_conf[i];
        int64_t ns;
        buf_printf(&conf, "%s%s=", i ? "," : "", c->key);
        if (str_to_duration_ns(c->value, &ns, NULL) == 0)
            buf_printf(&conf, "%lld", (long long)((ns + 999999999) / 1000000000));
        else
            buf_puts(&conf, c->value);
    }
    if (l->node->by_address && str_eq(l->plan->backend, "c10d"))
        buf_printf(&conf, "%sis_host=%s", conf.len ? "," : "", serves(l) ? "true" : "false");
    if (conf.len) {
        words_add(w, "--rdzv_conf");
        words_put(w, "%s", buf_str(&conf));
    }
}

static const char *const *agent_argv(struct arena *a, const struct launch *l) {
    const struct plan *p = l->plan;
    struct words w = {.arena = a};
    words_add_all(&w, p->launcher ? p->launcher : p->scenario->job.launcher_argv);
    words_put_job(&w, l);
    put_conf(&w, l);
    put_address(&w, l);
    words_add_all(&w, p->launcher_quirks);
    words_add_all(&w, l->args);
    words_put_worker(&w, l);
    return w.v;
}

const struct launcher launcher_torchrun = {
    .name = "torchrun",
    .text = "PyTorch's, or any launcher that takes its options",
    .agent_argv = agent_argv,
    .agent_env = words_worker_env,
};
