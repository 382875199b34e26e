/* Sets one value of a loaded file by its path, as --set does. */
#include "base/str.h"
#include "harness/scenario/load.h"

#include <string.h>

/* The child a word of the path names: a member, an item by its number from 0, or an entry of
 * the timeline by its id. NULL: there is none. */
static struct yaml *find_child(struct yaml *n, const char *word) {
    int64_t index;
    if (n->type == YAML_MAP)
        return yaml_get(n, word);
    bool number = str_to_i64(word, 0, INT32_MAX, &index);
    for (struct yaml *it = n->first; it; it = it->next) {
        const struct yaml *id = yaml_get(it, "id");
        if ((number && index-- == 0) || (id && str_eq(id->text, word)))
            return it;
    }
    return NULL;
}

/* The map or list that holds the last word; maps on the way are made where there are none. */
static struct yaml *walk(struct arena *a, struct yaml *n, char **words, size_t count,
                         struct place p, struct diagnostics *d) {
    for (size_t i = 0; i + 1 < count; i++) {
        struct yaml *child = find_child(n, words[i]);
        if (child && yaml_is_null(child))
            child->type = YAML_MAP;
        if (!child && n->type == YAML_MAP) {
            child = arena_new(a, struct yaml);
            *child = (struct yaml){.type = YAML_MAP, .key = words[i], .place = p, .key_place = p};
            yaml_put(n, child);
        }
        if (!child || child->type == YAML_SCALAR) {
            diagnostics_add(d, p, "there is nothing below \"%s\" that could be set", words[i]);
            return NULL;
        }
        n = child;
    }
    return n;
}

static void put(struct arena *a, struct yaml *root, char **words, size_t count, struct yaml *value,
                struct diagnostics *d) {
    struct yaml *parent = walk(a, root, words, count, value->place, d);
    if (!parent)
        return;
    if (parent->type == YAML_MAP) {
        value->key = words[count - 1];
        yaml_put(parent, value);
        return;
    }
    struct yaml *item = find_child(parent, words[count - 1]);
    if (!item) {
        diagnostics_add(d, value->place, "the list has %zu item%s, counted from 0, and none \"%s\"",
                        parent->length, parent->length == 1 ? "" : "s", words[count - 1]);
        return;
    }
    struct yaml *next = item->next;
    *item = *value;
    item->next = next;
    item->parent = parent;
}

void override_apply(struct arena *a, struct yaml *root, const char *text, int set,
                    struct diagnostics *d) {
    struct place p = {-set, 1};
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        diagnostics_add(d, p, "must be key=value, for example --set job.max_restarts=2");
        return;
    }
    size_t count;
    char **words = str_split(a, arena_strndup(a, text, (size_t)(equals - text)), '.', &count);
    struct yaml *value = yaml_parse(a, equals + 1, strlen(equals + 1), set, d);
    if (!value)
        return;
    value->place = p;
    value->key_place = p;
    put(a, root, words, count, value, d);
}

void override_put(struct arena *a, struct yaml *root, const char *path, const struct yaml *value,
                  struct diagnostics *d) {
    size_t count;
    char **words = str_split(a, path, '.', &count);
    struct yaml *copy = arena_new(a, struct yaml);
    *copy = *value;
    copy->key_place = value->place;
    put(a, root, words, count, copy, d);
}
