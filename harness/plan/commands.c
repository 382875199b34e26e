/* What a run starts because the scenario says so, by where: in the nodes, or on the host. */
#include "base/str.h"
#include "harness/plan/entries.h"
#include "harness/plan/features.h"
#include "harness/plan/interpreter.h"

#include <stdio.h>
#include <string.h>

void plan_put_words(const char *const *words, struct buf *out) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=+@%:,";
    for (size_t i = 0; words[i]; i++) {
        bool quote = !*words[i] || words[i][strspn(words[i], plain)];
        buf_puts(out, i ? " " : "");
        buf_puts(out, quote ? "'" : "");
        for (const char *p = words[i]; *p; p++)
            if (*p == '\'')
                buf_puts(out, "'\\''");
            else
                buf_putc(out, *p);
        buf_puts(out, quote ? "'" : "");
    }
}

static const char *words_of(struct plan *p, const char *const *words) {
    BUF_FINI struct buf text = {0};
    plan_put_words(words, &text);
    return arena_strdup(&p->arena, buf_str(&text));
}

static const char *shell_words(struct plan *p, const char *command) {
    return words_of(p, (const char *const[]){"/bin/sh", "-c", command, NULL});
}

struct commands_list {
    struct plan *plan;
    struct plan_command *v;
    size_t n;
};

static struct plan_command *add(struct commands_list *l, const char *key, struct place place,
                                const char *words, const char *when) {
    l->v[l->n] = (struct plan_command){.key = key, .place = place, .words = words, .when = when};
    return &l->v[l->n++];
}

/* ---- on the host ---- */

static void add_features(struct commands_list *l) {
    const struct scenario *s = l->plan->scenario;
    for (size_t i = 0; i < s->features_n; i++) {
        const char *command = features_command(s->features[i]);
        if (command)
            add(l, "feature", s->features_place, shell_words(l->plan, command),
                "before the run, and must end with 0");
    }
}

static void add_build(struct commands_list *l) {
    const struct build_spec *b = &l->plan->scenario->job.build;
    if (b->run)
        add(l, "job.build", b->place, words_of(l->plan, b->run),
            "before the run, where no build of the same inputs is kept")
            ->is_keyed = true;
}

static void add_interpreters(struct commands_list *l) {
    struct plan *p = l->plan;
    const struct job_spec *j = &p->scenario->job;
    const char *python = j->needs_n ? needs_python(p) : NULL;
    BUF_FINI struct buf modules = {0};
    for (size_t i = 0; i < j->needs_n; i++)
        buf_printf(&modules, "%s%s", i ? ", " : "", j->needs[i]);
    if (python)
        add(l, "job.needs", j->needs_place,
            words_of(p, (const char *const[]){python, "-c", "...", NULL}),
            arena_printf(&p->arena, "before the run: whether it has the module%s %s",
                         j->needs_n > 1 ? "s" : "", buf_str(&modules)))
            ->is_asked = true;
    if (p->python.path)
        add(l, "launcher", j->launcher_place,
            words_of(p, (const char *const[]){p->python.path, "-c", "...", NULL}),
            "before the run: asks Python for its version and torch's")
            ->is_asked = true;
}

/* The node that a URL names, NULL: none. */
static const struct plan_node *node_of_url(const struct plan *p, const char *url) {
    char host[64];
    const char *from = strstr(url, "://");
    if (!from)
        return NULL;
    snprintf(host, sizeof(host), "%.*s", (int)strcspn(from + 3, ":/?#"), from + 3);
    return plan_find_node(p, host);
}

static void add_probe(struct commands_list *l, const struct own_probe *o) {
    struct plan *p = l->plan;
    const char *key = arena_printf(&p->arena, "probe.%s", o->name);
    const struct plan_node *at = o->on    ? plan_find_node(p, o->on)
                                 : o->url ? node_of_url(p, o->url)
                                          : NULL;
    const char *where =
        at ? arena_printf(&p->arena, "in the network of %s", at->name) : "in this host's network";
    if (o->url) {
        struct plan_command *c = add(
            l, key, o->place, words_of(p, (const char *const[]){"rankquake", "ask", o->url, NULL}),
            arena_printf(&p->arena, "again and again while the job runs, %s", where));
        c->is_ours = true;
        c->nodes = at ? at->name : NULL;
        return;
    }
    add(l, key, o->place, words_of(p, o->cmd),
        at ? arena_printf(
                 &p->arena,
                 "again and again while the job runs, %s and with its files, but among the "
                 "processes of this host",
                 where)
           : "again and again while the job runs");
}

static void add_probes(struct commands_list *l) {
    for (size_t i = 0; i < l->plan->scenario->probes_n; i++)
        add_probe(l, &l->plan->scenario->probes[i]);
}

static void add_judges(struct commands_list *l) {
    const struct scenario *s = l->plan->scenario;
    struct plan *p = l->plan;
    if (s->job.checkpoint_complete)
        add(l, "job.checkpoint.complete", s->job.complete_place,
            shell_words(p, s->job.checkpoint_complete),
            "at the end of every round, in the directory of the checkpoints");
    for (size_t i = 0; i < s->checks_n; i++)
        add(l, arena_printf(&p->arena, "checks.%s", s->checks[i].name), s->checks[i].place,
            words_of(p, s->checks[i].program), "when the run is judged");
}

/* Of ssh the words before the host and the host; what it starts there is rankquake-node. */
static const char *reaching(struct plan *p, const struct provider *provider, const char *host) {
    const struct cluster_spec *c = &p->scenario->cluster;
    const struct provider_wish wish = {.ssh = c->ssh, .program = "rankquake-node"};
    if (provider->copies)
        return arena_printf(&p->arena, "%s %s", c->ssh ? c->ssh : provider->name, host);
    return words_of(p, provider->reach(&wish, host, &p->arena));
}

/* Whoever reaches them is started here. */
static void add_hosts(struct commands_list *l) {
    const struct cluster_spec *c = &l->plan->scenario->cluster;
    struct plan *p = l->plan;
    const struct provider *provider = provider_find(provider_names[c->provider]);
    const char *const *names;
    size_t n;
    if (!provider || hosts_name(c, &p->arena, &names, &n, NULL) != 0)
        return; /* why not is said where they are asked */
    for (int i = 0; i < c->nodes && (size_t)i < n; i++)
        add(l, c->hosts ? "cluster.hosts" : "cluster.provider",
            c->hosts ? c->hosts_place : c->provider_place, reaching(p, provider, names[i]),
            arena_printf(&p->arena, "to reach the host of n%d, as long as the run lasts", i))
            ->is_reaching = true;
}

static void add_power(struct commands_list *l) {
    const struct power_spec *o = &l->plan->scenario->cluster.power;
    if (!o->off)
        return;
    add(l, "cluster.power.off", o->place, words_of(l->plan, o->off),
        "when a host is to lose its power");
    add(l, "cluster.power.on", o->place, words_of(l->plan, o->on),
        "when a host that has lost it is to have it again, at the end of the run at the latest");
}

/* ---- in the nodes ---- */

static const char *names_of(struct plan *p, bool stores) {
    BUF_FINI struct buf names = {0};
    for (size_t i = 0; i < p->nodes_n; i++)
        if (p->nodes[i].is_store == stores)
            buf_printf(&names, "%s%s", names.len ? " " : "", p->nodes[i].name);
    return names.len ? arena_strdup(&p->arena, buf_str(&names)) : NULL;
}

static void add_in_nodes(struct commands_list *l) {
    struct plan *p = l->plan;
    const struct job_spec *j = &p->scenario->job;
    const struct cluster_spec *c = &p->scenario->cluster;
    bool etcd = c->store == STORE_ETCD || c->store == STORE_ETCD_3;
    const char *nodes = names_of(p, false), *stores = names_of(p, true);
    const char *const *launcher = p->launcher ? p->launcher : j->launcher_argv;
    const char *const rankrun[] = {"rankrun", NULL};
    if (stores)
        add(l, "cluster.store", c->store_place, etcd ? "etcd" : "rankrun store", "before the job")
            ->nodes = stores;
    add(l, "launcher", j->launcher_place, words_of(p, launcher ? launcher : rankrun),
        "as the agent of each")
        ->nodes = nodes;
    add(l, "job.run", j->run_place, words_of(p, j->run), "as every worker")->nodes = nodes;
}

void plan_find_commands(struct plan *p) {
    const struct scenario *s = p->scenario;
    if (p->commands)
        return;
    interpreter_find(p, NULL);
    size_t most = s->features_n + s->probes_n + s->checks_n + 9 +
                  (s->cluster.provider ? (size_t)s->cluster.nodes : 0);
    struct commands_list l = {p, arena_array(&p->arena, struct plan_command, most), 0};
    add_hosts(&l);
    add_power(&l);
    add_features(&l);
    add_build(&l);
    add_interpreters(&l);
    add_probes(&l);
    add_judges(&l);
    add_in_nodes(&l);
    p->commands = l.v;
    p->commands_n = l.n;
}

static bool is_news(const struct plan *p, const struct plan_command *c) {
    return !c->nodes && !(c->is_asked && p->untrusted) && !(c->is_reaching && p->hosts_said);
}

void plan_put_outside(struct plan *p, struct texts *said, struct buf *out) {
    plan_find_commands(p);
    for (size_t i = 0; i < p->commands_n; i++) {
        const struct plan_command *c = &p->commands[i];
        const char *line =
            arena_printf(&p->arena, "on this host, %s: %s (%s)\n", c->when, c->words, c->key);
        if (!is_news(p, c) || texts_has(said, line))
            continue;
        texts_add(said, "%s", line);
        buf_puts(out, line);
    }
}

/* ---- what a stranger may not ask for ---- */

/* Everything that a node's own directories are called by. */
static bool is_in_node(const char *dir) {
    static const char *const own[] = {"{shared}", "{disk}", "{tmp}", "{out}"};
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (str_starts(dir, own[i]) && !strstr(dir, ".."))
            return true;
    return false;
}

static void refuse_command(const struct plan_command *c, struct diagnostics *d) {
    if (c->is_ours)
        diagnostics_add(d, c->place,
                        "%s: --untrusted asks nobody in this host's network; it would have asked, "
                        "with: %s",
                        c->key, c->words);
    else
        diagnostics_add(d, c->place,
                        "%s: --untrusted starts nothing outside of the nodes; it would have "
                        "executed, %s: %s",
                        c->key, c->when, c->words);
}

static void refuse_reading(const struct planned_entry *e, struct diagnostics *d) {
    const char *path = e->fault && e->fault->reads ? e->fault->reads(&e->args) : NULL;
    if (path)
        diagnostics_add(d, e->entry->place,
                        "%s: --untrusted reads no file of this host, and it would copy %s",
                        e->entry->id, path);
}

void plan_refuse_outside(struct plan *p, struct diagnostics *d) {
    const struct job_spec *j = &p->scenario->job;
    plan_find_commands(p);
    for (size_t i = 0; i < p->commands_n; i++)
        if (!p->commands[i].nodes && !p->commands[i].is_asked)
            refuse_command(&p->commands[i], d);
    if (p->scenario->cluster.privileged)
        diagnostics_add(d, p->scenario->cluster.place,
                        "cluster.privileged: --untrusted gives a job no rights of yours");
    for (size_t i = 0; i < p->entries_n; i++)
        refuse_reading(&p->entries[i], d);
    if (j->checkpoint_dir && !is_in_node(j->checkpoint_dir))
        diagnostics_add(d, j->run_place,
                        "job.checkpoint.dir: --untrusted reads no directory of this host; %s is "
                        "not below {shared}, {disk}, {tmp} or {out}",
                        j->checkpoint_dir);
}
