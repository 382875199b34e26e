/* The states of small random records, held against a definition of each file system that shares
 * nothing with the search: every choice of what is there and what is not is made, those that the
 * definition forbids are left out, and what remains is all that there may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "harness/crash/index.h"
#include "tests/harness/crash/record_maker.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPS_MAX = 12, INODES = 12, CHOICES_MAX = 40, COMBINATIONS_MAX = 20000, RECORDS = 150 };
enum { ROOT, FOLDER, FIRST_FILE };                                  /* inodes */
enum { IN_ROOT = 0, SLOT_OF_FOLDER = 3, IN_FOLDER = 4, SLOTS = 7 }; /* a b c d, d/a d/b d/c */
static const char *const slot_paths[SLOTS] = {"a", "b", "c", "d", "d/a", "d/b", "d/c"};

struct op {
    enum disk_deed deed;
    bool directory, replaces, had;
    int slot, to, inode;
    uint64_t at, end, size_was;
};

struct small {
    struct made made;
    struct op v[OPS_MAX];
    size_t n;
    int slots[SLOTS]; /* as it is when all is there; -1: nothing */
    uint64_t sizes[INODES];
    int inodes;
};

/* ---- drawing a record ---- */

static void note(struct small *s, struct op o) {
    s->v[s->n++] = o;
}

static int pick_slot(struct small *s, struct rand *r, bool used) {
    for (int tries = 0; tries < 20; tries++) {
        int i = (int)rand_below(r, SLOTS);
        if (i != SLOT_OF_FOLDER && (s->slots[i] >= 0) == used &&
            (i < IN_FOLDER || s->slots[SLOT_OF_FOLDER] >= 0))
            return i;
    }
    return -1;
}

static void add_create(struct small *s, struct rand *r) {
    int slot = pick_slot(s, r, false);
    if (slot < 0)
        return;
    s->slots[slot] = s->inodes;
    note(s, (struct op){DISK_CREATE, .slot = slot, .inode = s->inodes++});
    s->made.file = (uint64_t)s->slots[slot] - 1; /* numbers are inodes */
    made_create(&s->made, slot_paths[slot]);
}

static void add_write(struct small *s, struct rand *r) {
    static const uint64_t lengths[] = {256, 512, 600};
    int slot = pick_slot(s, r, true);
    if (slot < 0)
        return;
    int f = s->slots[slot];
    uint64_t ats[] = {0, 256, 512, s->sizes[f]}, at = ats[rand_below(r, 4)];
    uint64_t end = at + lengths[rand_below(r, 3)];
    note(s, (struct op){DISK_WRITE, .inode = f, .at = at, .end = end, .size_was = s->sizes[f]});
    made_write(&s->made, (uint64_t)f, slot_paths[slot], at, end - at, (char)0);
    memset((void *)s->made.v[s->made.record.n - 1].bytes, (int)s->n, end - at);
    s->sizes[f] = end > s->sizes[f] ? end : s->sizes[f];
}

static void add_truncate(struct small *s, struct rand *r) {
    int slot = pick_slot(s, r, true);
    if (slot < 0)
        return;
    int f = s->slots[slot];
    uint64_t to = rand_below(r, 2) * 256;
    note(s, (struct op){DISK_TRUNCATE, .inode = f, .end = to, .size_was = s->sizes[f]});
    made_truncate(&s->made, (uint64_t)f, slot_paths[slot], to);
    s->sizes[f] = to;
}

static void add_rename(struct small *s, struct rand *r) {
    int from = pick_slot(s, r, true), to = pick_slot(s, r, rand_below(r, 2));
    if (from < 0 || to < 0 || from == to || s->slots[from] == s->slots[to])
        return;
    note(s, (struct op){DISK_RENAME, .slot = from, .to = to, .inode = s->slots[from],
                        .replaces = s->slots[to] >= 0});
    s->slots[to] = s->slots[from];
    s->slots[from] = -1;
    made_names(&s->made, DISK_RENAME, slot_paths[from], slot_paths[to]);
}

static void add_link(struct small *s, struct rand *r) {
    int from = pick_slot(s, r, true), to = pick_slot(s, r, false);
    if (from < 0 || to < 0)
        return;
    note(s, (struct op){DISK_LINK, .slot = from, .to = to, .inode = s->slots[from]});
    s->slots[to] = s->slots[from];
    made_names(&s->made, DISK_LINK, slot_paths[from], slot_paths[to]);
}

static void add_unlink(struct small *s, struct rand *r) {
    int slot = pick_slot(s, r, true);
    if (slot < 0)
        return;
    note(s, (struct op){DISK_UNLINK, .slot = slot, .inode = s->slots[slot]});
    s->slots[slot] = -1;
    made_names(&s->made, DISK_UNLINK, slot_paths[slot], NULL);
}

static void add_sync(struct small *s, struct rand *r) {
    static const enum disk_deed deeds[] = {DISK_SYNC, DISK_SYNC_DATA, DISK_CLOSE};
    int slot = pick_slot(s, r, true);
    bool folder = rand_below(r, 3) == 0, inner = s->slots[SLOT_OF_FOLDER] >= 0 && rand_below(r, 2);
    if (folder) {
        note(s, (struct op){DISK_SYNC, .directory = true, .inode = inner ? FOLDER : ROOT});
        made_sync_directory(&s->made, inner ? "d" : "");
    } else if (slot >= 0) {
        enum disk_deed deed = deeds[rand_below(r, 3)];
        note(s, (struct op){deed, .inode = s->slots[slot]});
        made_on(&s->made, deed, (uint64_t)s->slots[slot], slot_paths[slot]);
    }
}

static void add_folder(struct small *s, bool had) {
    if (s->slots[SLOT_OF_FOLDER] >= 0)
        return;
    s->slots[SLOT_OF_FOLDER] = FOLDER;
    note(s, (struct op){DISK_MKDIR, .slot = SLOT_OF_FOLDER, .inode = FOLDER, .had = had});
    s->made.file = 0;
    if (had)
        made_had_directory(&s->made, "d");
    else
        made_mkdir(&s->made, "d");
}

static void draw_record(struct small *s, struct rand *r) {
    *s = (struct small){.inodes = FIRST_FILE};
    for (int i = 0; i < SLOTS; i++)
        s->slots[i] = -1;
    if (rand_below(r, 2))
        add_folder(s, true);
    if (rand_below(r, 2)) { /* a file that was there */
        s->slots[0] = s->inodes;
        s->sizes[s->inodes] = 700;
        s->made.file = (uint64_t)s->inodes - 1;
        made_had(&s->made, "a", 0, 700);
        memset((void *)s->made.v[s->made.record.n - 1].bytes, 100, 700);
        note(s, (struct op){DISK_WRITE, .inode = s->inodes++, .end = 700, .had = true});
    }
    size_t least = s->n + 3 + rand_below(r, 4);
    while (s->n < least) {
        switch (rand_below(r, 9)) {
        case 0:
            add_create(s, r);
            break;
        case 1:
        case 2:
            add_write(s, r);
            break;
        case 3:
            add_truncate(s, r);
            break;
        case 4:
            add_rename(s, r);
            break;
        case 5:
            add_link(s, r);
            break;
        case 6:
            add_unlink(s, r);
            break;
        case 7:
            add_sync(s, r);
            break;
        default:
            add_folder(s, false);
        }
    }
}

/* ---- the definition ---- */

enum { LOST, THERE, NEW_NAME_ONLY };

struct world {
    const struct small *s;
    const struct disk_model *model;
    uint64_t unit;
    /* What is there of each operation: a name or a shape; the pieces of a write, and how far the
     * file has grown by it. */
    int names[OPS_MAX];
    bool pieces[OPS_MAX][4];
    uint64_t grown[OPS_MAX];
};

static bool is_names(const struct op *o) {
    return !o->had && (o->deed == DISK_CREATE || o->deed == DISK_MKDIR || o->deed == DISK_RENAME ||
                       o->deed == DISK_LINK || o->deed == DISK_UNLINK);
}
static bool is_shape(const struct op *o) {
    return o->deed == DISK_TRUNCATE;
}
static bool is_meta(const struct op *o) {
    return is_names(o) || is_shape(o);
}
static bool is_write(const struct op *o) {
    return o->deed == DISK_WRITE && !o->had;
}
static bool is_sync(const struct op *o) {
    return o->deed == DISK_SYNC || o->deed == DISK_SYNC_DATA;
}
static int folder_of(int slot) {
    return slot < IN_FOLDER ? ROOT : FOLDER;
}
static bool crosses(const struct op *o) {
    return o->deed == DISK_RENAME && folder_of(o->slot) != folder_of(o->to);
}
static size_t pieces_of(const struct world *w, const struct op *o) {
    return (size_t)((o->end - 1) / w->unit - o->at / w->unit + 1);
}
static uint64_t piece_end(const struct world *w, const struct op *o, size_t piece) {
    uint64_t end = (o->at / w->unit + piece + 1) * w->unit;
    return end < o->end ? end : o->end;
}

static bool write_is_whole(const struct world *w, size_t i) {
    for (size_t k = 0; k < pieces_of(w, &w->s->v[i]); k++)
        if (!w->pieces[i][k])
            return false;
    return w->grown[i] == w->s->v[i].end;
}

static bool write_is_nothing(const struct world *w, size_t i) {
    for (size_t k = 0; k < pieces_of(w, &w->s->v[i]); k++)
        if (w->pieces[i][k])
            return false;
    return !w->grown[i];
}

static bool writes_are_whole(const struct world *w, int inode, size_t before) {
    for (size_t i = 0; i < before; i++)
        if (is_write(&w->s->v[i]) && w->s->v[i].inode == inode && !write_is_whole(w, i))
            return false;
    return true;
}

static bool metas_are_there(const struct world *w, size_t before) {
    for (size_t i = 0; i < before; i++)
        if (is_meta(&w->s->v[i]) && w->names[i] != THERE)
            return false;
    return true;
}

/* One sector is written as a whole: it has the later bytes only with the earlier, but where the
 * later ones are all of it. */
static bool sectors_make_sense(const struct world *w) {
    for (size_t late = 0; late < w->s->n; late++)
        for (size_t early = 0; early < late; early++) {
            const struct op *a = &w->s->v[early], *b = &w->s->v[late];
            if (!is_write(a) || !is_write(b) || a->inode != b->inode)
                continue;
            for (size_t k = 0; k < pieces_of(w, a); k++) {
                uint64_t u = a->at / w->unit + k, from = u * w->unit, to = from + w->unit;
                if (w->pieces[early][k] || b->at >= to || b->end <= from ||
                    !w->pieces[late][u - b->at / w->unit])
                    continue;
                bool whole = false;
                for (size_t j = early + 1; j <= late; j++) {
                    const struct op *c = &w->s->v[j];
                    whole |= is_shape(c) && c->inode == a->inode && c->end < c->size_was &&
                             c->end <= from;
                    if (is_write(c) && c->inode == a->inode && c->at <= from && c->end > from &&
                        w->pieces[j][u - c->at / w->unit])
                        whole |= c->end >= to || c->end >= c->size_was;
                }
                if (!whole)
                    return false;
            }
        }
    return true;
}

static bool sizes_make_sense(const struct world *w) {
    for (size_t i = 0; i < w->s->n; i++) {
        const struct op *o = &w->s->v[i];
        uint64_t last = 0;
        if (!is_write(o) || w->model->size == SIZE_BY_ITSELF)
            continue;
        bool there = !w->grown[i];
        for (size_t k = 0; k < pieces_of(w, o); k++)
            if (w->pieces[i][k]) {
                last = piece_end(w, o, k);
                there |= last == w->grown[i];
            }
        if (w->model->size == SIZE_AFTER_BYTES ? !there : w->grown[i] != last)
            return false;
    }
    return true;
}

/* Without a journal. */
static bool synced_is_there(const struct world *w) {
    for (size_t at = 0; at < w->s->n; at++) {
        const struct op *sync = &w->s->v[at];
        bool flush = is_sync(sync) || (sync->deed == DISK_CLOSE && w->model->close_flushes) ||
                     (is_shape(sync) && w->model->at_once);
        for (size_t i = 0; i < at && flush; i++) {
            const struct op *o = &w->s->v[i];
            if (sync->directory && is_names(o)) {
                bool from = folder_of(o->slot) == sync->inode;
                bool to = (o->deed == DISK_RENAME || o->deed == DISK_LINK) &&
                          folder_of(o->to) == sync->inode;
                from &= o->deed != DISK_LINK;
                if ((from && w->names[i] != THERE) || (to && w->names[i] == LOST))
                    return false;
            }
            if (!sync->directory && o->inode == sync->inode &&
                ((is_write(o) && !write_is_whole(w, i)) || (is_shape(o) && w->names[i] != THERE)))
                return false;
        }
    }
    return true;
}

/* Whether o has changed what an fsync of inode, or an fdatasync, asks the journal for. */
static bool changed(const struct op *o, int inode, bool data_only) {
    bool mine = o->inode == inode;
    if (is_names(o) && (inode == ROOT || inode == FOLDER)) {
        bool to = o->deed == DISK_RENAME || o->deed == DISK_LINK;
        bool from = o->deed != DISK_LINK;
        return (from && folder_of(o->slot) == inode) || (to && folder_of(o->to) == inode) ||
               (mine && o->deed == DISK_MKDIR);
    }
    if (data_only)
        return mine && (is_shape(o) || (is_names(o) && o->deed == DISK_CREATE) ||
                        (is_write(o) && o->end > o->size_was));
    return mine && (is_meta(o) || is_write(o));
}

static bool journal_makes_sense(const struct world *w) {
    bool lost = false;
    for (size_t i = 0; i < w->s->n; i++) {
        const struct op *o = &w->s->v[i];
        if (is_meta(o) && (w->names[i] == NEW_NAME_ONLY || (lost && w->names[i] == THERE)))
            return false;
        lost |= is_meta(o) && w->names[i] == LOST;
        if (is_write(o) && !write_is_nothing(w, i)) {
            size_t need = i;
            if (o->end <= o->size_was)
                for (need = i; need > 0; need--)
                    if (changed(&w->s->v[need - 1], o->inode, true))
                        break;
            if (!metas_are_there(w, need))
                return false;
        }
        if (is_sync(o)) {
            if (!o->directory && !writes_are_whole(w, o->inode, i))
                return false;
            size_t last = i;
            while (last > 0 && !changed(&w->s->v[last - 1], o->inode, o->deed == DISK_SYNC_DATA))
                last--;
            if (!metas_are_there(w, last))
                return false;
            for (size_t k = 0; k < i && !o->directory; k++)
                if (is_shape(&w->s->v[k]) && w->s->v[k].inode == o->inode && w->names[k] != THERE)
                    return false;
        }
        if (w->model->rename_flushes && o->deed == DISK_RENAME && o->replaces &&
            w->names[i] == THERE && !writes_are_whole(w, o->inode, i))
            return false;
    }
    return true;
}

/* A file that was cut to nothing and closed: no later name without its bytes. */
static bool closes_make_sense(const struct world *w) {
    for (size_t at = 0; at < w->s->n && w->model->truncate_flushes; at++) {
        const struct op *o = &w->s->v[at];
        bool cut = false, later = false;
        if (o->deed != DISK_CLOSE)
            continue;
        for (size_t i = 0; i < at; i++) {
            const struct op *p = &w->s->v[i];
            if (p->inode == o->inode && p->deed == DISK_CLOSE)
                cut = false;
            if (p->inode == o->inode && is_shape(p) && !p->end && p->size_was)
                cut = true;
        }
        for (size_t i = at; i < w->s->n; i++)
            later |= is_meta(&w->s->v[i]) && w->names[i] == THERE;
        if (cut && later && !writes_are_whole(w, o->inode, at))
            return false;
    }
    return true;
}

static bool is_allowed(const struct world *w) {
    if (!sectors_make_sense(w) || !sizes_make_sense(w))
        return false;
    if (w->model->journal)
        return journal_makes_sense(w) && closes_make_sense(w);
    if (w->model->at_once && !metas_are_there(w, w->s->n))
        return false;
    return synced_is_there(w);
}

/* ---- what it looks like: a letter for eight bytes ---- */

enum { FILE_BYTES = 4096 };
struct disk {
    int slots[SLOTS];
    unsigned char bytes[INODES][FILE_BYTES];
    uint64_t sizes[INODES];
};

static void put_content(struct buf *out, const unsigned char *bytes, uint64_t size) {
    buf_printf(out, "%d:", (int)size);
    for (uint64_t i = 0; i < size; i += 8)
        buf_putc(out, (char)(' ' + bytes[i]));
    buf_putc(out, '\n');
}

static void do_write(const struct world *w, size_t i, struct disk *d) {
    const struct op *o = &w->s->v[i];
    for (size_t k = 0; k < pieces_of(w, o); k++) {
        uint64_t to = piece_end(w, o, k), from = k ? piece_end(w, o, k - 1) : o->at;
        if (o->had || w->pieces[i][k])
            memset(d->bytes[o->inode] + from, o->had ? 100 : (int)i + 1, to - from);
    }
    uint64_t grown = o->had ? o->end : w->grown[i];
    if (grown > d->sizes[o->inode])
        d->sizes[o->inode] = grown;
}

static void do_names(const struct world *w, size_t i, struct disk *d) {
    const struct op *o = &w->s->v[i];
    if (!o->had && w->names[i] == LOST)
        return;
    bool two = o->deed == DISK_RENAME || o->deed == DISK_LINK;
    d->slots[two ? o->to : o->slot] = o->deed == DISK_UNLINK ? -1 : o->inode;
    if (o->deed == DISK_RENAME && w->names[i] == THERE)
        d->slots[o->slot] = -1;
}

static void print_disk(const struct disk *d, struct buf *out) {
    static const int order[SLOTS] = {0, 1, 2, 3, 4, 5, 6};
    bool seen[INODES] = {false};
    for (int k = 0; k < SLOTS; k++) {
        int slot = order[k], f = d->slots[slot];
        if (f < 0 || (slot >= IN_FOLDER && d->slots[SLOT_OF_FOLDER] < 0))
            continue;
        buf_printf(out, "%s ", slot_paths[slot]);
        if (slot == SLOT_OF_FOLDER)
            buf_puts(out, "/\n");
        else if (seen[f])
            buf_puts(out, "=\n");
        else
            put_content(out, d->bytes[f], d->sizes[f]);
        seen[f] = true;
    }
}

static void print_world(const struct world *w, struct buf *out) {
    static struct disk d;
    memset(&d, 0, sizeof(d));
    for (int i = 0; i < SLOTS; i++)
        d.slots[i] = -1;
    if (w->s->v[0].deed == DISK_WRITE || (w->s->n > 1 && w->s->v[1].had && w->s->v[1].end))
        d.slots[0] = FIRST_FILE; /* the file that was there */
    for (size_t i = 0; i < w->s->n; i++) {
        const struct op *o = &w->s->v[i];
        if (o->deed == DISK_WRITE) {
            do_write(w, i, &d);
        } else if (is_shape(o) && w->names[i] == THERE) {
            d.sizes[o->inode] = o->end;
            memset(d.bytes[o->inode] + o->end, 0, FILE_BYTES - o->end);
        } else if (is_names(o) || (o->had && o->deed == DISK_MKDIR)) {
            do_names(w, i, &d);
        }
    }
    print_disk(&d, out);
}

static int print_entry(void *arg, const struct crash_entry *e) {
    unsigned char bytes[FILE_BYTES] = {0};
    struct buf *out = arg;
    buf_printf(out, "%s ", e->path);
    if (e->kind == CRASH_DIRECTORY)
        buf_puts(out, "/\n");
    else if (e->same_as)
        buf_puts(out, "=\n");
    for (size_t i = 0; i < e->runs_n; i++)
        memcpy(bytes + e->runs[i].at, e->runs[i].bytes, e->runs[i].size);
    if (e->kind == CRASH_FILE && !e->same_as)
        put_content(out, bytes, e->size);
    return 0;
}

/* ---- sets of texts ---- */

struct texts_set {
    char **v;
    size_t n;
    struct crash_index index;
};

static bool has_text(const struct texts_set *s, const char *text) {
    size_t at = 0, i;
    uint64_t h = crash_index_hash(0, text, strlen(text));
    while ((i = crash_index_next(&s->index, h, &at)) != SIZE_MAX)
        if (str_eq(s->v[i], text))
            return true;
    return false;
}

static void put_text(struct texts_set *s, const char *text) {
    if (has_text(s, text))
        return;
    mem_push(s->v, s->n) = mem_strdup(text);
    crash_index_put(&s->index, crash_index_hash(0, text, strlen(text)), s->n - 1);
}

static void drop_texts(struct texts_set *s) {
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    crash_index_fini(&s->index);
}

/* ---- all choices ---- */

struct choice {
    size_t op;
    int piece; /* of a write; -1: a name; -2: how far it has grown */
    int n, at;
};

static size_t list_choices(const struct world *w, struct choice *v, double *all) {
    size_t n = 0;
    *all = 1;
    for (size_t i = 0; i < w->s->n; i++) {
        const struct op *o = &w->s->v[i];
        if (is_meta(o))
            v[n++] = (struct choice){i, -1, crosses(o) ? 3 : 2, 0};
        for (size_t k = 0; is_write(o) && k < pieces_of(w, o); k++)
            v[n++] = (struct choice){i, (int)k, 2, 0};
        if (is_write(o))
            v[n++] = (struct choice){i, -2, (int)pieces_of(w, o) + 1, 0};
    }
    for (size_t i = 0; i < n; i++)
        *all *= v[i].n;
    return n;
}

static void choose(struct world *w, const struct choice *c) {
    const struct op *o = &w->s->v[c->op];
    if (c->piece == -1)
        w->names[c->op] = c->at;
    else if (c->piece >= 0)
        w->pieces[c->op][c->piece] = c->at;
    else
        w->grown[c->op] = c->at ? piece_end(w, o, (size_t)c->at - 1) : 0;
}

/* False: there are too many. */
static bool define(struct world *w, struct texts_set *ret) {
    struct choice v[CHOICES_MAX];
    BUF_FINI struct buf b = {0};
    double all;
    size_t n = list_choices(w, v, &all);
    if (all > COMBINATIONS_MAX)
        return false;
    for (size_t k = 0; k < n; k++)
        choose(w, &v[k]);
    for (bool more = true; more;) {
        if (is_allowed(w)) {
            buf_clear(&b);
            print_world(w, &b);
            put_text(ret, buf_str(&b));
        }
        more = false;
        for (size_t k = 0; k < n && !more; k++) {
            more = ++v[k].at < v[k].n;
            v[k].at = more ? v[k].at : 0;
            choose(w, &v[k]);
        }
    }
    return true;
}

static void find(struct small *s, size_t model, enum crash_death death, size_t per_point,
                 struct texts_set *ret, double *left_out) {
    struct crash_states states;
    struct crash_ask ask = {.record = &s->made.record,
                            .from = s->made.record.n,
                            .deaths = 1U << death,
                            .models = 1U << model,
                            .per_point = per_point,
                            .states_max = SIZE_MAX,
                            .seed = 7};
    assert_int_equal(crash_states_find(&ask, &states, NULL), 0);
    assert_int_equal(states.ignored, 0);
    for (size_t i = 0; i < states.n; i++) {
        BUF_FINI struct buf b = {0};
        crash_states_walk(&states, i, print_entry, &b);
        put_text(ret, buf_str(&b));
    }
    *left_out = states.left_out;
    crash_states_fini(&states);
}

static void print_record(const struct small *s) {
    for (size_t i = 0; i < s->made.record.n; i++) {
        const struct disk_operation *o = &s->made.v[i];
        print_message("  %zu %s %s %s #%d at %d, %d bytes\n", i, disk_deed_names[o->deed],
                      o->path ? o->path : "", o->to ? o->to : "", (int)o->file, (int)o->offset,
                      (int)o->size);
    }
}

static void assert_within(const struct small *s, const struct disk_model *model,
                          const struct texts_set *all, const struct texts_set *of,
                          const char *what) {
    for (size_t i = 0; i < all->n; i++)
        if (!has_text(of, all->v[i])) {
            print_record(s);
            fail_msg("%s: %s\n%s", model->name, what, all->v[i]);
        }
}

static size_t hold_against(struct small *s, size_t model, enum crash_death death) {
    struct world w = {
        .s = s, .model = &disk_models[model], .unit = death == CRASH_POWER ? 512 : 4096};
    struct texts_set may = {0}, all = {0}, some = {0};
    double left_out;
    size_t n = 0;
    if (define(&w, &may)) {
        find(s, model, death, SIZE_MAX, &all, &left_out);
        assert_true(left_out == 0);
        assert_within(s, w.model, &all, &may, "this cannot be");
        assert_within(s, w.model, &may, &all, "this was not found");
        find(s, model, death, 6, &some, &left_out);
        assert_within(s, w.model, &some, &may, "within a bound, this cannot be");
        assert_true(left_out > 0 || some.n == may.n);
        n = may.n;
    }
    drop_texts(&may);
    drop_texts(&all);
    drop_texts(&some);
    return n;
}

static void test_all_states_of_small_records_are_found_and_no_other(void **state) {
    static struct small s;
    struct rand r;
    (void)state;
    rand_init(&r, 20);
    for (size_t model = 0; model < DISK_MODELS_N; model++) {
        size_t states = 0, records = 0;
        for (int tries = 0; tries < 40 * RECORDS && records < 2 * RECORDS; tries++) {
            draw_record(&s, &r);
            size_t n = hold_against(&s, model, tries % 2 ? CRASH_POWER : CRASH_KERNEL);
            states += n;
            records += n > 1;
            made_drop(&s.made);
        }
        print_message("%s: %zu states of %zu records\n", disk_models[model].name, states, records);
        assert_true(records == 2 * RECORDS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_states_of_small_records_are_found_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
