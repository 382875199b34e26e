#include "harness/plan/plan.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/plan/entries.h"
#include "harness/plan/features.h"

#include <stdlib.h>

struct scenario *plan_load(const char *file, const char *const *set, struct diagnostics *d) {
    struct scenario *s = scenario_load_flawed(file, set, d);
    if (!d->errors)
        return s;
    plan_check_entries(s, d);
    return scenario_free(s);
}

struct plan *plan_make(const struct scenario *s, uint64_t seed, struct diagnostics *d) {
    struct plan *p = mem_new(struct plan);
    int before = d->errors;
    p->scenario = s;
    p->seed = seed;
    p->addresses = -1;
    p->isolation = ISOLATION_AUTO;
    rootfs_make(p);
    topology_make(p);
    devices_deal(p);
    entries_make(p, d);
    features_make(p, d);
    return d->errors > before ? plan_free(p) : p;
}

struct plan *plan_free(struct plan *p) {
    if (p) {
        struct arena a = p->arena;
        file_close(&p->addresses);
        examined_hosts_fini(p->hosts, p->hosts_n);
        arena_fini(&a);
        free(p);
    }
    return NULL;
}

const struct plan_node *plan_find_node(const struct plan *p, const char *name) {
    for (size_t i = 0; i < p->nodes_n; i++)
        if (str_eq(p->nodes[i].name, name))
            return &p->nodes[i];
    return NULL;
}

bool plan_has_disks(const struct plan *p) {
    bool has = p->scenario->cluster.disk != DISK_SPEC_KEPT;
    for (size_t i = 0; i < p->entries_n && !has; i++) {
        const struct fault *f = p->entries[i].fault;
        has = f && fault_course(f, &p->entries[i].args).needs & FAULT_NEEDS_DISK;
    }
    return has;
}

/* A host that has no power needs no peers that are deaf to it, and drops nothing that could be
 * counted. */
struct fault_course plan_entry_course(const struct plan *p, const struct planned_entry *a) {
    struct fault_course c = fault_course(a->fault, &a->args);
    if (p->scenario->cluster.power.off && c.effects & EFFECT_SILENCES_NODE &&
        c.effects & EFFECT_ENDS_NODE) {
        c.needs &= ~(unsigned)FAULT_NEEDS_SILENCE;
        c.evidence &= ~EVIDENCE(frames_dropped);
    }
    return c;
}

unsigned plan_entry_needs(const struct plan *p, const struct planned_entry *a) {
    unsigned needs = plan_entry_course(p, a).needs;
    if (p->scenario->cluster.scheduler)
        needs &= ~(unsigned)FAULT_NEEDS_SCHEDULER;
    bool moves = a->fault->rule && needs & FAULT_NEEDS_CALLS && plan_has_disks(p);
    return moves ? (needs & ~(unsigned)FAULT_NEEDS_CALLS) | FAULT_NEEDS_DISK : needs;
}

unsigned plan_needs(const struct plan *p) {
    unsigned needs = plan_has_disks(p) ? FAULT_NEEDS_DISK : 0;
    for (size_t i = 0; i < p->entries_n; i++)
        needs |= p->entries[i].fault ? plan_entry_needs(p, &p->entries[i]) : 0;
    return needs;
}

bool plan_has_cloud(const struct plan *p) {
    for (size_t i = 0; i < p->entries_n; i++)
        if (p->entries[i].fault && p->entries[i].fault->by_cloud)
            return true;
    return false;
}

const char *plan_node_host(const struct plan_node *n) {
    return n->by_address ? n->addr : n->name;
}

const char *plan_node_listen(const struct plan_node *n) {
    return n->by_address ? n->addr : "0.0.0.0";
}
