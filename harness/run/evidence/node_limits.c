#include "harness/run/evidence/node_limits.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <stdio.h>

enum { LIMITS_MAX = 1 << 16 };

static bool read_limits(const struct bound *b, struct buf *ret) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/limits", (int)node_program_pid(b->node));
    return file_read(path, LIMITS_MAX, ret, NULL) == 0 && ret->len;
}

void *node_limits_begin(struct run_entry *a, struct bound *b) {
    struct counter *k = counter_begin(a, b);
    BUF_FINI struct buf text = {0};
    if (read_limits(b, &text))
        k->limits = arena_strdup(&a->owner->engine->arena, buf_str(&text));
    return k;
}

bool node_limits_lowered(const struct counter *k, const struct bound *b) {
    BUF_FINI struct buf text = {0};
    return k->limits && read_limits(b, &text) && !str_eq(buf_str(&text), k->limits);
}
