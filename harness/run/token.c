/* The store of a run is the run's own: its agents show it a token that nobody else is told. It goes
 * by the environment and into no file. */
#include "harness/run/token.h"

#include "base/str.h"
#include "base/sys/random.h"
#include "harness/launch/launcher.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

#define VARIABLE "RANKRUN_STORE_TOKEN"

struct token {
    const char *entry;
};

/* The scenario, or whoever started us, has said one. */
static bool is_said(const struct job_spec *job) {
    bool said = getenv(VARIABLE);
    for (size_t i = 0; i < job->env_n; i++)
        said |= str_eq(job->env[i].key, VARIABLE);
    for (size_t i = 0; i < job->rdzv_conf_n; i++)
        said |= str_starts(job->rdzv_conf[i].key, "token");
    return said;
}

static void draw(struct engine *e) {
    struct token *t = own(e, token);
    const struct plan *p = e->plan;
    if (p->endpoint && str_eq(p->backend, "embedded") && launcher_of(p)->shows_token &&
        !is_said(&p->scenario->job))
        t->entry = arena_printf(&e->arena, VARIABLE "=%016" PRIx64 "%016" PRIx64, random_u64(),
                                random_u64());
}

const char *token_entry(const struct engine *e) {
    return own(e, token)->entry;
}

const char *token_of(const struct engine *e) {
    const char *entry = token_entry(e);
    return entry ? entry + strlen(VARIABLE "=") : "";
}

static const char *const *with(struct arena *a, const char *entry) {
    size_t n = 0;
    if (!entry)
        return NULL;
    while (environ[n])
        n++;
    const char **env = arena_array(a, const char *, n + 2);
    memcpy(env, environ, n * sizeof(*env));
    env[n] = entry;
    env[n + 1] = NULL;
    return env;
}

const char *const *token_env(const struct engine *e, struct arena *a) {
    return with(a, token_entry(e));
}

/* Whether what stands behind http:// is a node that serves the store, at its port. */
static bool is_store(const struct plan *p, struct arena *a, const char *rest) {
    for (size_t i = 0; i < p->nodes_n; i++) {
        const struct plan_node *n = &p->nodes[i];
        if (plan_serves_store(p, n) &&
            (str_starts(rest, arena_printf(a, "%s:%d/", n->name, PLAN_STORE_PORT)) ||
             str_starts(rest, arena_printf(a, "%s:%d/", n->addr, PLAN_STORE_PORT))))
            return true;
    }
    return false;
}

/* A token is for the store alone: another server is not shown it. */
const char *const *token_env_for(const struct engine *e, struct arena *a, const char *url) {
    static const char http[] = "http://";
    const char *entry = token_entry(e);
    bool ours = entry && str_starts(url, http) && is_store(e->plan, a, url + strlen(http));
    return with(a, ours ? arena_printf(a, "RANKQUAKE_TOKEN=%s", entry + sizeof(VARIABLE)) : NULL);
}

const struct run_part run_part_token = {
    .size = sizeof(struct token),
    .begin = draw,
};
