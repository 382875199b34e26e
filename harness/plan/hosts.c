/* The hosts of a cluster with a provider, asked before anything is done: whether they can be used,
 * what can be done there, and which addresses the nodes have. */
#include "harness/plan/entries.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/loopback.h"
#include "faults/need.h"
#include "harness/provider/provider.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

/* What shows on another host that a fault was felt: what its helper tells, what the store answers,
 * and what lies in the shared directory. */
static const uint64_t evidence_there =
    EVIDENCE(agent_back) | EVIDENCE(agent_left) | EVIDENCE(agent_start) | EVIDENCE(clock_ahead) |
    EVIDENCE(clock_drifting) | EVIDENCE(clock_strobing) | EVIDENCE(disk_failed) |
    EVIDENCE(disk_slowed) | EVIDENCE(disk_stuck) | EVIDENCE(file_changed) |
    EVIDENCE(frames_dropped) | EVIDENCE(lease_gone) | EVIDENCE(links_cut) |
    EVIDENCE(node_forks_refused) | EVIDENCE(node_out_of_memory) | EVIDENCE(node_throttled) |
    EVIDENCE(revision_gone) | EVIDENCE(signal_taken) | EVIDENCE(store_alarm) |
    EVIDENCE(store_restarted) | EVIDENCE(target_exit) | EVIDENCE(target_stopped) |
    EVIDENCE(uptime_moved);

/* What of a need a helper can have by itself. */
static const struct {
    unsigned need;
    enum hello_ability ability;
} abilities[] = {{FAULT_NEEDS_TRACE, HELLO_CAN_TRACE},
                 {FAULT_NEEDS_CALLS, HELLO_CAN_WATCHED_CALLS},
                 {FAULT_NEEDS_PRELOAD, HELLO_CAN_WALL_CLOCKS},
                 {FAULT_NEEDS_UPTIME, HELLO_CAN_UPTIMES},
                 {FAULT_NEEDS_SILENCE, HELLO_CAN_SILENT_SOCKETS}};

/* And of a limit. */
static const struct {
    enum hello_ability ability;
    const char *controller;
} limits[NODE_LIMITS_N] = {[NODE_LIMIT_CPU] = {HELLO_CAN_CPU_LIMITS, "cpu"},
                           [NODE_LIMIT_MEMORY] = {HELLO_CAN_MEMORY_LIMITS, "memory"},
                           [NODE_LIMIT_PIDS] = {HELLO_CAN_PIDS_LIMITS, "pids"}};

/* ---- what can be done there ---- */

/* Why it cannot be had on any other host; NULL: it can, where its needs are met. */
static const char *only_here(const struct plan *p, const struct planned_entry *a) {
    const struct fault *f = a->fault;
    if (f->region || plan_entry_course(p, a).evidence & ~evidence_there)
        return "nothing would show that it was felt";
    return NULL;
}

/* Which host lacks one of these abilities; NULL: all have them. */
static const struct examined_host *unable(const struct plan *p, unsigned can) {
    for (size_t i = 0; i < p->hosts_n; i++)
        if (can & ~p->hosts[i].hello.can)
            return &p->hosts[i];
    return NULL;
}

/* Which host lacks what is needed; NULL: all have it. */
static const struct examined_host *lacking(const struct plan *p, unsigned needs) {
    unsigned can = 0;
    for (size_t i = 0; i < sizeof(abilities) / sizeof(*abilities); i++)
        if (needs & abilities[i].need) {
            needs &= ~abilities[i].need;
            can |= 1u << abilities[i].ability;
        }
    return needs ? &p->hosts[0] : unable(p, can);
}

/* Other nodes may do with less than a group (node_ops.limit), but nobody there would see it. */
static int check_limits(const struct plan *p, const struct fault *f, const char *text,
                        struct err *err) {
    for (int what = 0; what < NODE_LIMITS_N; what++)
        for (size_t i = 0; f->limits >> what & 1 && i < p->hosts_n; i++)
            if (!(p->hosts[i].hello.can & 1u << limits[what].ability))
                return err_say(err, -ENOTSUP,
                               "%s needs a control group with the controller %s, which %s has not: "
                               "that takes root there, or one that is delegated to its user",
                               text, limits[what].controller, p->hosts[i].name);
    return 0;
}

/* ---- the power of hosts ---- */

static bool are_one(const struct examined_host *a, const struct examined_host *b) {
    return str_eq(a->hello.boot_id, b->hello.boot_id) && a->network == b->network;
}

static bool is_this_machine(const struct examined_host *h) {
    struct hello ours;
    struct stat network;
    hello_here(&ours);
    return str_eq(h->hello.boot_id, ours.boot_id) && stat("/proc/self/ns/net", &network) == 0 &&
           h->network == (uint64_t)network.st_ino;
}

static const struct plan_node *store_beside_n0(const struct plan *p) {
    for (size_t i = 0; i < p->nodes_n; i++)
        if (p->nodes[i].is_store)
            return &p->nodes[i];
    return NULL;
}

/* Whether it may be n0 that is struck. */
static bool may_mean_n0(const struct target_spec *t, const struct cluster_spec *c) {
    if (t->rack)
        return c->rack_of[0] == t->rack;
    return t->pick != PICK_NAMED || str_eq(t->node, "n0");
}

/* What is on a host goes off with it. */
static int check_power(const struct plan *p, const struct planned_entry *a, struct err *err) {
    const struct cluster_spec *c = &p->scenario->cluster;
    unsigned effects = plan_entry_course(p, a).effects;
    const struct plan_node *store = store_beside_n0(p);
    char text[ENTRY_TEXT_MAX];
    if (!c->power.off || !(effects & EFFECT_SILENCES_NODE) || !(effects & EFFECT_ENDS_NODE))
        return 0;
    entry_text(a->entry, a->fault->name, a->entry->fault_place, text);
    for (size_t i = 0; i < p->hosts_n; i++) {
        if (is_this_machine(&p->hosts[i]))
            return err_say(err, -ENOTSUP,
                           "%s: %s is the machine that rankquake runs on, and cluster.power would "
                           "take its power",
                           text, p->hosts[i].name);
        if (i && are_one(&p->hosts[0], &p->hosts[i]))
            return err_say(err, -ENOTSUP,
                           "%s: %s and %s are one host, and cluster.power would take the power of "
                           "both",
                           text, p->hosts[0].name, p->hosts[i].name);
    }
    if (store && may_mean_n0(&a->entry->on, c))
        return err_say(err, -ENOTSUP,
                       "%s: the store is on %s as well, n0's host, and cluster.power would take it "
                       "along; strike a node by its name that is not n0, or let an agent serve the "
                       "store (cluster.store: {on: n0})",
                       text, p->hosts[0].name);
    return 0;
}

static int check_entry(const struct plan *p, const struct planned_entry *a, struct err *err) {
    const struct timeline_entry *e = a->entry;
    char text[ENTRY_TEXT_MAX];
    unsigned needs = plan_entry_needs(p, a);
    const char *why = only_here(p, a);
    const struct examined_host *without = lacking(p, needs);
    entry_text(e, a->fault->name, e->fault_place, text);
    if (without && needs & FAULT_NEEDS_PRELOAD && without->no_clock.code)
        return err_say(err, -ENOTSUP,
                       "%s needs programs of %s that take along what moves their clock: %s", text,
                       without->name, without->no_clock.msg);
    if (without && needs & FAULT_NEEDS_UPTIME)
        return err_say(err, -ENOTSUP,
                       "%s needs a time namespace, which %s has not: that takes root there", text,
                       without->name);
    if (without)
        return err_say(err, -ENOTSUP, "%s needs %s, which %s has not", text,
                       fault_needs_text(needs), without->name);
    if (why)
        return err_say(err, -ENOTSUP, "%s, on %s: %s; it can be had with nodes on this machine",
                       text, p->hosts[0].name, why);
    int r = check_limits(p, a->fault, text, err);
    return r ? r : check_power(p, a, err);
}

static int check_trigger(const struct plan *p, const struct timeline_entry *a,
                         const struct trigger *t, struct err *err) {
    char text[ENTRY_TEXT_MAX];
    bool call = trigger_is_call(t);
    const struct examined_host *without = call ? unable(p, 1u << HELLO_CAN_WATCHED_CALLS) : NULL;
    if (without)
        return err_say(err, -ENOTSUP, "%s needs %s, which %s has not",
                       entry_text(a, "when.file or when.syscall", t->place, text),
                       fault_needs_text(FAULT_NEEDS_CALLS), without->name);
    if (!t->store)
        return 0;
    return err_say(err, -ENOTSUP,
                   "%s: what the store is asked for cannot be read on %s, which is another host",
                   entry_text(a, "when.store", t->place, text), p->hosts[0].name);
}

static int check_entries(const struct plan *p, struct err *err) {
    int r = 0;
    for (size_t i = 0; i < p->entries_n && r == 0; i++) {
        const struct timeline_entry *a = p->entries[i].entry;
        r = p->entries[i].fault ? check_entry(p, &p->entries[i], err) : 0;
        r = r ? r : check_trigger(p, a, &a->when, err);
        r = r || !a->until ? r : check_trigger(p, a, a->until, err);
    }
    return r;
}

/* ---- where they are ---- */

/* Nodes that share a host's network would take each other's ports; all of them on one have its
 * loopback to themselves. */
static int settle_addresses(struct plan *p, struct err *err) {
    char prefix[LOOPBACK_PREFIX_MAX];
    size_t same = 1;
    while (same < p->hosts_n && are_one(&p->hosts[0], &p->hosts[same]))
        same++;
    if (same == p->hosts_n && (p->hosts_n > 1 || !*p->hosts[0].address)) {
        p->addresses = loopback_claim(PLAN_STORE_PORT, prefix, err);
        if (p->addresses < 0)
            return -ENOTSUP;
        topology_move(p, prefix);
        return 0;
    }
    for (size_t i = 0; i < p->hosts_n; i++) {
        if (!*p->hosts[i].address)
            return err_say(err, -ENOTSUP,
                           "%s has no address that other hosts could reach (IPv4, on a card that "
                           "is up)",
                           p->hosts[i].name);
        for (size_t k = 0; k < i; k++)
            if (are_one(&p->hosts[i], &p->hosts[k]))
                return err_say(err, -ENOTSUP,
                               "%s and %s are the same host, while others are not: name each once",
                               p->hosts[k].name, p->hosts[i].name);
    }
    topology_move_to_hosts(p);
    return 0;
}

/* ---- asking them ---- */

/* What only nodes of this machine have. */
static const char *not_on_hosts(const struct cluster_spec *c) {
    bool apart = c->isolation == ISOLATION_NAMESPACES || c->isolation == ISOLATION_PROCESSES;
    return apart                       ? "isolation"
           : c->rootfs                 ? "rootfs"
           : c->scheduler              ? "scheduler"
           : c->disk != DISK_SPEC_KEPT ? "disk"
           : c->gpus_per_node          ? "gpus_per_node"
                                       : NULL;
}

static int check_cluster(const struct plan *p, struct err *err) {
    const struct cluster_spec *c = &p->scenario->cluster;
    const char *key = not_on_hosts(c);
    if (key)
        return err_say(err, -ENOTSUP,
                       "cluster.%s is for nodes on this machine, and cluster.provider puts them on "
                       "hosts of their own",
                       key);
    if (p->untrusted && !p->hosts_said)
        return err_say(err, -ENOTSUP,
                       "its hosts were not asked, for a file names them: name them yourself, by "
                       "--provider %s%s",
                       provider_names[c->provider], c->hosts ? " --hosts" : "");
    return 0;
}

int hosts_name(const struct cluster_spec *c, struct arena *a, const char *const **ret,
               size_t *ret_n, struct err *err) {
    const struct provider *provider = provider_find(provider_names[c->provider]);
    if (!c->hosts && provider->find)
        return provider->find(a, ret, ret_n, err);
    *ret = c->hosts;
    *ret_n = c->hosts_n;
    return 0;
}

static int ask(struct plan *p, struct err *err) {
    const struct cluster_spec *c = &p->scenario->cluster;
    char folder[PATH_MAX];
    const char *const *names;
    size_t n = (size_t)c->nodes, known;
    if (hosts_name(c, &p->arena, &names, &known, err) != 0)
        return -ENOENT;
    if (n > known)
        return err_say(err, -ENOTSUP, "it has %d nodes, and there %s %zu host%s", c->nodes,
                       known == 1 ? "is" : "are", known, known == 1 ? "" : "s");
    p->provider = provider_find(provider_names[c->provider]);
    p->hosts = arena_array(&p->arena, struct examined_host, n);
    for (size_t i = 0; i < n; i++)
        p->hosts[i].name = names[i];
    p->hosts_n = n;
    for (size_t i = 0; i < n; i++)
        if (p->provider->check(p->hosts[i].name, err) != 0)
            return -ENOENT;
    const char *helper =
        arena_printf(&p->arena, "%s/rankquake-node", file_own_folder(folder, sizeof(folder)));
    p->wish.ssh = c->ssh;
    int r = examined_hosts_ask(p->provider, &p->wish, helper, EXAMINED_SAMPLES, p->hosts, n,
                               &p->arena, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (!p->hosts[i].works) {
            *err = p->hosts[i].why;
            r = -ENOTSUP;
        }
    return r;
}

/* A store of its own is beside n0. */
static void give_hosts(struct plan *p) {
    for (size_t i = 0; i < p->nodes_n; i++)
        p->nodes[i].host = &p->hosts[p->nodes[i].is_store ? 0 : p->nodes[i].index];
}

/* Ours have not begun: whoever runs there is another job. */
static void note_jobs(struct plan *p) {
    BUF_FINI struct buf text = {0};
    for (size_t i = 0; i < p->hosts_n; i++) {
        const struct buf *facts = &p->hosts[i].facts;
        const struct json *jobs =
            json_get(json_parse(&p->arena, buf_str(facts), facts->len, NULL), "jobs");
        const struct json *one = json_first(jobs);
        if (one)
            buf_printf(&text, "%s%s has process %lld of uid %lld", text.len ? "; " : "",
                       p->hosts[i].name, (long long)json_get_i64(one, "pid", 0),
                       (long long)json_get_i64(one, "uid", -1));
    }
    p->hosts_note = text.len
                        ? arena_printf(&p->arena,
                                       "another rankrun is at work on hosts of this run, whose "
                                       "processors and ports they share: %s",
                                       buf_str(&text))
                        : NULL;
}

int hosts_settle(struct plan *p, struct err *err) {
    struct err why;
    int r = check_cluster(p, &why);
    r = r ? r : ask(p, &why);
    if (r == 0) {
        give_hosts(p);
        r = check_entries(p, &why);
    }
    r = r ? r : settle_addresses(p, &why);
    if (r == 0) {
        p->isolation = ISOLATION_HOSTS;
        note_jobs(p);
    } else if (err) {
        *err = why;
    }
    return r == -ENOENT ? r : r ? -ENOTSUP : 0;
}

void hosts_put(const struct plan *p, struct buf *out) {
    for (size_t i = 0; i < p->nodes_n; i++) {
        const struct examined_host *h = p->nodes[i].host;
        const struct clock_bound *c = &h->clock;
        buf_printf(out, "  %-8s%s, by %s, at %s; its clock is %.3f to %.3f ms ahead of ours\n",
                   p->nodes[i].name, h->name, p->provider->name, p->nodes[i].addr,
                   (double)c->low_ns / 1e6, (double)c->high_ns / 1e6);
    }
    if (p->hosts_note)
        buf_printf(out, "  %s\n", p->hosts_note);
}
