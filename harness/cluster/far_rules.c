#include "harness/cluster/far_rules.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

void far_rules_add(struct node *n, const struct buf *order) {
    if (!texts_has(&n->far_rules, buf_str(order)))
        texts_add(&n->far_rules, "%s", buf_str(order));
}

void far_rules_drop(struct node *n, const struct buf *order) {
    struct texts *t = &n->far_rules;
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->v[i], buf_str(order))) {
            free(t->v[i]);
            memmove(&t->v[i], &t->v[i + 1], (t->n-- - i) * sizeof(*t->v)); /* with the NULL */
            return;
        }
}

int far_rules_say_again(struct node *n, struct err *err) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < n->far_rules.n; i++) {
        BUF_FINI struct buf text = {0};
        buf_puts(&text, n->far_rules.v[i]);
        r = carrier_send(n->control, &text, NULL, 0, err);
    }
    return r;
}
