/* world: a cluster, a job and an entry of a timeline around every fault of the table, for tests that
 * ask something of each. */
#pragma once

#include "faults/fault.h"
#include "harness/plan/plan.h"
#include "tests/harness/scenario/scratch.h"

/* What the examples are about: racks, and a store of a kind that can do the most. An earlier fault,
 * "dark", is what an example of `after` comes after. No GPUs: then the driver is not asked. */
static const char *const worlds[] = {
    "cluster: {nodes: 4, gpus_per_node: 0, racks: [[n0, n1], [n2, n3]]}\n",
    "cluster: {nodes: 4, gpus_per_node: 0, racks: [[n0, n1], [n2, n3]], store: etcd-3, "
    "store_quota_mb: 16}\n",
    "cluster: {nodes: 4, gpus_per_node: 0, start: 2}\n",
};
enum { WORLDS = sizeof(worlds) / sizeof(*worlds) };
static const char world_head[] = "job: {run: [ranktrain], nnodes: \"1:4\"}\n"
                                 "timeline:\n"
                                 "  - {id: dark, when: {time: 1s}, fault: net-delay, on: n0}\n"
                                 "  - ";
enum { WORLD_HEAD_LINES = 3, WORLD_INDENT = 4 };

static inline int world_line(const char *world) { /* of the entry */
    int at = WORLD_HEAD_LINES + 1;
    while (*world)
        at += *world++ == '\n';
    return at;
}

/* As every verb does it: all that is wrong is in x->d.out. Whether it is accepted. */
static inline bool world_plan(struct scratch *x) {
    if (!x->s) {
        diagnostics_fini(&x->d);
        x->d = (struct diagnostics){0};
        x->s = plan_load(x->path, NULL, &x->d);
    }
    struct plan *p = x->s ? plan_make(x->s, x->s->seed, &x->d) : NULL;
    bool good = p && !x->d.errors;
    plan_free(p);
    return good;
}

/* NULL: it is accepted, by loader and plan; else what was said, in x->d.out. */
static inline const char *world_refusal(struct scratch *x, const char *world, const char *entry) {
    static char text[8192];
    int n = snprintf(text, sizeof(text), "%s%s%s\n", world, world_head, entry);
    assert(n > 0 && (size_t)n < sizeof(text));
    scratch_load(x, text);
    return world_plan(x) ? NULL : buf_str(&x->d.out);
}

/* A fault's example, "{when: {...}, fault: ...}", with another trigger. */
static inline void world_entry(const struct fault *f, const char *trigger, char *ret, size_t size) {
    const char *rest = strstr(f->example, "}, ");
    if (strncmp(f->example, "{when: {", 8) != 0 || !rest)
        fail_msg("%s: its example does not begin with a when: %s", f->name, f->example);
    snprintf(ret, size, "{%s%s", trigger, rest + 1);
}

/* The world in which the fault's own example is accepted. */
static inline const char *world_of(size_t of) {
    static const char *known[128];
    const struct fault *f = faults[of];
    if (known[of])
        return known[of];
    char said[1024] = "", entry[512];
    world_entry(f, "when: {step: 20}", entry, sizeof(entry));
    for (size_t i = 0; i < WORLDS; i++) {
        struct scratch x;
        const char *why = world_refusal(&x, worlds[i], entry);
        snprintf(said, sizeof(said), "%s", why ? why : "");
        scratch_drop(&x);
        if (!why)
            return known[of] = worlds[i];
    }
    fail_msg("%s: no world of these tests takes its example: %s", f->name, said);
    return NULL;
}
