#include "harness/cluster/far_rules.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/cluster/held_rules.h"

#include <stdlib.h>
#include <string.h>

static struct far_rule *like(const struct far_rules *f, const struct disk_rule *rule) {
    for (size_t i = 0; i < f->n; i++)
        if (disk_rule_same(&f->v[i].state.rule, rule))
            return &f->v[i];
    return NULL;
}

void far_rules_add(struct far_rules *f, const struct buf *order, const struct disk_rule *rule) {
    if (!like(f, rule))
        mem_push(f->v, f->n) =
            (struct far_rule){.order = mem_strdup(buf_str(order)), .state = {.rule = *rule}};
}

void far_rules_drop(struct far_rules *f, const struct disk_rule *rule) {
    struct far_rule *one = like(f, rule);
    if (!one)
        return;
    free(one->order);
    size_t after = f->n-- - (size_t)(one - f->v) - 1;
    memmove(one, one + 1, after * sizeof(*one));
}

void far_rules_bye(struct far_rules *f, const struct json *bye) {
    json_each(it, json_get(bye, "rules")) {
        struct disk_rule_state s;
        held_rules_take(it, &s);
        struct far_rule *one = like(f, &s.rule);
        if (one)
            one->state = s;
    }
}

int far_rules_say_again(const struct node *n, struct err *err) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < n->far_rules->n; i++) {
        BUF_FINI struct buf text = {0};
        buf_puts(&text, n->far_rules->v[i].order);
        struct json_writer w = {.out = &text, .comma = true};
        held_rules_put(&n->far_rules->v[i].state, &w, "had");
        json_end_object(&w);
        r = carrier_send(n->control, &text, NULL, 0, err);
    }
    return r;
}

void far_rules_fini(struct far_rules *f) {
    for (size_t i = 0; i < f->n; i++)
        free(f->v[i].order);
    free(f->v);
    *f = (struct far_rules){0};
}
