#include "tests/agent/options_facts.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

static void put(struct options_facts *f, const char *name, const char *text) {
    if (f->n == FACTS_MAX)
        abort(); /* a field more than there is room for */
    f->list[f->n].name = name;
    f->list[f->n++].text = text;
}

static void number(struct options_facts *f, struct arena *a, const char *name, int64_t value) {
    put(f, name, arena_printf(a, "%" PRId64, value));
}

static void flag(struct options_facts *f, const char *name, bool is) {
    put(f, name, is ? "yes" : "-");
}

static void text(struct options_facts *f, struct arena *a, const char *name, const char *value) {
    put(f, name, value ? arena_printf(a, "\"%s\"", value) : "-");
}

static void words(struct options_facts *f, struct arena *a, const char *name,
                  const char *const *list) {
    const char *all = list ? "[" : "-";
    for (const char *const *w = list; w && *w; w++)
        all = arena_printf(a, "%s%s%s", all, w == list ? "" : "|", *w);
    put(f, name, list ? arena_printf(a, "%s]", all) : all);
}

static void streams(struct options_facts *f, struct arena *a, const char *name, const uint8_t *list,
                    int n) {
    const char *all = list ? "" : "-";
    for (int i = 0; list && i < n; i++) {
        int same = 1;
        while (i + same < n && list[i + same] == list[i])
            same++;
        all = same > 8 ? arena_printf(a, "%s(%d times %d)", all, same, list[i])
                       : arena_printf(a, "%s%d", all, list[i]);
        i += same > 8 ? same - 1 : 0;
    }
    put(f, name, all);
}

static void meeting(const struct options *o, struct arena *a, struct options_facts *f) {
    number(f, a, "backend", o->backend);
    flag(f, "standalone", o->standalone);
    number(f, a, "nodes_min", o->nodes_min);
    number(f, a, "nodes_max", o->nodes_max);
    number(f, a, "workers", o->workers_per_node);
    flag(f, "own_etcd", o->own_etcd);
    text(f, a, "run_id", o->run_id);
    text(f, a, "endpoint_host", o->endpoint_host);
    number(f, a, "endpoint_port", o->endpoint_port);
    text(f, a, "endpoints", o->endpoints);
    number(f, a, "max_restarts", o->max_restarts);
    number(f, a, "node_rank", o->node_rank);
    text(f, a, "master_addr", o->master_addr);
    number(f, a, "master_port", o->master_port);
    flag(f, "standby", o->standby);
    flag(f, "gang", o->gang);
    flag(f, "restarts_by_node", o->restarts_by_node);
    text(f, a, "role", o->role);
    text(f, a, "local_addr", o->local_addr);
    number(f, a, "shutdown_ms", o->shutdown_timeout_ms);
}

static void rendezvous(const struct options_rdzv *z, struct arena *a, struct options_facts *f) {
    const struct store_access *s = &z->access;
    text(f, a, "profile", z->profile);
    number(f, a, "hb", z->hb_ms);
    number(f, a, "fence", z->fence_ms);
    number(f, a, "hard", z->hard_ms);
    number(f, a, "suspect", z->suspect_ms);
    number(f, a, "join_timeout", z->join_timeout_ms);
    number(f, a, "last_call", z->last_call_timeout_ms);
    number(f, a, "admit", z->admit_ms);
    number(f, a, "stop_timeout", z->stop_timeout_ms);
    number(f, a, "give_up", z->give_up_ms);
    number(f, a, "free_rounds", z->max_free_rounds);
    text(f, a, "attempt", z->attempt);
    text(f, a, "etcd_prefix", z->etcd_prefix);
    flag(f, "no_lifeline", z->no_lifeline);
    text(f, a, "quarantine", z->quarantine);
    flag(f, "https", s->https);
    flag(f, "plain", s->plain);
    text(f, a, "cacert", s->cacert);
    text(f, a, "cert", s->cert);
    text(f, a, "key", s->key);
    text(f, a, "user", s->user);
    text(f, a, "password", s->password);
    text(f, a, "token", s->token);
    flag(f, "sealed", s->sealed);
    text(f, a, "store_cert", z->tls.cert);
    text(f, a, "store_key", z->tls.key);
    text(f, a, "client_ca", z->tls.client_ca);
}

static void output(const struct options *o, struct arena *a, struct options_facts *f) {
    const struct worker_output *w = &o->output;
    int n = o->workers_per_node;
    text(f, a, "log_dir", w->log_dir);
    streams(f, a, "to_file", w->to_file, n);
    streams(f, a, "tee", w->tee, n);
    streams(f, a, "hidden", (const uint8_t *)w->hidden, n);
    text(f, a, "prefix", w->prefix);
    words(f, a, "out_needles", w->out_needles);
    words(f, a, "err_needles", w->err_needles);
    words(f, a, "command", o->command);
    flag(f, "module", o->module);
    flag(f, "no_python", o->no_python);
    flag(f, "run_path", o->run_path);
    flag(f, "virtual_local_rank", o->virtual_local_rank);
    flag(f, "sandbox", o->sandbox);
    put(f, "signals", arena_printf(a, "%" PRIx64, o->signals));
    flag(f, "log_json", o->log_json);
    flag(f, "event_log", o->event_log);
}

static void others(const struct options *o, struct arena *a, struct options_facts *f) {
    number(f, a, "verb", o->verb);
    text(f, a, "shell", o->shell);
    for (size_t i = 0; i < o->hosts.n && i < 4; i++) {
        put(f, "host", arena_printf(a, "%s*%d", o->hosts.list[i].name, o->hosts.list[i].slots));
        words(f, a, "argv", o->host_argv[i]);
    }
    flag(f, "everywhere", o->everywhere);
    text(f, a, "ssh", o->ssh);
    text(f, a, "host_token", o->host_token);
    text(f, a, "store_host", o->store_host);
    number(f, a, "store_port", o->store_port);
    text(f, a, "store_quarantine", o->store_quarantine);
    number(f, a, "store_memory", o->store_memory_mb);
    number(f, a, "store_connections", o->store_connections);
    text(f, a, "store_names", o->store_names);
    flag(f, "status_json", o->status_json);
    text(f, a, "outcome_dir", o->outcome_dir);
    text(f, a, "outcome_file", o->outcome_file);
}

void options_facts_of(const struct options *o, struct arena *a, struct options_facts *ret) {
    ret->n = 0;
    meeting(o, a, ret);
    rendezvous(&o->rdzv, a, ret);
    output(o, a, ret);
    others(o, a, ret);
}

static bool has(const struct options_facts *f, const char *name, const char *text) {
    for (int i = 0; i < f->n; i++)
        if (str_eq(f->list[i].name, name) && str_eq(f->list[i].text, text))
            return true;
    return false;
}

void options_facts_put(struct buf *out, const struct options_facts *f,
                       const struct options_facts *usual) {
    for (int i = 0; i < f->n; i++)
        if (!has(usual, f->list[i].name, f->list[i].text))
            buf_printf(out, " %s=%s", f->list[i].name, f->list[i].text);
}
