#include "harness/scenario/keys.h"

#include "base/str.h"

#include <assert.h>
#include <string.h>

const struct section *const sections[] = {
#define X(name) &section_##name,
    SECTIONS(X)
#undef X
        NULL};

const struct key *section_key(const struct section *s, const char *name) {
    for (const struct key *k = s->keys; k->name; k++)
        if (str_eq(k->name, name))
            return k;
    return NULL;
}

const struct key *keys_find(const char *name, size_t *it_section, const struct section **ret) {
    const char *dot = strchr(name, '.');
    for (; sections[*it_section]; ++*it_section) {
        const struct section *s = sections[*it_section];
        bool other = dot && (strlen(s->name) != (size_t)(dot - name) ||
                             strncmp(s->name, name, (size_t)(dot - name)) != 0);
        const struct key *k = other ? NULL : section_key(s, dot ? dot + 1 : name);
        if (k) {
            *ret = s;
            ++*it_section;
            return k;
        }
    }
    return NULL;
}

/* The section of what stands under the key; NULL: it has no words of its own. */
static const struct section *section_under(const struct key *k) {
    const char *ref = k->form ? strstr(k->form, "<@") : NULL;
    size_t n = ref ? strcspn(ref + 2, ">") : 0;
    for (size_t i = 0; ref && sections[i]; i++)
        if (strlen(sections[i]->name) == n && strncmp(sections[i]->name, ref + 2, n) == 0)
            return sections[i];
    return NULL;
}

/* Whether its section stands in a list, or under names that somebody chooses. */
static bool has_items(const struct key *k) {
    return strstr(k->form, "[<@") || strstr(k->form, "{<@");
}

const struct key *keys_at(const char *path, const struct section **ret) {
    ARENA_FINI struct arena a = {0};
    const struct section *s = &section_top, *in = NULL;
    const struct key *k = NULL;
    bool item = false; /* the next word may be one */
    for (char **v = str_split(&a, path, '.', NULL); *v; v++) {
        const struct key *next = s ? section_key(s, *v) : NULL;
        if (!next && item) {
            item = false;
            continue;
        }
        k = next;
        if (!k)
            break;
        in = s;
        s = section_under(k);
        item = s && has_items(k);
    }
    if (k)
        *ret = in;
    return k;
}

enum { PATHS_MAX = 1000 };

static void add_paths(struct arena *a, const struct section *s, const char *prefix, const char **v,
                      size_t *n) {
    for (const struct key *k = s->keys; k->name; k++) {
        const struct section *under = section_under(k);
        assert(*n < PATHS_MAX);
        v[*n] = arena_printf(a, "%s%s", prefix, k->name);
        const char *below = under ? arena_printf(a, "%s.", v[*n]) : NULL;
        ++*n;
        if (under)
            add_paths(a, under, below, v, n);
    }
}

const char **keys_paths(struct arena *a) {
    const char **v = arena_array(a, const char *, PATHS_MAX + 1);
    size_t n = 0;
    add_paths(a, &section_top, "", v, &n);
    return v;
}

const char *section_nearest(const struct section *s, const char *name) {
    enum { KEYS_MAX = 40 };
    const char *names[KEYS_MAX];
    size_t n = 0;
    for (const struct key *k = s->keys; k->name; k++) {
        assert(n < KEYS_MAX - 1);
        names[n++] = k->name;
    }
    names[n] = NULL;
    return str_nearest(name, names);
}
