/* Prints a scenario as YAML that loads as the same. */
#include "harness/scenario/scenario.h"

#include "base/json.h"
#include "base/printable.h"

#include <inttypes.h>

/* JSON's strings are YAML's double-quoted ones, so every text is written that way. */
static void put_text(struct buf *b, const char *s) {
    struct json_writer w = {b, false};
    json_put_string(&w, NULL, s);
}

static void put_field(struct buf *b, const char *key, const char *value) {
    if (!value)
        return;
    buf_printf(b, "%s: ", key);
    put_text(b, value);
    buf_putc(b, '\n');
}

/* The largest unit in which the duration is a whole number. */
static void put_duration(struct buf *b, int64_t ns) {
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}};
    size_t i = 0;
    while (i < 4 && (ns % units[i].ns || ns < units[i].ns))
        i++;
    buf_printf(b, "%" PRId64 "%s", ns / units[i].ns, ns ? units[i].name : "s");
}

/* An expression between slashes. */
static void put_line(struct buf *b, const char *key, const char *pattern) {
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "/%s/", pattern);
    buf_printf(b, "%s: ", key);
    put_text(b, buf_str(&text));
}

static void put_items(struct buf *b, const char *key, const char *const *v, size_t n) {
    buf_printf(b, "%s: [", key);
    for (size_t i = 0; i < n; i++) {
        buf_puts(b, i ? ", " : "");
        put_text(b, v[i]);
    }
    buf_putc(b, ']');
}

static void put_list(struct buf *b, const char *key, const char *const *v, size_t n) {
    put_items(b, key, v, n);
    buf_putc(b, '\n');
}

static void put_map(struct buf *b, const struct pair *v, size_t n) {
    buf_putc(b, '{');
    for (size_t i = 0; i < n; i++) {
        buf_puts(b, i ? ", " : "");
        put_text(b, v[i].key);
        buf_puts(b, ": ");
        put_text(b, v[i].value);
    }
    buf_putc(b, '}');
}

static void put_checkpoint(struct buf *b, const struct job_spec *j) {
    const struct crash_points_spec *c = &j->crash;
    if (!j->checkpoint_dir && !c->result && !c->fs_n && !c->shared_fs && !c->deaths_n &&
        !c->loss_band && !c->max_states && !c->budget_ns)
        return;
    buf_puts(b, "  checkpoint:\n");
    put_field(b, "    dir", j->checkpoint_dir);
    put_field(b, "    complete", j->checkpoint_complete);
    put_field(b, "    result", c->result);
    if (c->fs_n)
        put_list(b, "    fs", c->fs, c->fs_n);
    put_field(b, "    shared_fs", c->shared_fs);
    if (c->deaths_n)
        put_list(b, "    deaths", c->deaths, c->deaths_n);
    if (c->loss_band)
        buf_printf(b, "    loss_band: %d%%\n", c->loss_band);
    if (c->max_states)
        buf_printf(b, "    max_states: %d\n", c->max_states);
    if (c->budget_ns) {
        buf_puts(b, "    budget: ");
        put_duration(b, c->budget_ns);
        buf_putc(b, '\n');
    }
}

static void put_build(struct buf *b, const struct build_spec *o) {
    if (!o->run)
        return;
    buf_puts(b, "  build:\n");
    put_list(b, "    run", o->run, o->run_n);
    put_list(b, "    inputs", o->inputs, o->inputs_n);
    put_list(b, "    outputs", o->outputs, o->outputs_n);
    buf_puts(b, "    within: ");
    put_duration(b, o->within_ns);
    buf_putc(b, '\n');
}

static void put_job(struct buf *b, const struct job_spec *j) {
    buf_printf(b, "job:\n  nnodes: \"%d:%d\"\n  workers_per_node: %d\n  max_restarts: %d\n",
               j->min_nodes, j->max_nodes, j->workers_per_node, j->max_restarts);
    if (j->spawns > 1)
        buf_printf(b, "  spawns: %d\n", j->spawns);
    put_field(b, "  rdzv_backend", j->rdzv_backend);
    if (j->rdzv_conf_n) {
        buf_puts(b, "  rdzv_conf: ");
        put_map(b, j->rdzv_conf, j->rdzv_conf_n);
        buf_putc(b, '\n');
    }
    if (j->launcher_args_n)
        put_list(b, "  launcher_args", j->launcher_args, j->launcher_args_n);
    put_list(b, "  run", j->run, j->run_n);
    put_build(b, &j->build);
    if (j->needs_n)
        put_list(b, "  needs", j->needs, j->needs_n);
    if (j->env_n) {
        buf_puts(b, "  env: ");
        put_map(b, j->env, j->env_n);
        buf_putc(b, '\n');
    }
    if (j->writes_undone)
        buf_puts(b, "  writes: undone\n");
    put_checkpoint(b, j);
}

static void put_observe(struct buf *b, const struct observe_spec *o) {
    if (!o->n)
        return;
    buf_puts(b, "observe:\n");
    put_field(b, "  preset", o->preset);
    for (size_t i = 0; i < o->n; i++) {
        if (!o->v[i].own)
            continue;
        buf_printf(b, "  %s: ", o->v[i].kind);
        put_text(b, o->v[i].pattern);
        buf_putc(b, '\n');
    }
}

static void put_trigger(struct buf *b, const char *word, const struct trigger *t) {
    buf_printf(b, "    %s: {", word);
    if (t->has_step)
        buf_printf(b, "step: %" PRId64 ", ", t->step);
    if (t->has_round)
        buf_printf(b, "round: %d, ", t->round);
    if (t->has_event)
        buf_printf(b, "event: %s, nth: %d, ", t->event, t->nth);
    if (t->phase)
        buf_printf(b, "%s: %s, nth: %d, ", t->failpoint ? "failpoint" : "phase", t->phase, t->nth);
    if (t->log) {
        put_line(b, "log", t->log);
        buf_printf(b, ", nth: %d, ", t->nth);
    }
    if (t->file) {
        buf_puts(b, "file: ");
        put_text(b, t->file);
        buf_printf(b, ", op: %s, nth: %d, ", file_op_names[t->op], t->nth);
    }
    if (t->syscall)
        buf_printf(b, "syscall: %s, nth: %d, ", t->syscall, t->nth);
    if (t->store)
        buf_printf(b, "store: %s, nth: %d, ", t->store, t->nth);
    if (t->after_id)
        buf_printf(b, "after: \"%s\", ", t->after_id);
    const struct {
        const char *key;
        int64_t ns;
        bool given;
    } times[] = {{"time", t->time_ns, t->has_time},
                 {"plus", t->plus_ns, t->plus_ns > 0},
                 {"within", t->within_ns, t->within_ns > 0}};
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        if (!times[i].given)
            continue;
        buf_printf(b, "%s: ", times[i].key);
        put_duration(b, times[i].ns);
        buf_puts(b, ", ");
    }
    if (t->patient)
        buf_puts(b, "patient: true, ");
    buf_printf(b, "hold: %s}\n", t->hold ? "true" : "false");
}

static void put_entry(struct buf *b, const struct scenario *s, const struct timeline_entry *a) {
    buf_printf(b, "  - id: \"%s\"\n", a->id);
    put_trigger(b, "when", &a->when);
    if (a->heal >= 0)
        put_field(b, "    heal", s->timeline[a->heal].id);
    put_field(b, "    fault", a->fault);
    put_field(b, "    on", a->on.text);
    if (a->with_n) {
        buf_puts(b, "    with: ");
        put_map(b, a->with, a->with_n);
        buf_putc(b, '\n');
    }
    buf_puts(b, a->profile_n ? "    profile:\n" : "");
    for (size_t i = 0; i < a->profile_n; i++) {
        buf_puts(b, "      - at: ");
        put_duration(b, a->profile[i].at_ns);
        for (size_t k = 0; k < a->profile[i].with_n; k++)
            buf_printf(b, "\n        %s: \"%s\"", a->profile[i].with[k].key,
                       a->profile[i].with[k].value);
        buf_putc(b, '\n');
    }
    if (a->times == TIMES_EACH_ROUND)
        buf_puts(b, "    times: each-round\n");
    else if (a->times_n != 1)
        buf_printf(b, "    times: %d\n", a->times_n);
    if (a->sticky)
        buf_puts(b, "    sticky: node\n");
    if (a->for_ns) {
        buf_puts(b, "    for: ");
        put_duration(b, a->for_ns);
        buf_putc(b, '\n');
    }
    if (a->until)
        put_trigger(b, "until", a->until);
}

static void put_budgets(struct buf *b, const char *key, const struct budget *v, size_t n) {
    if (!n)
        return;
    buf_printf(b, "  %s: %s", key, v[0].id ? "{" : "");
    for (size_t i = 0; i < n; i++) {
        if (v[i].id)
            buf_printf(b, "%s\"%s\": ", i ? ", " : "", v[i].id);
        put_duration(b, v[i].ns);
    }
    buf_puts(b, v[0].id ? "}\n" : "\n");
}

static void put_probe_expects(struct buf *b, const struct expect *e) {
    buf_puts(b, e->probes_n ? "  probe:\n" : "");
    for (size_t i = 0; i < e->probes_n; i++) {
        buf_puts(b, "    ");
        put_text(b, e->probes[i].name);
        buf_puts(b, e->probes[i].always ? ": always" : e->probes[i].settle_ns ? ": " : ": steady");
        if (e->probes[i].settle_ns)
            put_duration(b, e->probes[i].settle_ns);
        buf_putc(b, '\n');
    }
}

static void put_log_expects(struct buf *b, const struct expect *e) {
    static const char *const counts[] = {"never", "once", "seen"};
    buf_puts(b, e->logs_n ? "  log:\n" : "");
    for (size_t i = 0; i < e->logs_n; i++) {
        const struct log_expect *x = &e->logs[i];
        buf_puts(b, "    - {");
        put_line(b, counts[x->count], x->pattern);
        if (x->on.text)
            buf_printf(b, ", on: %s", x->on.text);
        if (x->after)
            buf_printf(b, ", after: \"%s\"", x->after);
        if (x->within_ns) {
            buf_puts(b, ", within: ");
            put_duration(b, x->within_ns);
        }
        buf_puts(b, "}\n");
    }
}

static void put_expect(struct buf *b, const struct expect *e) {
    static const char *const outcomes[] = {"succeeded", "failed", "stopped", "unknown", "refused"};
    buf_printf(b, "expect:\n  outcome: %s\n", outcomes[e->outcome]);
    if (e->has_world_sizes) {
        buf_printf(b, "  world_sizes: %s[", e->world_sizes_ends ? "{ends: " : "");
        for (size_t i = 0; i < e->world_sizes_n; i++)
            if (e->world_sizes[i] < 0)
                buf_printf(b, "%s\"*\"", i ? ", " : "");
            else
                buf_printf(b, "%s%d", i ? ", " : "", e->world_sizes[i]);
        buf_printf(b, "]%s\n", e->world_sizes_ends ? "}" : "");
    }
    if (e->has_restarts && e->restarts_min == e->restarts_max)
        buf_printf(b, "  restarts: %d\n", e->restarts_min);
    else if (e->has_restarts)
        buf_printf(b, "  restarts: %d..%d\n", e->restarts_min, e->restarts_max);
    put_budgets(b, "detect_within", e->detect_within, e->detect_n);
    put_budgets(b, "recover_within", e->recover_within, e->recover_n);
    put_budgets(b, "phases_within", e->phases_within, e->phases_n);
    if (e->lost_steps)
        buf_printf(b, "  lost_work: %" PRId64 "\n", e->lost_steps);
    if (e->lost_ns) {
        buf_puts(b, "  lost_work: ");
        put_duration(b, e->lost_ns);
        buf_putc(b, '\n');
    }
    if (e->goodput)
        buf_printf(b, "  goodput: %d%%\n", e->goodput);
    if (e->loss_within)
        buf_printf(b, "  loss_within: %d%%\n", e->loss_within);
    buf_puts(b, e->losses_n ? "  losses:\n" : "");
    for (size_t i = 0; i < e->losses_n; i++) {
        buf_printf(b, "    %" PRId64 ": ", e->losses[i].step);
        put_text(b, e->losses[i].tolerance);
        buf_putc(b, '\n');
    }
    put_probe_expects(b, e);
    put_log_expects(b, e);
    if (e->model_same)
        buf_puts(b, "  model: same-as-undisturbed\n");
    if (e->weights)
        buf_printf(b, "  weights: %s\n",
                   e->weights == WEIGHTS_OF_CONTROL ? "same-as-undisturbed" : "same-on-all-ranks");
    if (e->epochs)
        buf_printf(b, "  epochs: %s\n", e->epochs == EPOCHS_SHUFFLED ? "shuffled" : "whole");
}

static void put_probes(struct buf *b, const struct scenario *s) {
    buf_puts(b, s->probes_n ? "probe:\n" : "");
    for (size_t i = 0; i < s->probes_n; i++) {
        const struct own_probe *p = &s->probes[i];
        buf_puts(b, "  ");
        put_text(b, p->name);
        buf_puts(b, ":\n");
        if (p->cmd)
            put_list(b, "    cmd", p->cmd, p->cmd_n);
        put_field(b, p->metric ? "    prometheus" : "    http", p->url);
        put_field(b, "    metric", p->metric);
        put_field(b, "    on", p->on);
        put_field(b, "    tolerance", p->tolerance);
        buf_puts(b, "    every: ");
        put_duration(b, p->every_ns);
        buf_puts(b, "\n    within: ");
        put_duration(b, p->within_ns);
        buf_puts(b, p->until_ns ? "\n    until: " : "\n");
        if (p->until_ns) {
            put_duration(b, p->until_ns);
            buf_putc(b, '\n');
        }
    }
}

static void put_checks(struct buf *b, const struct scenario *s) {
    buf_puts(b, s->checks_n ? "checks:\n" : "");
    for (size_t i = 0; i < s->checks_n; i++) {
        const struct own_check *c = &s->checks[i];
        put_field(b, "  - name", c->name);
        put_list(b, "    program", c->program, c->program_n);
        buf_puts(b, "    within: ");
        put_duration(b, c->within_ns);
        buf_putc(b, '\n');
    }
}

static void put_limits(struct buf *b, const struct limits *l) {
    const struct {
        const char *key;
        int64_t ns;
    } v[] = {{"start", l->start_ns},
             {"stall", l->stall_ns},
             {"total", l->total_ns},
             {"grace", l->grace_ns}};
    buf_puts(b, "limits: {");
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        buf_printf(b, "%s%s: ", i ? ", " : "", v[i].key);
        put_duration(b, v[i].ns);
    }
    if (l->dead_man_ns) {
        buf_puts(b, ", dead_man: ");
        put_duration(b, l->dead_man_ns);
    }
    if (l->fault_ns) {
        buf_puts(b, ", fault: ");
        put_duration(b, l->fault_ns);
    }
    if (l->faults)
        buf_printf(b, ", faults: %d", l->faults);
    buf_puts(b, "}\n");
}

static void put_launcher(struct buf *b, const struct job_spec *j) {
    size_t n = 0;
    while (j->launcher_argv && j->launcher_argv[n])
        n++;
    if (n == 1)
        put_field(b, "launcher", j->launcher_argv[0]);
    else if (n)
        put_list(b, "launcher", j->launcher_argv, n);
}

static void put_store(struct buf *b, const struct cluster_spec *c) {
    static const char *const stores[] = {"embedded", "etcd", "etcd-3", "none"};
    buf_printf(b, c->store_on ? ", store: {on: %s}" : ", store: %s",
               c->store_on ? c->store_on : stores[c->store]);
    if (c->store_quota_mb)
        buf_printf(b, ", store_quota_mb: %d", c->store_quota_mb);
    if (c->store_args_n) {
        buf_puts(b, ", ");
        put_items(b, "store_args", c->store_args, c->store_args_n);
    }
}

static void put_racks(struct buf *b, const struct cluster_spec *c) {
    for (int rack = 1; rack <= c->racks; rack++) {
        const char *sep = "";
        buf_puts(b, rack > 1 ? ", [" : ", racks: [[");
        for (int i = 0; i < c->nodes; i++)
            if (c->rack_of[i] == rack) {
                buf_printf(b, "%sn%d", sep, i);
                sep = ", ";
            }
        buf_puts(b, rack < c->racks ? "]" : "]]");
    }
}

static void put_hosts(struct buf *b, const struct cluster_spec *c) {
    buf_printf(b, ", provider: %s", provider_names[c->provider]);
    if (c->hosts) {
        buf_puts(b, ", ");
        put_items(b, "hosts", c->hosts, c->hosts_n);
    }
    if (c->ssh) {
        buf_puts(b, ", ssh: ");
        put_text(b, c->ssh);
    }
    if (!c->power.off)
        return;
    buf_puts(b, ", power: {");
    put_items(b, "off", c->power.off, c->power.off_n);
    buf_puts(b, ", ");
    put_items(b, "on", c->power.on, c->power.on_n);
    buf_puts(b, ", within: ");
    put_duration(b, c->power.within_ns);
    buf_putc(b, '}');
}

void scenario_print(const struct scenario *s, struct buf *out) {
    put_field(out, "scenario", s->name);
    put_field(out, "about", s->about);
    put_field(out, "source", s->source);
    if (s->tags_n)
        put_list(out, "tags", s->tags, s->tags_n);
    if (s->features_n)
        put_list(out, "feature", s->features, s->features_n);
    if (s->has_seed)
        buf_printf(out, "seed: %" PRIu64 "\n", s->seed);
    put_field(out, "semantics", s->torchrun_semantics ? "torchrun" : "strict");
    buf_printf(out, "cluster: {nodes: %d, start: %d", s->cluster.nodes, s->cluster.start);
    put_store(out, &s->cluster);
    put_racks(out, &s->cluster);
    if (s->cluster.rootfs) {
        buf_puts(out, ", rootfs: ");
        put_text(out, s->cluster.rootfs);
    }
    if (s->cluster.has_gpus)
        buf_printf(out, ", gpus_per_node: %d", s->cluster.gpus_per_node);
    if (s->cluster.isolation != ISOLATION_AUTO && !s->cluster.provider)
        buf_printf(out, ", isolation: %s", isolation_names[s->cluster.isolation]);
    if (s->cluster.disk != DISK_SPEC_KEPT)
        buf_printf(out, ", disk: %s", disk_spec_names[s->cluster.disk]);
    if (s->cluster.scheduler)
        buf_printf(out, ", scheduler: %s", scheduler_names[s->cluster.scheduler]);
    if (s->cluster.privileged)
        buf_puts(out, ", privileged: true");
    if (s->cluster.provider)
        put_hosts(out, &s->cluster);
    buf_puts(out, "}\n");
    if (!s->cluster.scheduler)
        put_launcher(out, &s->job);
    put_job(out, &s->job);
    put_observe(out, &s->observe);
    if (s->drawn) { /* it names the trace, whose name may be anything */
        buf_puts(out, "# ");
        printable_puts(out, s->drawn);
        buf_putc(out, '\n');
    }
    if (s->timeline_n)
        buf_puts(out, "timeline:\n");
    for (size_t i = 0; i < s->timeline_n; i++)
        put_entry(out, s, &s->timeline[i]);
    put_expect(out, &s->expect);
    put_probes(out, s);
    put_checks(out, s);
    put_limits(out, &s->limits);
}
