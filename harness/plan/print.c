/* Prints a plan for people. */
#include "base/printable.h"
#include "base/str.h"
#include "faults/effect.h"
#include "faults/need.h"
#include "harness/plan/entries.h"

#include <inttypes.h>
#include <string.h>

static const char *plural(long n) {
    return n == 1 ? "" : "s";
}

/* Part of a line that quotes the scenario: it stays part of one. */
static void quote(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void quote(struct buf *out, const char *fmt, ...) {
    BUF_FINI struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    printable_puts(out, buf_str(&text));
}

static void put_seconds(struct buf *b, int64_t ns) {
    if (ns % 1000000000)
        buf_printf(b, "%" PRId64 " ms", ns / 1000000);
    else
        buf_printf(b, "%" PRId64 " s", ns / 1000000000);
}

static void describe(const struct trigger *t, const char *who, struct buf *out) {
    const char *sep = "";
    if (t->after_id) {
        quote(out, "after %s", t->after_id);
        sep = ", ";
    }
    if (t->has_round) {
        buf_printf(out, "%sin round %d", sep, t->round);
        sep = ", ";
    }
    if (t->has_step)
        buf_printf(out, "%swhen %s has done step %" PRId64, sep, who, t->step);
    else if (t->has_event)
        quote(out, "%sat %s number %d of %s", sep, t->event, t->nth, who);
    else if (t->phase)
        quote(out, t->nth > 1 ? "%swhen %s comes to %s, number %d" : "%swhen %s comes to %s", sep,
              who, t->phase, t->nth);
    else if (t->file)
        quote(out, "%sbefore %s number %d of a file like %s by %s", sep, file_op_names[t->op],
              t->nth, t->file, who);
    else if (t->syscall)
        buf_printf(out, "%sbefore the call of %s number %d by %s", sep, t->syscall, t->nth, who);
    else if (t->store)
        buf_printf(out, "%swhen the store is asked for %s, number %d by %s", sep, t->store, t->nth,
                   who);
    else if (t->log && t->nth > 1)
        quote(out, "%sat line number %d of %s that is like /%s/", sep, t->nth, who, t->log);
    else if (t->log)
        quote(out, "%sat the first line of %s that is like /%s/", sep, who, t->log);
    if (t->has_step || t->has_event || t->phase || t->log || t->store || trigger_is_call(t))
        sep = ", ";
    if (t->has_time) {
        buf_puts(out, sep);
        put_seconds(out, t->time_ns);
        buf_puts(out, " into the steady state");
        sep = ", ";
    }
    if (t->plus_ns) {
        buf_printf(out, "%splus ", sep);
        put_seconds(out, t->plus_ns);
    }
}

void trigger_describe(const struct timeline_entry *a, struct buf *out) {
    const struct trigger *t = &a->when;
    bool starts = fault_effects(a->fault) & EFFECT_STARTS_NODE;
    describe(t, starts || !a->on.text ? "any worker" : "the target", out);
    if (t->patient)
        buf_puts(out, starts ? ", and then as soon as it is off"
                             : ", and then as soon as the target is there");
    if (t->hold)
        buf_puts(out, " (held there until the fault is in force)");
}

void until_describe(const struct trigger *t, struct buf *out) {
    describe(t, "any worker", out);
    if (t->hold)
        buf_puts(out, " (held there until the fault has ended)");
}

static void put_place_of(const struct plan *p, const struct plan_node *n, struct buf *out) {
    int rack = scenario_rack_of(p->scenario, n->name);
    if (rack)
        buf_printf(out, ", rack %d", rack - 1);
    for (size_t i = 0; i < n->devices_n; i++)
        buf_printf(out, "%s%d", i ? ", " : ", GPU ", n->devices[i]->index);
    buf_putc(out, '\n');
}

static void put_devices(const struct plan *p, struct buf *out) {
    for (size_t i = 0; i < p->devices_n; i++) {
        const struct plan_device *d = &p->devices[i];
        buf_printf(out, "  GPU %-2d %s, %s, ", d->index, d->uuid, d->name);
        if (d->memory >= 0)
            buf_printf(out, "%" PRId64 " GiB, ", d->memory >> 30);
        if (d->nodes)
            buf_printf(out, d->nodes > 1 ? "shared by %d nodes\n" : "of %d node\n", d->nodes);
        else
            buf_puts(out, "not used\n");
    }
}

static void put_topology(const struct plan *p, struct buf *out) {
    const struct job_spec *j = &p->scenario->job;
    buf_puts(out, "topology\n");
    for (size_t i = 0; i < p->nodes_n; i++) {
        const struct plan_node *n = &p->nodes[i];
        buf_printf(out, "  %-6s %-14s ", n->name, n->addr);
        if (n->is_store)
            buf_printf(out, "on   the store, port %d", PLAN_STORE_PORT);
        else
            buf_printf(out, "%-4s an agent, %d worker%s", n->on_at_start ? "on" : "off",
                       j->workers_per_node, plural(j->workers_per_node));
        if (!n->is_store && j->spawns > 1)
            buf_printf(out, ", %d ranks by each", j->spawns);
        put_place_of(p, n, out);
    }
    if (p->rootfs)
        quote(out, "  their root file system is %s, which stays as it is", p->rootfs);
    buf_puts(out, p->rootfs ? "\n" : "");
    put_devices(p, out);
}

static void put_observed(const struct scenario *s, struct buf *out) {
    if (s->observe.n)
        buf_printf(out, "\n  read from the output of workers, in logs/NODE/rank-R.log%s%s:",
                   s->observe.preset ? ", as of " : "", s->observe.preset ? s->observe.preset : "");
    for (size_t i = 0; i < s->observe.n; i++) {
        buf_puts(out, "\n    ");
        quote(out, "%-17s /%s/", s->observe.v[i].kind, s->observe.v[i].pattern);
    }
}

/* How the agents find each other, and how often they may try. */
static void put_meeting(const struct plan *p, struct buf *out) {
    const struct job_spec *j = &p->scenario->job;
    if (str_eq(j->launcher, "template")) {
        buf_puts(out, "restarted by rules of its own\n");
        bool etcd = p->nodes_n > (size_t)p->scenario->cluster.nodes;
        buf_printf(out, "  {endpoint} is %s; %s\n", p->endpoint,
                   etcd ? "an etcd answers there"
                        : "nothing listens there but what the launcher starts");
        return;
    }
    buf_printf(out, "%d restart%s%s, ", j->max_restarts, plural(j->max_restarts),
               str_eq(j->launcher, "torchrun") ? " of each agent" : "");
    buf_printf(out, p->endpoint ? "store at %s" : "standalone", p->endpoint);
    buf_printf(out, p->backend ? ", backend %s\n" : "\n", p->backend);
    if (p->launcher_note)
        buf_printf(out, "  %s\n", p->launcher_note);
}

static void put_job(const struct plan *p, struct buf *out) {
    const struct job_spec *j = &p->scenario->job;
    buf_puts(out, "\njob\n ");
    for (const char *const *w = p->launcher ? p->launcher : j->launcher_argv; w && *w; w++)
        quote(out, " %s", *w);
    if (*p->python.torch)
        quote(out, " (torch %s, Python %s)", p->python.torch, p->python.version);
    buf_printf(out, ", %d", j->min_nodes);
    if (j->max_nodes > j->min_nodes)
        buf_printf(out, " to %d", j->max_nodes);
    buf_printf(out, " node%s, ", plural(j->max_nodes));
    put_meeting(p, out);
    buf_putc(out, ' ');
    for (size_t i = 0; i < j->run_n; i++)
        quote(out, " %s", j->run[i]);
    put_observed(p->scenario, out);
    buf_puts(out, "\n  first once without the timeline (control run), unless that is in the cache"
                  "\n");
}

static void put_processes(const struct plan *p, struct buf *out) {
    const char *first = p->nodes[0].addr;
    buf_printf(out,
               "\nisolation\n  processes: every node is a tree of processes of this host, on an "
               "address of %.*s.0/24\n",
               (int)(strrchr(first, '.') - first), first);
    if (p->isolation_why)
        buf_printf(out, "  because namespaces are not possible: %s\n", p->isolation_why);
}

static void put_objects(const struct plan *p, struct buf *out) {
    if (p->isolation == ISOLATION_HOSTS) {
        buf_puts(out, "\nhosts\n");
        hosts_put(p, out);
        return;
    }
    if (p->isolation == ISOLATION_PROCESSES) {
        put_processes(p, out);
        return;
    }
    buf_puts(out,
             p->isolation == ISOLATION_AUTO
                 ? "\nisolation\n  auto: namespaces where the host allows them, else processes\n"
                 : "\nisolation\n  namespaces\n");
    buf_printf(out,
               "\nkernel objects, none with a name outside, all gone when the harness ends\n"
               "  %zu node%s: a network, pid, mount, uts and ipc namespace each\n"
               "  %zu pair%s of virtual network cards on the wire, a network namespace of its own\n"
               "  without root: 1 user namespace around it all\n",
               p->nodes_n, plural((long)p->nodes_n), p->nodes_n, plural((long)p->nodes_n));
}

static void put_entry(const struct plan *p, const struct planned_entry *pa, struct buf *out) {
    const struct timeline_entry *a = pa->entry;
    quote(out, "  %s: ", a->id);
    if (pa->fault)
        quote(out, a->on.text ? "%s on %s" : "%s", a->fault, a->on.text);
    else
        quote(out, "heal %s", p->entries[a->heal].entry->id);
    for (size_t i = 0; i < pa->args.n; i++)
        quote(out, ", %s %s", pa->args.v[i].key, pa->args.v[i].value);
    for (size_t i = 0; i < a->profile_n; i++) {
        buf_puts(out, "; after ");
        put_seconds(out, a->profile[i].at_ns);
        for (size_t k = 0; k < a->profile[i].with_n; k++)
            quote(out, ", %s %s", a->profile[i].with[k].key, a->profile[i].with[k].value);
    }
    if (a->times == TIMES_EACH_ROUND)
        buf_puts(out, ", in each round");
    else if (a->times_n > 1)
        buf_printf(out, ", %d times", a->times_n);
    if (a->sticky)
        buf_puts(out, ", again whenever the node's agent comes back");
    buf_puts(out, "\n      when    ");
    trigger_describe(a, out);
    buf_putc(out, '\n');
    if (!pa->fault)
        return;
    buf_printf(out, "      does    %s\n", pa->fault->summary);
    BUF_FINI struct buf groups = {0};
    entries_put_shape(p, pa, &groups);
    if (groups.len)
        buf_printf(out, "      groups  %s, of the nodes that are on at the beginning\n",
                   buf_str(&groups));
    unsigned needs = plan_entry_needs(p, pa);
    if (needs)
        buf_printf(out, "      needs   %s\n", fault_needs_text(needs));
    buf_printf(out, "      undo    %s", pa->fault->undo ? pa->fault->undo : "nothing to undo");
    int64_t most_ns = p->scenario->limits.fault_ns;
    if (a->for_ns) {
        buf_puts(out, ", after ");
        put_seconds(out, a->for_ns);
    } else if (most_ns && fault_has(pa->fault, EFFECT_LASTING)) {
        buf_puts(out, ", after ");
        put_seconds(out, most_ns);
        buf_puts(out, " at the latest (limits.fault)");
    }
    if (a->until) {
        buf_puts(out, "\n      until   ");
        until_describe(a->until, out);
    }
    buf_printf(out, "\n      touches %s\n",
               pa->fault->blast ? pa->fault->blast : "its target only");
}

static void put_command(const struct plan_command *c, struct buf *out) {
    buf_printf(out, "    %-24s%s\n", c->key, c->words);
    if (!c->nodes || c->is_ours)
        buf_printf(out, "    %24s%s\n", "", c->when);
}

/* Where nodes are processes there is no inside. */
static void put_commands(const struct plan *p, struct buf *out) {
    const char *nodes = "";
    size_t outside = 0;
    buf_puts(out, "\nwhat run starts because the scenario says so\n"
                  "  on this host, outside of the nodes, with your rights\n");
    for (size_t i = 0; i < p->commands_n; i++)
        if (!p->commands[i].nodes) {
            put_command(&p->commands[i], out);
            outside++;
        }
    buf_puts(out, outside ? "" : "    nothing\n");
    for (size_t i = 0; i < p->commands_n; i++) {
        const struct plan_command *c = &p->commands[i];
        if (c->nodes && !str_eq(c->nodes, nodes))
            buf_printf(out, "  in %s%s\n", c->nodes,
                       p->isolation == ISOLATION_PROCESSES
                           ? ", which are processes of this host with your rights"
                       : p->isolation == ISOLATION_HOSTS
                           ? ", on their hosts, with the rights that you have there"
                           : "");
        if (c->nodes)
            put_command(c, out);
        nodes = c->nodes ? c->nodes : nodes;
    }
}

/* What only starting something would have told. */
static void put_unasked(const struct plan *p, struct buf *out) {
    const char *sep = "";
    for (size_t i = 0; i < p->commands_n && p->untrusted; i++) {
        const struct plan_command *c = &p->commands[i];
        if (!c->is_asked && !str_eq(c->key, "feature"))
            continue;
        buf_printf(out, "%s%s", *sep ? sep : "  not asked, for plan starts nothing: ", c->key);
        sep = ", ";
    }
    buf_puts(out, *sep ? "\n" : "");
}

void plan_print(const struct plan *p, struct buf *out) {
    quote(out, "%s (%s), seed %" PRIu64, p->scenario->name, p->scenario->file, p->seed);
    buf_puts(out, "\n\n");
    put_topology(p, out);
    put_job(p, out);
    put_objects(p, out);
    buf_puts(out, p->entries_n ? "\ntimeline\n" : "\ntimeline\n  nothing is broken\n");
    if (p->scenario->drawn)
        quote(out, "  %s", p->scenario->drawn);
    buf_puts(out, p->scenario->drawn ? "\n" : "");
    for (size_t i = 0; i < p->entries_n; i++)
        put_entry(p, &p->entries[i], out);
    put_commands(p, out);
    put_unasked(p, out);
    blast_print(p, out);
}
