/* The command line of rankrun. */
#include "base/str.h"
#include "harness/launch/launchers.h"
#include "harness/launch/words.h"

static void put_conf(struct words *w, const struct job_spec *job) {
    BUF_FINI struct buf conf = {0};
    for (size_t i = 0; i < job->rdzv_conf_n; i++)
        buf_printf(&conf, "%s%s=%s", i ? "," : "", job->rdzv_conf[i].key, job->rdzv_conf[i].value);
    if (conf.len) {
        words_add(w, "--rdzv_conf");
        words_put(w, "%s", buf_str(&conf));
    }
}

/* Ours by its bare name lies beside rankquake; another is named by its path. */
static void put_program(struct words *w, const struct launch *l) {
    const char *const *argv = l->plan->scenario->job.launcher_argv;
    if (!argv || (str_eq(argv[0], "rankrun") && !argv[1]))
        words_put(w, "%s/rankrun", l->bin);
    else
        words_add_all(w, argv);
}

static const char *const *agent_argv(struct arena *a, const struct launch *l) {
    struct words w = {.arena = a};
    put_program(&w, l);
    words_put_job(&w, l);
    if (l->plan->endpoint) {
        words_add(&w, "--local_addr");
        words_add(&w, plan_node_host(l->node));
    }
    put_conf(&w, &l->plan->scenario->job);
    words_add_all(&w, l->args);
    words_put_worker(&w, l);
    return w.v;
}

const struct launcher launcher_rankrun = {
    .name = "rankrun",
    .text = "RankQuake's own: takes torchrun's command line",
    .shows_token = true,
    .agent_argv = agent_argv,
    .agent_env = words_worker_env,
};
