#include "harness/scenario/keys.h"

#include "agent/base/str.h"

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
