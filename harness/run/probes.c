/* What the scenario asks from outside, from steady state until the job ends. */
#include "harness/run/engine.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/observe/question.h"
#include "harness/run/programs.h"
#include "harness/run/token.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* A question of the user's, again and again: a command, or rankquake itself that asks a server. It
 * is not waited for: it is a child beside the loop, and its end or its deadline is an event as any
 * other. */

enum { ANSWER_MAX = 1 << 16, VALUE_SHOWN = 160, STATUS_SHOWN = 1 << 15 };

struct probes_asked {
    struct probes *owner;
    const struct own_probe *probe;
    struct node *node;         /* NULL: on the host */
    struct question *question; /* NULL: none is open */
    int64_t since_ns;
    struct loop_source *on_time;
};

struct probes {
    struct engine *engine;
    struct probes_asked *v;
    size_t n;
    int64_t steady_ns;
    char cwd[4096];
};

/* ---- an answer ---- */

/* What `rankrun status` has answered, in either of its forms: the check said reads all of it. */
static bool is_status(const char *said) {
    return str_starts(said, "job            ") || str_starts(said, "{\"run_id\":");
}

static void record(struct probes_asked *a, const char *said, bool ok, const char *error) {
    struct engine *e = a->owner->engine;
    struct json_writer *w = engine_record(e, SOURCE_USER, "answer");
    if (a->node)
        json_put_string(w, "node", node_plan(a->node)->name);
    json_put_string(w, "probe", a->probe->name);
    json_put_bool(w, "ok", ok);
    json_put_stringn(w, "value", said, strnlen(said, VALUE_SHOWN));
    if (is_status(said))
        json_put_stringn(w, "status", said, strnlen(said, STATUS_SHOWN));
    if (error)
        json_put_string(w, "error", error);
    json_put_i64(w, "took_ns", clock_monotonic_ns() - a->since_ns);
    engine_recorded(e);
}

static void next(struct probes_asked *a) {
    loop_timer_at(a->on_time, a->since_ns + a->probe->every_ns);
}

static void on_answer(void *arg, const struct question_answer *given) {
    struct probes_asked *a = arg;
    const struct own_probe *p = a->probe;
    char why[240] = "", *said = given->text;
    size_t n = strlen(said);
    while (n && strchr(" \t\r\n", said[n - 1]))
        said[--n] = '\0';
    if (given->late)
        snprintf(why, sizeof(why), "no answer within %lld ms", (long long)(p->within_ns / 1000000));
    else if (given->ended && p->url && *said) /* rankquake ask has said why */
        str_copy(why, sizeof(why), said);
    else if (given->ended)
        str_copy(why, sizeof(why), given->ended);
    else if (!tolerance_fits(p->tolerance, said))
        snprintf(why, sizeof(why), "not within %.100s", p->tolerance);
    a->question = NULL;
    next(a); /* before the record, whose listener may end it all */
    record(a, given->ended && p->url ? "" : said, !*why, *why ? why : NULL);
}

/* ---- a question ---- */

/* Who asks a server keeps our files: it is rankquake, which the node's need not have. It knows no
 * names of nodes: it is told their addresses. */
static const char *const *ask_argv(const struct probes_asked *a, struct arena *m,
                                   const struct places *to) {
    const struct plan *p = a->owner->engine->plan;
    const char **v = arena_array(m, const char *, p->nodes_n + 5);
    size_t n = 0;
    v[n++] = "rankquake";
    v[n++] = "ask";
    v[n++] = placeholders_fill(m, a->probe->url, to);
    v[n++] = a->probe->metric ? a->probe->metric : "";
    for (size_t i = 0; i < p->nodes_n; i++)
        v[n++] = arena_printf(m, "%s=%s", p->nodes[i].name, p->nodes[i].addr);
    return v;
}

/* A command that lies beside us is found there, as the job's program is. NULL: by the PATH. */
static const char *beside_us(struct arena *m, const struct own_probe *p) {
    char folder[PATH_MAX];
    const char *name = p->cmd[0],
               *path = arena_printf(m, "%s/%s", file_own_folder(folder, sizeof(folder)), name);
    return !strchr(name, '/') && access(path, X_OK) == 0 ? path : NULL;
}

static struct question *start(struct probes_asked *a, struct err *err) {
    struct engine *e = a->owner->engine;
    struct target first = {.pidfd = -1};
    bool apart = e->plan->isolation == ISOLATION_NAMESPACES;
    if (a->node && !node_is_on(a->node)) {
        err_say(err, -ESRCH, "%s is off", node_plan(a->node)->name);
        return NULL;
    }
    if (a->node && apart)
        node_target(a->node, &first);
    ARENA_FINI struct arena arena = {0};
    struct places places = {.shared = cluster_shared_dir(e->cluster),
                            .seed = arena_printf(&arena, "%" PRIu64, e->plan->seed),
                            .disk = a->node ? node_disk_dir(a->node) : "",
                            .out = e->spec->folder->path,
                            .node = a->node ? node_plan(a->node)->name : "",
                            .tmp = a->node ? node_tmp_dir(a->node) : "/tmp"};
    bool by_us = a->probe->url;
    struct question_place to = {first.pidfd, by_us ? CLONE_NEWNET : QUESTION_IN_NODE, a->owner->cwd,
                                e->plan->scenario->cluster.privileged && !by_us};
    FILE_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[] = {null, -1, null};
    const struct question_spec spec = {
        .program = {.argv = by_us ? ask_argv(a, &arena, &places)
                                  : placeholders_fill_all(&arena, a->probe->cmd, a->probe->cmd_n,
                                                          &places),
                    .file = by_us ? "/proc/self/exe" : beside_us(&arena, a->probe),
                    .envp = by_us ? token_env_for(e, &arena, a->probe->url) : token_env(e, &arena),
                    .fds = fds,
                    .keep = &to.pidfd,
                    .keep_n = to.pidfd >= 0,
                    .in_child = question_enter,
                    .in_child_arg = &to},
        .bytes_max = ANSWER_MAX,
        .within_ns = a->probe->within_ns};
    struct question *q = question_ask(e->loop, &spec, on_answer, a, err);
    return q;
}

static void ask(struct probes_asked *a) {
    struct err err = {0};
    a->since_ns = clock_monotonic_ns();
    a->question = start(a, &err);
    if (a->question)
        return;
    next(a);
    record(a, "", false, err.msg);
}

static void on_time(void *arg, int64_t now) {
    struct probes_asked *a = arg;
    if (!a->probe->until_ns || now < a->owner->steady_ns + a->probe->until_ns)
        ask(a);
}

/* ---- the whole ---- */

/* Where it is asked: the node that is named, or that the URL is of. NULL: on the host. */
static struct node *place_of(struct engine *e, const struct own_probe *p) {
    char host[64];
    const char *from = p->url && !p->on ? strstr(p->url, "://") : NULL;
    if (p->on)
        return cluster_node(e->cluster, p->on);
    if (!from)
        return NULL;
    snprintf(host, sizeof(host), "%.*s", (int)strcspn(from + 3, ":/?#"), from + 3);
    return plan_find_node(e->plan, host) ? cluster_node(e->cluster, host) : NULL;
}

static void begin_at_steady(struct engine *e, const struct record *r) {
    const struct scenario *s = e->plan->scenario;
    struct probes *p = own(e, probes);
    if (!record_is(r, "steady"))
        return;
    struct probes_asked *v = arena_array(&e->arena, struct probes_asked, s->probes_n);
    *p = (struct probes){.engine = e, .v = v, .n = s->probes_n, .steady_ns = clock_monotonic_ns()};
    if (!getcwd(p->cwd, sizeof(p->cwd)))
        str_copy(p->cwd, sizeof(p->cwd), "/");
    for (size_t i = 0; i < p->n; i++) {
        v[i] = (struct probes_asked){.owner = p, .probe = &s->probes[i]};
        v[i].node = place_of(e, v[i].probe);
        v[i].on_time = loop_timer(e->loop, on_time, &v[i]);
        loop_timer_at(v[i].on_time, p->steady_ns);
    }
}

/* What is being asked is ended unheard. */
static void close_probes(struct engine *e) {
    struct probes *p = own(e, probes);
    for (; p->n; p->n--) {
        question_abandon(p->v[p->n - 1].question);
        loop_source_free(p->v[p->n - 1].on_time);
    }
}

static void end(struct engine *e, const char *why) {
    close_probes(e);
}

const struct run_part run_part_probes = {
    .size = sizeof(struct probes),
    .record = begin_at_steady,
    .end = end,
    .close = close_probes,
};
