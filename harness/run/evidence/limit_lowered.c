/* The kernel's word, in /proc, that the limits of a process are not what they were. */
#include "harness/run/evidence/evidence.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <stdio.h>

enum { LIMITS_MAX = 1 << 16 };

static const char *limits_of(struct run_entry *a, const struct bound *b) {
    BUF_FINI struct buf text = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/limits", (int)b->target.pid);
    if (file_read(path, LIMITS_MAX, &text, NULL) != 0)
        return NULL;
    return a ? arena_strdup(&a->owner->engine->arena, buf_str(&text)) : NULL;
}

static void *begin(struct run_entry *a, struct bound *b) {
    return (void *)limits_of(a, b);
}

static bool felt(struct bound *b) {
    const char *before = b->known[EVIDENCE_limit_lowered];
    BUF_FINI struct buf text = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/limits", (int)b->target.pid);
    return before && file_read(path, LIMITS_MAX, &text, NULL) == 0 && text.len &&
           !str_eq(buf_str(&text), before);
}

const struct evidence evidence_limit_lowered = {
    .what = "the target has other limits than before",
    .absent = "its limits are what they were",
    .unannounced = true,
    .momentary = true,
    .begin = begin,
    .felt = felt,
};
