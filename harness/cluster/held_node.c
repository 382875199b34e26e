#include "harness/cluster/held_node.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static int op_limit(void *node, enum node_limit what, int64_t value, struct err *err) {
    struct held_node *h = node;
    return held_limits_set(&h->limits, what, value, err);
}

static int op_unlimit(void *node, enum node_limit what, struct err *err) {
    struct held_node *h = node;
    return held_limits_lift(&h->limits, what, err);
}

static int op_shift_clock(void *node, const struct clock_shift *shift, struct err *err) {
    struct held_node *h = node;
    return host_clock_shift(&h->wall, shift, err);
}

/* The directory may lie elsewhere here, behind a link of the same name: descriptors have that name. */
static int place(const struct held_node *h, enum node_place where, struct disk_rule *r,
                 struct err *err) {
    char real[PATH_MAX];
    const char *path = h->places[where];
    if (!path)
        return err_say(err, -EINVAL, "setup has not said where the disks of the node lie");
    if (!str_copy(r->root, sizeof(r->root), path))
        return err_say(err, -ENAMETOOLONG, "%s: the path of a disk is too long", path);
    if (!realpath(path, real) || str_eq(real, path) || !str_copy(r->real, sizeof(r->real), real))
        r->real[0] = '\0';
    return 0;
}

/* The node had it before it went off. */
static void go_on(struct disk_rule_state *s, const struct json *had) {
    struct disk_rule_state before;
    held_rules_take(had, &before);
    s->matched = before.matched;
    s->done = before.done;
    s->used = before.used;
}

static int op_disk_rule(void *node, const struct disk_rule *rule, enum node_place where, bool on,
                        struct err *err) {
    struct held_node *h = node;
    struct disk_rule r = *rule;
    int code = place(h, where, &r, err);
    if (code)
        return code;
    const struct disk_rule_state *there = held_rules_like(h->rules, &r);
    if (on && there)
        return err_say(err, -EBUSY, "an earlier fault does the same to its disk");
    if (on)
        go_on(held_rules_find(h->rules, held_rules_add(h->rules, &r)), h->had);
    else if (there)
        held_rules_drop(h->rules, there->rule.id);
    return 0;
}

const struct node_ops held_node_ops = {.limit = op_limit,
                                       .unlimit = op_unlimit,
                                       .shift_clock = op_shift_clock,
                                       .disk_rule = op_disk_rule};

static char *copy_of(const char *path) {
    return path ? mem_strdup(path) : NULL;
}

void held_node_places(struct held_node *h, const struct json *setup) {
    h->places[NODE_SHARED] = copy_of(json_get_string(setup, "shared", NULL));
    h->places[NODE_DISK] = copy_of(json_get_string(setup, "disk", NULL));
}

void held_node_put_rules(const struct held_node *h, struct json_writer *w) {
    size_t n = 0;
    const struct disk_rule_state *v = h->rules ? held_rules_all(h->rules, &n) : NULL;
    json_array(w, "rules");
    for (size_t i = 0; i < n; i++)
        held_rules_put(&v[i], w, NULL);
    json_end_array(w);
}

void held_node_fini(struct held_node *h) {
    for (int i = 0; i <= NODE_DISK; i++) {
        free(h->places[i]);
        h->places[i] = NULL;
    }
}
