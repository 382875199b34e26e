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

bool counter_look(struct counter *k, const struct bound *b, enum node_limit what, const char *file,
                  const char *key) {
    const char *group = node_cgroup(b->node, what);
    BUF_FINI struct buf text = {0};
    char path[4096];
    if (!group)
        return false;
    k->by_group = true;
    snprintf(path, sizeof(path), "%s/%s", group, file);
    int64_t count =
        file_read(path, FILE_MAX, &text, NULL) == 0 && text.len ? number_of(text.data, key) : 0;
    k->count = count > k->count ? count : k->count;
    return true;
}

void counter_put(const struct counter *k, struct json_writer *w, const char *otherwise) {
    json_put_string(w, "by", k->by_group ? "a control group" : otherwise);
    if (k->by_group)
        json_put_i64(w, "count", k->count);
}
