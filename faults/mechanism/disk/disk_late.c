#include "faults/mechanism/disk/disk_late.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "faults/mechanism/disk/disk_faults.h"
#include "faults/mechanism/disk/disk_intent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEEN_MAX = 4096, ENTRIES_MAX = 1 << 20 };

/* ---- which rule ---- */

static const struct disk_rule *rule_for(const struct disk_mount *m, const char *path) {
    BUF_FINI struct buf absolute = {0};
    buf_printf(&absolute, "/%s", path);
    for (size_t i = 0; i < m->rules_n; i++)
        if (m->rules[i].rule.late_ns && disk_rule_means(&m->rules[i].rule, buf_str(&absolute)))
            return &m->rules[i].rule;
    return NULL;
}

static const struct disk_rule *rule_of_name(struct disk_call *c, uint64_t parent,
                                            const char *name) {
    if (!c->mount->rules_n)
        return NULL;
    return rule_for(c->mount, disk_tree_entry(&c->disk->tree, parent, name, &c->disk->path));
}

static const struct disk_rule *rule_of_file(struct disk_call *c, const struct disk_file *f) {
    if (!c->mount->rules_n || f->number == DISK_ROOT)
        return NULL;
    return rule_for(c->mount, disk_tree_path(&c->disk->tree, f, &c->disk->path));
}

/* Told by the path that rule_of_* has left. */
static void late(struct disk_call *c, const struct disk_rule *r) {
    disk_faults_late(c, r, buf_str(&c->disk->path));
}

/* ---- what a mount was told ---- */

static void hold(struct disk *d, uint64_t number, int change) {
    struct disk_file *f = number ? disk_tree_find(&d->tree, number) : NULL;
    if (!f)
        return;
    f->lookups_all += (uint64_t)(int64_t)change;
    disk_tree_tidy(&d->tree, f);
}

static void drop(struct disk_mount *m, struct disk_belief *s) {
    hold(m->disk, s->file, -1);
    free(s->name);
    buf_fini(&s->entries);
    *s = m->seen[--m->seen_n];
}

static struct disk_belief *seen_of(struct disk_mount *m, enum disk_seen_what what, uint64_t number,
                                   const char *name) {
    for (size_t i = 0; i < m->seen_n; i++) {
        struct disk_belief *s = &m->seen[i];
        if (s->what == what && s->number == number && (!name || str_eq(s->name, name)))
            return s;
    }
    return NULL;
}

/* The same, unless it is too long ago. */
static struct disk_belief *fresh_of(struct disk_mount *m, const struct disk_rule *r,
                                    enum disk_seen_what what, uint64_t number, const char *name) {
    struct disk_belief *s = seen_of(m, what, number, name);
    if (!s || clock_monotonic_ns() - s->t_ns <= r->late_ns)
        return s;
    drop(m, s);
    return NULL;
}

static void drop_oldest(struct disk_mount *m) {
    size_t oldest = 0;
    for (size_t i = 1; i < m->seen_n; i++)
        if (m->seen[i].t_ns < m->seen[oldest].t_ns)
            oldest = i;
    drop(m, &m->seen[oldest]);
}

/* Takes name and entries. */
static void keep(struct disk_mount *m, struct disk_belief s) {
    if (m->seen_n == SEEN_MAX)
        drop_oldest(m);
    hold(m->disk, s.file, 1);
    s.t_ns = clock_monotonic_ns();
    mem_push(m->seen, m->seen_n) = s;
}

static void forget(struct disk_mount *m, enum disk_seen_what what, uint64_t number,
                   const char *name) {
    struct disk_belief *s = seen_of(m, what, number, name);
    if (s)
        drop(m, s);
}

void disk_late_own_name(struct disk_call *c, uint64_t parent, const char *name) {
    forget(c->mount, DISK_SEEN_NAME, parent, name);
    forget(c->mount, DISK_SEEN_ENTRIES, parent, NULL);
    disk_late_own(c, parent);
}

void disk_late_own(struct disk_call *c, uint64_t number) {
    forget(c->mount, DISK_SEEN_ATTR, number, NULL);
}

void disk_late_forget(struct disk_mount *m) {
    while (m->seen_n)
        drop(m, &m->seen[0]);
    free(m->seen);
    m->seen = NULL;
    for (size_t i = 0; i < m->lists_n; i++)
        buf_fini(&m->lists[i].entries);
    free(m->lists);
    m->lists = NULL;
    m->lists_n = 0;
}

void disk_late_tidy(struct disk_mount *m) {
    for (size_t i = 0; i < m->rules_n; i++)
        if (m->rules[i].rule.late_ns)
            return;
    while (m->seen_n) /* who lists a directory goes on with what it has begun */
        drop(m, &m->seen[0]);
}

/* ---- names and attributes ---- */

struct disk_file *disk_late_name(struct disk_call *c, struct disk_file *parent, const char *name,
                                 struct disk_file *now) {
    const struct disk_rule *r = rule_of_name(c, parent->number, name);
    struct disk_belief *s = r ? fresh_of(c->mount, r, DISK_SEEN_NAME, parent->number, name) : NULL;
    struct disk_file *was = s && s->file ? disk_file_of(c, s->file) : NULL;
    if (!r)
        return now;
    if (s && was == now) {
        s->t_ns = clock_monotonic_ns();
        return now;
    }
    if (!s) {
        keep(c->mount, (struct disk_belief){.what = DISK_SEEN_NAME,
                                            .number = parent->number,
                                            .file = now ? now->number : 0,
                                            .name = mem_strdup(name)});
        return now;
    }
    enum disk_intent intent = disk_intent_of((int)c->in->pid);
    if (intent == DISK_LOOKS || (intent == DISK_OPENS && !was))
        late(c, r);
    return was;
}

static bool attr_same(const struct fuse_attr *a, const struct fuse_attr *b) {
    return a->size == b->size && a->mtime == b->mtime && a->mtimensec == b->mtimensec &&
           a->ctime == b->ctime && a->ctimensec == b->ctimensec && a->mode == b->mode &&
           a->nlink == b->nlink && a->uid == b->uid && a->gid == b->gid;
}

void disk_late_attr(struct disk_call *c, const struct disk_file *f, struct fuse_attr *attr) {
    const struct disk_rule *r = rule_of_file(c, f);
    struct disk_belief *s = r ? fresh_of(c->mount, r, DISK_SEEN_ATTR, f->number, NULL) : NULL;
    if (!r)
        return;
    if (!s) {
        keep(c->mount,
             (struct disk_belief){.what = DISK_SEEN_ATTR, .number = f->number, .attr = *attr});
    } else if (attr_same(&s->attr, attr)) {
        s->t_ns = clock_monotonic_ns();
    } else {
        *attr = s->attr;
        if (disk_intent_of((int)c->in->pid) == DISK_LOOKS)
            late(c, r);
    }
}

/* It is a name's no more. */
static bool is_old(struct disk_call *c, const struct disk_belief *s, const struct disk_file *f) {
    const struct disk_file *parent = disk_file_of(c, s->number);
    struct stat st;
    return !parent || parent->fd < 0 ||
           fstatat(parent->fd, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != f->ino ||
           st.st_dev != f->dev;
}

/* A name by which the mount has that file, and which has it no more; r: its rule. */
static struct disk_belief *old_name_of(struct disk_call *c, const struct disk_file *f,
                                       const struct disk_rule **r) {
    for (size_t i = 0; i < c->mount->seen_n; i++) {
        struct disk_belief *s = &c->mount->seen[i];
        if (s->what == DISK_SEEN_NAME && s->file == f->number && is_old(c, s, f) &&
            (*r = rule_of_name(c, s->number, s->name)))
            return s;
    }
    return NULL;
}

bool disk_late_open(struct disk_call *c, const struct disk_file *f) {
    const struct disk_rule *r = rule_of_file(c, f);
    struct disk_belief *s;
    bool anew = false;
    if (r && !r->late_opens)
        forget(c->mount, DISK_SEEN_ATTR, f->number, NULL);
    while ((s = old_name_of(c, f, &r))) {
        if (r->late_opens) {
            late(c, r);
            return false;
        }
        drop(c->mount, s);
        anew = true;
    }
    return anew;
}

void disk_late_link(struct disk_call *c, const struct disk_file *f) {
    const struct disk_rule *r;
    if (c->mount->seen_n && old_name_of(c, f, &r))
        late(c, r);
}

/* ---- what a directory lists ---- */

static void read_entries(int fd, struct buf *ret) {
    char part[8192];
    ssize_t n = lseek(fd, 0, SEEK_SET) < 0 ? -1 : 0;
    while (n >= 0 && ret->len < ENTRIES_MAX && (n = getdents64(fd, part, sizeof(part))) > 0)
        for (ssize_t at = 0; at < n;) {
            struct dirent64 *e = (void *)(part + at);
            at += e->d_reclen;
            e->d_off = (off64_t)(ret->len + e->d_reclen);
            buf_put(ret, e, e->d_reclen);
        }
    lseek(fd, 0, SEEK_SET);
}

static bool has_entry(const struct buf *b, const char *name) {
    for (size_t at = 0; at < b->len;) {
        const struct dirent64 *e = (const void *)(b->data + at);
        if (str_eq(e->d_name, name))
            return true;
        at += e->d_reclen;
    }
    return false;
}

static bool has_all(const struct buf *a, const struct buf *b) {
    for (size_t at = 0; at < b->len;) {
        const struct dirent64 *e = (const void *)(b->data + at);
        if (!has_entry(a, e->d_name))
            return false;
        at += e->d_reclen;
    }
    return true;
}

/* Who opens a directory sees what is there. */
static void forget_names(struct disk_mount *m, uint64_t dir) {
    for (size_t i = 0; i < m->seen_n;)
        if (m->seen[i].what == DISK_SEEN_NAME && m->seen[i].number == dir)
            drop(m, &m->seen[i]);
        else
            i++;
    forget(m, DISK_SEEN_ATTR, dir, NULL);
}

/* A rule is about what a directory lists if it is about any name in it. */
bool disk_late_list(struct disk_call *c, const struct disk_file *dir, int fd) {
    const struct disk_rule *r = rule_of_name(c, dir->number, "*");
    if (!r)
        return false;
    if (!r->late_opens) {
        forget_names(c->mount, dir->number);
        return false;
    }
    struct buf now = {0};
    struct disk_belief *s = fresh_of(c->mount, r, DISK_SEEN_ENTRIES, dir->number, NULL);
    read_entries(fd, &now);
    bool same = s && has_all(&s->entries, &now) && has_all(&now, &s->entries);
    if (same)
        s->t_ns = clock_monotonic_ns();
    if (s && !same) {
        struct disk_list l = {.fd = fd};
        buf_put(&l.entries, s->entries.data, s->entries.len);
        mem_push(c->mount->lists, c->mount->lists_n) = l;
        late(c, r);
    }
    if (s || now.len >= ENTRIES_MAX)
        buf_fini(&now);
    else
        keep(c->mount, (struct disk_belief){
                           .what = DISK_SEEN_ENTRIES, .number = dir->number, .entries = now});
    return s && !same;
}

bool disk_late_entries(struct disk_mount *m, int fd, uint64_t offset, const char **ret,
                       size_t *ret_n) {
    for (size_t i = 0; i < m->lists_n; i++)
        if (m->lists[i].fd == fd) {
            const struct buf *b = &m->lists[i].entries;
            offset = offset < b->len ? offset : b->len;
            *ret = b->data + offset;
            *ret_n = b->len - offset;
            return true;
        }
    return false;
}

void disk_late_close(struct disk_mount *m, int fd) {
    for (size_t i = 0; i < m->lists_n; i++)
        if (m->lists[i].fd == fd) {
            buf_fini(&m->lists[i].entries);
            m->lists[i] = m->lists[--m->lists_n];
            return;
        }
}
