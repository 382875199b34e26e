#include "harness/plan/wire_claim.h"

#include "base/str.h"

#include <errno.h>
#include <string.h>

/* ---- a node that notes ---- */

struct noted {
    struct wire_claim *claim;
    struct buf groups;
    bool asked;
};

static void note(struct noted *n, const char *groups, const struct impairment *how, size_t count) {
    n->asked = true;
    buf_clear(&n->groups);
    buf_puts(&n->groups, groups);
    n->claim->how = how[0]; /* between whom and of which planes its steps are does not change */
    for (size_t i = 0; i < count; i++)
        n->claim->does |= impairment_does(&how[i]);
}

static int note_part(void *node, const char *groups, const struct impairment *how, bool on,
                     struct err *err) {
    struct noted *n = node;
    note(n, groups, how, 1);
    n->claim->cut = true;
    n->claim->does |= IMPAIRMENT_CUTS;
    return 0;
}

static int note_impair(void *node, const char *groups, const struct impairment *how, size_t count,
                       bool on, struct err *err) {
    note(node, groups, how, count);
    return 0;
}

static int forget_nothing(void *node, unsigned planes, struct err *err) {
    return 0;
}

static const struct node_ops notes = {
    .part = note_part, .impair = note_impair, .forget_connections = forget_nothing};

/* ---- whom it means ---- */

static bool put_in_group(const struct plan *p, const char *name, int group, int *v) {
    for (size_t i = 0; i < p->nodes_n; i++)
        if (str_eq(p->nodes[i].name, name)) {
            v[i] = group;
            return true;
        }
    return false;
}

/* "n0,n1|*" */
static bool take_groups(const struct plan *p, const char *text, int *v) {
    ARENA_FINI struct arena a = {0};
    int rest = -1;
    char **groups = str_split(&a, text, '|', NULL);
    for (size_t i = 0; i < WIRE_CLAIM_NODES; i++)
        v[i] = -1;
    for (int g = 0; groups[g]; g++)
        for (char **name = str_split(&a, groups[g], ',', NULL); *name; name++)
            if (str_eq(*name, "*"))
                rest = g;
            else if (!put_in_group(p, *name, g, v))
                return false;
    for (size_t i = 0; i < p->nodes_n; i++)
        v[i] = v[i] < 0 ? rest : v[i];
    return true;
}

/* The name of its target; NULL: it is known only when it fires. */
static const char *target_name(const struct planned_entry *pa) {
    const struct target_spec *on = &pa->entry->on;
    if (fault_arg(&pa->args, "groups", NULL))
        return "";
    return on->text && on->pick == PICK_NAMED && on->local_rank < 0 ? on->node : NULL;
}

bool wire_claim_of(const struct plan *p, const struct planned_entry *pa, struct wire_claim *ret) {
    const struct fault *f = pa->fault;
    const char *name = f ? target_name(pa) : NULL;
    unsigned wire = FAULT_NEEDS_WIRE | FAULT_NEEDS_NAMES;
    struct noted n = {.claim = ret};
    struct target t = {.kind = TARGET_NODE, .pidfd = -1, .ops = &notes, .node = &n};
    if (!name || f->where != FAULT_IN_HARNESS || !fault_has(f, EFFECT_LASTING) ||
        p->nodes_n > WIRE_CLAIM_NODES || (f->check && f->check(&pa->args, NULL) < 0) ||
        !(f->needs & wire || fault_has(f, EFFECT_PARTS_NETWORK)))
        return false;
    *ret = (struct wire_claim){0};
    str_copy(t.name, sizeof(t.name), name);
    bool known = f->inject(&t, &pa->args, NULL) >= 0 && n.asked &&
                 take_groups(p, buf_str(&n.groups), ret->group);
    buf_fini(&n.groups);
    return known;
}

bool wire_claim_covers(const struct wire_claim *outer, const struct wire_claim *inner) {
    const struct impairment_reach a = {&outer->how, outer->group}, b = {&inner->how, inner->group};
    return impairment_covers(a, b, WIRE_CLAIM_NODES);
}
