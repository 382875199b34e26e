/* What somebody would have to delete so that a job starts again. */
#include "harness/verbs/crashpoints/crashing.h"

#include "base/str.h"

#include <string.h>

enum { TRIED_MAX = 8 };

struct deletion {
    struct crashing *c;
    const char *v[TRIED_MAX], *there[256];
    size_t n, there_n;
};

static int note_there(void *arg, const struct crash_entry *e) {
    struct deletion *d = arg;
    if (d->there_n < 256)
        d->there[d->there_n++] = arena_strdup(&d->c->arena, e->path);
    return 0;
}

static void add(struct deletion *d, const char *path) {
    bool there = false;
    for (size_t i = 0; i < d->there_n; i++)
        there |= str_eq(d->there[i], path);
    for (size_t i = 0; i < d->n; i++)
        there &= !str_eq(d->v[i], path);
    if (there && *path && d->n < TRIED_MAX)
        d->v[d->n++] = path;
}

/* The newest first: each file that was touched, then the folder that it lies in. */
static void find_candidates(struct deletion *d, size_t state, size_t point) {
    struct crashing *c = d->c;
    crash_states_walk(&c->states, state, note_there, d);
    for (size_t i = point; i-- > 0 && d->n < TRIED_MAX;) {
        const struct disk_operation *o = &c->record.v[i];
        const char *names[] = {o->deed == DISK_RENAME ? o->to : o->path, o->path};
        for (int k = 0; k < 2 && o->deed != DISK_MARK; k++) {
            add(d, names[k]);
            const char *slash = strchr(names[k], '/');
            if (slash)
                add(d, arena_strndup(&c->arena, names[k], (size_t)(slash - names[k])));
        }
    }
}

const char *crashing_find_deletion(struct crashing *c, size_t state, size_t point,
                                   struct resumption *ret) {
    struct deletion *d = arena_new(&c->arena, struct deletion);
    struct trial_ask asks[TRIED_MAX];
    struct resumption got[TRIED_MAX] = {{0}};
    d->c = c;
    find_candidates(d, state, point);
    for (size_t i = 0; i < d->n; i++)
        asks[i] = (struct trial_ask){state, d->v[i], NULL};
    for (size_t i = 0; i < d->n; i++) {
        size_t more = d->n - i < (size_t)c->jobs ? d->n - i : (size_t)c->jobs;
        if (got[i].how == ATTEMPT_NONE && !crashing_try(c, asks + i, got + i, more))
            return NULL;
        if (got[i].how == ATTEMPT_ENDED) {
            *ret = got[i];
            return d->v[i];
        }
    }
    return NULL;
}
