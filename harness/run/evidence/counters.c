#include "harness/run/evidence/counters.h"

#include "base/sys/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 16 };

void *counter_begin(struct run_entry *a, struct bound *b) {
    return arena_new(&a->owner->engine->arena, struct counter);
}

static int64_t number_of(char *text, const char *key) {
    char *save = NULL;
    size_t n = strlen(key);
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return strtoll(line + n, NULL, 10);
    return 0;
}

/* False: there is no group. */
static bool read_counts(const struct bound *b, enum node_limit what, const char *file,
                        struct buf *out) {
    const char *group = node_cgroup(b->node, what), *far = node_far_counts(b->node, what);
    char path[4096];
    if (far)
        buf_put(out, far, strlen(far));
    else if (group && snprintf(path, sizeof(path), "%s/%s", group, file) < (int)sizeof(path))
        file_read(path, FILE_MAX, out, NULL);
    return group || far;
}

bool counter_look(struct counter *k, const struct bound *b, enum node_limit what, const char *file,
                  const char *key) {
    BUF_FINI struct buf text = {0};
    if (!read_counts(b, what, file, &text))
        return false;
    k->by_group = true;
    int64_t count = text.len ? number_of(text.data, key) : 0;
    k->count = count > k->count ? count : k->count;
    return true;
}

void counter_put(const struct counter *k, struct json_writer *w, const char *otherwise) {
    json_put_string(w, "by", k->by_group ? "a control group" : otherwise);
    if (k->by_group)
        json_put_i64(w, "count", k->count);
}
