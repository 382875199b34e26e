#include "harness/crash/image.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "harness/crash/barriers.h"

#include <stdlib.h>
#include <string.h>

void crash_image_init(struct crash_image *m, const struct crash_changes *changes,
                      struct crash_contents *contents) {
    *m = (struct crash_image){.changes = changes, .contents = contents};
    m->slots = mem_array(size_t, changes->slots_n);
    m->files = mem_array(struct crash_file, changes->inodes_n);
    m->met = mem_array(bool, changes->inodes_n);
    m->went = mem_array(bool, changes->record->n + 1);
}

void crash_image_fini(struct crash_image *m) {
    for (size_t i = 0; m->files && i < m->changes->inodes_n; i++)
        free(m->files[i].pieces);
    free(m->slots);
    free(m->files);
    free(m->met);
    free(m->went);
    free(m->reached);
    free(m->seen);
    *m = (struct crash_image){0};
}

/* ---- doing what was not lost ---- */

static void clear(struct crash_image *m) {
    for (size_t i = 0; i < m->changes->slots_n; i++)
        m->slots[i] = CRASH_NONE;
    for (size_t i = 0; i < m->changes->inodes_n; i++) {
        m->files[i].pieces_n = 0;
        m->files[i].mode = m->changes->inodes[i].mode;
        m->files[i].t_ns = 0;
    }
    for (size_t i = 0; i < m->changes->implied_n; i++)
        m->slots[m->changes->implied[i].slot] = m->changes->implied[i].inode;
}

static void piece(struct crash_image *m, size_t i, uint64_t from, uint64_t to, uint64_t size) {
    struct crash_file *f = &m->files[m->changes->v[i].inode];
    mem_push(f->pieces, f->pieces_n) = (struct crash_piece){i, from, to, size};
    f->t_ns = m->changes->record->v[i].t_ns;
}

static void set_names(struct crash_image *m, size_t i, bool removal_lost) {
    const struct crash_change *g = &m->changes->v[i];
    int64_t t_ns = m->changes->record->v[i].t_ns;
    for (size_t k = 0; k < g->sets - removal_lost; k++) {
        size_t slot = g->set[k].slot;
        m->slots[slot] = g->set[k].inode;
        m->files[m->changes->slots[slot].dir].t_ns = t_ns;
    }
    if (g->makes)
        m->files[g->inode].t_ns = t_ns;
}

/* losses: those of this write. */
static void write_bytes(struct crash_image *m, size_t i, const struct crash_loss *l, size_t n) {
    const struct crash_change *g = &m->changes->v[i];
    uint64_t at = g->at, size = g->end;
    for (size_t k = 0; k < n; k++) {
        if (l[k].part == CRASH_SIZE)
            size = l[k].from;
        if (l[k].part != CRASH_BYTES)
            continue;
        if (l[k].from > at)
            piece(m, i, at, l[k].from, 0);
        at = l[k].to;
    }
    if (at < g->end || size)
        piece(m, i, at, g->end, size);
}

static void do_one(struct crash_image *m, size_t i, const struct crash_loss *l, size_t n) {
    const struct crash_change *g = &m->changes->v[i];
    switch (g->kind) {
    case CHANGE_HAD:
        set_names(m, i, false);
        if (g->end)
            piece(m, i, 0, g->end, g->end);
        break;
    case CHANGE_NAMES:
        if (g->sets && (!n || l->part != CRASH_ALL))
            set_names(m, i, n);
        break;
    case CHANGE_SHAPE:
        if (!n)
            piece(m, i, 0, 0, 0);
        break;
    case CHANGE_MODE:
        if (!n)
            m->files[g->inode].mode = g->mode;
        break;
    case CHANGE_WRITE:
        write_bytes(m, i, l, n);
        break;
    case CHANGE_NONE:
    case CHANGE_SYNC:
    case CHANGE_CLOSE:
        break;
    }
}

/* ---- who goes on when one has died ---- */

struct going_on {
    size_t dead, dead_node; /* a process, a node; CRASH_NONE */
    size_t reached;         /* the last barrier that all who died had come to */
    bool *there;            /* by inode */
    size_t *barriers;       /* by who: those that it has come to */
    bool *waits;            /* by who: there, for the others to come */
    bool *stopped;
};

/* Whether it can be done where not all was done before it; a program stops that cannot go on. */
static bool can_be_done(const struct crash_image *m, size_t i, const bool *there) {
    const struct crash_change *g = &m->changes->v[i];
    if (g->kind == CHANGE_NONE)
        return true;
    if (g->inode != CRASH_NONE && !g->makes && !there[g->inode])
        return false;
    for (size_t k = 0; k < g->sets; k++) {
        if (!there[m->changes->slots[g->set[k].slot].dir])
            return false;
        if (g->set[k].inode == CRASH_NONE && m->slots[g->set[k].slot] != g->inode)
            return false;
    }
    return true;
}

static size_t find_who(const struct crash_changes *c, const struct crash_way *way) {
    for (size_t i = 0; i < c->who_n; i++)
        if (way->rank >= 0 ? c->who[i].rank == way->rank
                           : c->who[i].rank < 0 && c->who[i].pid == way->pid)
            return i;
    return CRASH_NONE;
}

static size_t find_node(const struct crash_changes *c, const char *name) {
    for (size_t i = 0; i < c->nodes_n && name && *name; i++)
        if (str_eq(c->nodes[i], name))
            return i;
    return CRASH_NONE;
}

static bool is_dead(const struct going_on *x, const struct crash_change *g) {
    return x->dead_node != CRASH_NONE ? g->node == x->dead_node : g->who == x->dead;
}

/* Of a node those count that come to barriers at all. */
static void find_reached(const struct crash_image *m, const struct crash_way *way,
                         struct going_on *x) {
    const struct crash_changes *c = m->changes;
    bool *comes = mem_array(bool, c->who_n + 1), any = false;
    for (size_t i = 0; i < c->record->n; i++) {
        const struct crash_change *g = &c->v[i];
        if (!barriers_is(&c->record->v[i]))
            continue;
        comes[g->who] |= is_dead(x, g);
        if (i >= way->point)
            continue;
        x->barriers[g->who]++;
        x->waits[g->who] = barriers_waits(&c->record->v[i]);
    }
    for (size_t w = 0; w < c->who_n; w++)
        if (comes[w] && (!any || x->barriers[w] < x->reached)) {
            x->reached = x->barriers[w];
            any = true;
        }
    for (size_t w = 0; w < c->who_n && any; w++)
        x->stopped[w] = x->waits[w] && x->barriers[w] > x->reached;
    free(comes);
}

static void go_on(struct crash_image *m, const struct crash_way *way, struct going_on *x) {
    const struct crash_changes *c = m->changes;
    for (size_t i = 0; i < c->record->n; i++) {
        const struct crash_change *g = &c->v[i];
        bool done = i < way->point;
        if (!done && (is_dead(x, g) || x->stopped[g->who]))
            continue;
        if (barriers_is(&c->record->v[i]) && !done && ++x->barriers[g->who] > x->reached) {
            x->stopped[g->who] = true; /* there it waits for the dead one */
            continue;
        }
        if (!done && !can_be_done(m, i, x->there)) {
            x->stopped[g->who] = true;
            continue;
        }
        if (g->makes)
            x->there[g->inode] = true;
        m->went[i] = true;
        if (!done)
            do_one(m, i, NULL, 0);
    }
}

static void others_go_on(struct crash_image *m, const struct crash_way *way) {
    struct going_on x = {.dead = find_who(m->changes, way),
                         .dead_node = find_node(m->changes, way->node),
                         .there = mem_array(bool, m->changes->inodes_n),
                         .barriers = mem_array(size_t, m->changes->who_n),
                         .waits = mem_array(bool, m->changes->who_n),
                         .stopped = mem_array(bool, m->changes->who_n)};
    x.there[CRASH_ROOT] = true;
    memset(m->went, 0, m->changes->record->n);
    for (size_t i = 0; i < m->changes->implied_n; i++)
        x.there[m->changes->implied[i].inode] = true;
    if (x.dead != CRASH_NONE || x.dead_node != CRASH_NONE) {
        find_reached(m, way, &x);
        go_on(m, way, &x);
    }
    free(x.there);
    free(x.barriers);
    free(x.waits);
    free(x.stopped);
}

/* ---- what can be reached ---- */

enum { DEPTH_MAX = 128 }; /* deeper than any path that can be opened at once */

static void note(struct crash_image *m, size_t v) {
    mem_push(m->seen, m->seen_n) = v;
}

static void see_entry(struct crash_image *m, size_t slot, size_t inode, int depth) {
    const struct crash_inode *n = &m->changes->inodes[inode];
    struct crash_file *f = &m->files[inode];
    bool again = n->kind == INODE_FILE && f->place != CRASH_NONE;
    size_t place = m->seen_n;
    note(m, m->changes->slots[slot].text);
    note(m, (size_t)depth * 8 + n->kind * 2 + again);
    note(m, n->kind == INODE_LINK ? 0 : f->mode);
    note(m, n->kind == INODE_DIRECTORY ? 0
            : n->kind == INODE_LINK    ? n->text
            : again                    ? f->place
                                       : f->content);
    f->place = again ? f->place : place;
}

static void reach(struct crash_image *m, size_t dir, int depth) {
    const struct crash_changes *c = m->changes;
    m->met[dir] = true;
    for (size_t k = c->first[dir]; k < c->first[dir + 1]; k++) {
        size_t slot = c->sorted[k], inode = m->slots[slot], content = CRASH_NONE;
        if (inode == CRASH_NONE || (c->inodes[inode].kind == INODE_DIRECTORY && m->met[inode]))
            continue;
        if (c->inodes[inode].kind == INODE_FILE) {
            struct crash_file *f = &m->files[inode];
            if (f->content == CRASH_NONE)
                f->content = crash_contents_of(m->contents, f->pieces, f->pieces_n);
            content = f->content;
        }
        (void)(mem_push(m->reached, m->reached_n) = slot);
        (void)(mem_push(m->reached, m->reached_n) = inode);
        (void)(mem_push(m->reached, m->reached_n) = content);
        see_entry(m, slot, inode, depth);
        if (c->inodes[inode].kind == INODE_DIRECTORY && depth < DEPTH_MAX)
            reach(m, inode, depth + 1);
    }
}

void crash_image_build(struct crash_image *m, const struct crash_way *way) {
    size_t k = 0;
    clear(m);
    for (size_t i = 0; i < way->point; i++) {
        size_t first = k;
        while (k < way->losses_n && way->losses[k].operation == i)
            k++;
        do_one(m, i, way->losses + first, k - first);
    }
    if (way->taken) {
        const struct crash_change *g = &m->changes->v[way->point];
        piece(m, way->point, g->at, g->at + way->taken, g->at + way->taken);
    }
    if (way->others_go_on)
        others_go_on(m, way);
    m->reached_n = m->seen_n = 0;
    memset(m->met, 0, m->changes->inodes_n);
    for (size_t i = 0; i < m->changes->inodes_n; i++)
        m->files[i].content = m->files[i].place = CRASH_NONE;
    reach(m, CRASH_ROOT, 0);
}

/* ---- walking through it ---- */

struct stroll {
    struct crash_image *image;
    struct arena paths;
    int (*see)(void *arg, const struct crash_entry *e);
    void *arg;
    const char **of; /* paths of directories, by inode */
};

/* A record is anybody's: ten years at most. */
static int64_t age(const struct crash_image *m, size_t inode) {
    static const int64_t most = 10LL * 365 * 24 * 3600 * 1000000000;
    const struct disk_record *r = m->changes->record;
    int64_t last = r->n ? r->v[r->n - 1].t_ns : 0, t = m->files[inode].t_ns, ret;
    if (t >= last)
        return 0;
    return __builtin_sub_overflow(last, t, &ret) || ret > most ? most : ret;
}

static int see_one(struct stroll *s, size_t slot, size_t inode, size_t content) {
    const struct crash_changes *c = s->image->changes;
    const struct crash_inode *n = &c->inodes[inode];
    const char *above = s->of[c->slots[slot].dir];
    struct crash_entry e = {.kind = n->kind == INODE_DIRECTORY ? CRASH_DIRECTORY
                                    : n->kind == INODE_FILE    ? CRASH_FILE
                                                               : CRASH_LINK,
                            .mode = s->image->files[inode].mode,
                            .age_ns = age(s->image, inode),
                            .to = n->to};
    e.path =
        *above ? arena_printf(&s->paths, "%s/%s", above, c->slots[slot].name) : c->slots[slot].name;
    if (n->kind == INODE_DIRECTORY)
        s->of[inode] = e.path;
    if (n->kind == INODE_FILE) {
        const struct crash_content *f = &s->image->contents->v[content];
        struct crash_file *file = &s->image->files[inode];
        e.size = f->size;
        e.runs = f->runs;
        e.runs_n = f->runs_n;
        e.same_as = file->first;
        file->first = file->first ? file->first : e.path;
    }
    return s->see(s->arg, &e);
}

int crash_image_walk(struct crash_image *m, int (*see)(void *arg, const struct crash_entry *e),
                     void *arg) {
    struct stroll s = {.image = m, .see = see, .arg = arg};
    int r = 0;
    s.of = arena_array(&s.paths, const char *, m->changes->inodes_n);
    s.of[CRASH_ROOT] = "";
    for (size_t i = 0; i < m->changes->inodes_n; i++)
        m->files[i].first = NULL;
    for (size_t i = 0; i < m->reached_n && !r; i += 3)
        r = see_one(&s, m->reached[i], m->reached[i + 1], m->reached[i + 2]);
    arena_fini(&s.paths);
    return r;
}

/* ---- its hash ---- */

void crash_image_hash_entry(struct sha256 *s, const struct crash_entry *e,
                            const uint32_t digest[8]) {
    BUF_FINI struct buf b = {0};
    buf_printf(&b, "%c %o %zu:%s", "dfl"[e->kind], e -> kind == CRASH_LINK ? 0777 : e -> mode,
               strlen(e->path), e -> path);
    if (e->kind == CRASH_LINK)
        buf_printf(&b, " %zu:%s", strlen(e->to), e->to);
    if (e->same_as)
        buf_printf(&b, " %zu:%s", strlen(e->same_as), e->same_as);
    else if (e->kind == CRASH_FILE)
        for (int i = 0; i < 8; i++)
            buf_printf(&b, "%08x", digest[i]);
    buf_putc(&b, '\n');
    sha256_update(s, buf_str(&b), b.len);
}

struct hashing {
    struct crash_image *image;
    struct sha256 sha;
    uint64_t bytes;
    size_t at; /* in reached */
};

static int hash_one(void *arg, const struct crash_entry *e) {
    struct hashing *h = arg;
    size_t content = h->image->reached[h->at + 2];
    const struct crash_content *f = content == CRASH_NONE ? NULL : &h->image->contents->v[content];
    h->at += 3;
    if (f && !e->same_as)
        h->bytes += f->bytes;
    crash_image_hash_entry(&h->sha, e, f ? f->digest : NULL);
    return 0;
}

void crash_image_hash(struct crash_image *m, char ret[65], uint64_t *ret_bytes) {
    struct hashing h = {.image = m};
    sha256_init(&h.sha);
    crash_image_walk(m, hash_one, &h);
    sha256_hex(&h.sha, ret);
    *ret_bytes = h.bytes;
}
