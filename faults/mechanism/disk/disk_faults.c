#include "faults/mechanism/disk/disk_faults.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "faults/mechanism/disk/disk_late.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef FALLOC_FL_KEEP_SIZE
#define FALLOC_FL_KEEP_SIZE 1
#endif

/* A request that waits, in a thread of its own. */
struct disk_parked {
    struct list link;
    struct disk_mount *mount;
    char *request;
    size_t n;
    int thread; /* that waits; 0: none does */
    int64_t rule, due_ns;
    bool released, interrupted, killed, ends;
};

/* How often it is looked whether who waits is being killed, once it has had a signal: the kernel
 * tells of the first one alone. */
static const int64_t look_ns = 20000000;

void disk_faults_begin(struct disk *d) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&d->parked_changed, &monotonic);
    list_init(&d->parked);
}

/* ---- what is asked ---- */

static unsigned does_of(const struct disk_call *c) {
    const struct fuse_setattr_in *set = c->arg;
    const struct fuse_open_in *open = c->arg;
    switch (c->in->opcode) {
    case FUSE_OPEN:
        return open->flags & (O_ACCMODE | O_TRUNC) ? DISK_DOES_OPEN : DISK_DOES_READ_OPEN;
    case FUSE_CREATE:
        return DISK_DOES_OPEN;
    case FUSE_READ:
        return DISK_DOES_READ;
    case FUSE_WRITE:
        return DISK_DOES_WRITE;
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
    case FUSE_SYNCFS:
        return DISK_DOES_SYNC;
    case FUSE_RENAME:
    case FUSE_RENAME2:
        return DISK_DOES_RENAME;
    case FUSE_UNLINK:
    case FUSE_RMDIR:
        return DISK_DOES_UNLINK;
    case FUSE_MKDIR:
    case FUSE_LINK:
    case FUSE_SYMLINK:
    case FUSE_MKNOD:
        return DISK_DOES_MKDIR;
    case FUSE_SETATTR:
        return set->valid & FATTR_SIZE ? DISK_DOES_TRUNCATE : DISK_DOES_ATTRIBUTES;
    case FUSE_FALLOCATE:
        return DISK_DOES_TRUNCATE;
    case FUSE_SETXATTR:
    case FUSE_REMOVEXATTR:
        return DISK_DOES_ATTRIBUTES;
    default:
        return 0;
    }
}

static void put(char *to, const char *path) {
    snprintf(to, PATH_MAX, "/%s", path);
}

static void put_entry(struct disk_call *c, uint64_t parent, const char *name, char *to) {
    put(to, disk_tree_entry(&c->disk->tree, parent, name, &c->disk->path));
}

static void put_file(struct disk_call *c, uint64_t number, char *to) {
    const struct disk_file *f = disk_file_of(c, number);
    put(to, f ? disk_tree_path(&c->disk->tree, f, &c->disk->path) : "");
}

static void put_paths(struct disk_call *c, char *from, char *to) {
    const struct fuse_rename_in *rename = c->arg;
    const struct fuse_rename2_in *rename2 = c->arg;
    const struct fuse_link_in *link = c->arg;
    bool renames = c->in->opcode == FUSE_RENAME || c->in->opcode == FUSE_RENAME2;
    *to = '\0';
    if (c->in->opcode == FUSE_LINK) {
        put_file(c, link->oldnodeid, from);
        put_entry(c, c->in->nodeid, c->name, to);
    } else if (c->name && c->in->opcode != FUSE_SETXATTR && c->in->opcode != FUSE_REMOVEXATTR) {
        put_entry(c, c->in->nodeid, c->name, from);
    } else {
        put_file(c, c->in->nodeid, from);
    }
    if (renames)
        put_entry(c, c->in->opcode == FUSE_RENAME ? rename->newdir : rename2->newdir,
                  c->name + strlen(c->name) + 1, to);
}

static int64_t beyond(const struct disk_call *c, uint64_t end) {
    const struct disk_file *f = disk_file_of(c, c->in->nodeid);
    struct stat st;
    if (!f || fstat(f->fd, &st) != 0 || end <= (uint64_t)st.st_size)
        return 0;
    return (int64_t)(end - (uint64_t)st.st_size);
}

static void put_bytes(const struct disk_call *c, struct disk_request *q) {
    const struct fuse_write_in *write = c->arg;
    const struct fuse_fallocate_in *allocate = c->arg;
    if (c->in->opcode == FUSE_WRITE) {
        bool mapped = write->write_flags & FUSE_WRITE_CACHE;
        bool appends = write->flags & O_APPEND && !mapped;
        q->bytes = write->size;
        q->grows = appends ? q->bytes : beyond(c, write->offset + write->size);
        q->grows = q->grows < q->bytes ? q->grows : q->bytes;
        q->divisible = !mapped;
    } else if (c->in->opcode == FUSE_FALLOCATE && !(allocate->mode & FALLOC_FL_KEEP_SIZE)) {
        q->grows = beyond(c, allocate->offset + allocate->length);
    }
}

/* ---- who waits ---- */

/* Of its own signals and those of its process; a fatal one makes SIGKILL pending for each thread. */
static bool has_signal(int thread, bool fatal) {
    static const char *const keys[] = {"\nSigPnd:", "\nShdPnd:"};
    char path[40];
    BUF_FINI struct buf status = {0};
    snprintf(path, sizeof(path), "/proc/%d/status", thread);
    if (file_read(path, 1 << 16, &status, NULL) != 0)
        return true; /* it has gone */
    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(buf_str(&status), keys[i]);
        uint64_t set = at ? strtoull(at + strlen(keys[i]), NULL, 16) : 0;
        if (fatal ? set & 1 << (SIGKILL - 1) : set != 0)
            return true;
    }
    return false;
}

static bool is_over(struct disk_parked *p, int64_t now_ns) {
    p->killed = p->interrupted && has_signal(p->thread, true);
    return p->released || p->ends || p->killed || p->mount->dead ||
           (p->due_ns && p->due_ns <= now_ns);
}

static void wait_for_change(struct disk_parked *p, int64_t now_ns) {
    int64_t until = p->due_ns ? p->due_ns : INT64_MAX;
    if (p->interrupted && until > now_ns + look_ns)
        until = now_ns + look_ns;
    struct disk *d = p->mount->disk;
    struct timespec at = {until / 1000000000, until % 1000000000};
    if (until == INT64_MAX)
        pthread_cond_wait(&d->parked_changed, &d->lock);
    else
        pthread_cond_timedwait(&d->parked_changed, &d->lock, &at);
}

static void *wait_parked(void *arg) {
    struct disk_parked *p = arg;
    struct disk *d = p->mount->disk;
    int64_t now_ns;
    char *reply = mem_alloc(1, DISK_WRITE_MAX);
    pthread_mutex_lock(&d->lock);
    while (!is_over(p, now_ns = clock_monotonic_ns()))
        wait_for_change(p, now_ns);
    list_remove(&p->link);
    pthread_mutex_unlock(&d->lock);
    struct disk_call c = disk_call_of(p->mount, p->request, p->n, reply);
    c.ruled = true;
    if (p->killed || p->ends)
        disk_answer_error(&c, p->killed ? -EINTR : -EIO);
    else
        disk_deal_with(&c);
    free(reply);
    free(p->request);
    free(p);
    return NULL;
}

/* A signal that came before it was here has been told of already. */
static bool park(struct disk_call *c, const struct disk_ruling *r) {
    struct disk_parked *p = mem_new(struct disk_parked);
    *p = (struct disk_parked){
        .mount = c->mount,
        .n = sizeof(*c->in) + c->arg_len,
        .thread = (int)c->in->pid,
        .rule = r->rule->id,
        .due_ns = r->verdict == DISK_WAITS ? clock_monotonic_ns() + r->rule->delay_ns : 0};
    p->request = mem_alloc(1, p->n);
    memcpy(p->request, c->in, p->n);
    list_append(&c->disk->parked, &p->link);
    p->interrupted = p->thread && has_signal(p->thread, false);
    if (disk_thread(wait_parked, p))
        return true;
    list_remove(&p->link);
    free(p->request);
    free(p);
    return false;
}

void disk_faults_interrupt(struct disk *d, uint64_t unique) {
    list_each(it, &d->parked) {
        struct disk_parked *p = list_entry(it, struct disk_parked, link);
        if (((const struct fuse_in_header *)(const void *)p->request)->unique == unique)
            p->interrupted = true;
    }
    pthread_cond_broadcast(&d->parked_changed);
}

/* ---- what comes of it ---- */

static bool strike(struct disk_call *c, struct disk_blow *blow) {
    char to[PATH_MAX];
    struct disk_request q = {.does = does_of(c), .path = blow->path, .to = to};
    blow->verdict = DISK_PASSES;
    if (!q.does || c->mount->dead)
        return false;
    put_paths(c, blow->path, to);
    if (!blow->path[1]) /* the directory itself is none of what lies in it */
        return false;
    put_bytes(c, &q);
    struct disk_ruling r = disk_rules_decide(c->mount->rules, c->mount->rules_n, &q);
    blow->verdict = r.verdict;
    if (r.verdict == DISK_PASSES)
        return false;
    blow->rule = r.rule->id;
    blow->error = r.verdict == DISK_FAILS ? r.rule->error : 0;
    blow->does = q.does;
    blow->pid = disk_process_of(c->disk, (int)c->in->pid);
    c->cut = r.verdict == DISK_CUTS ? (size_t)r.bytes : 0;
    if (r.verdict != DISK_WAITS && r.verdict != DISK_STICKS)
        return r.verdict == DISK_FAILS;
    c->taken = park(c, &r);
    blow->verdict = c->taken ? blow->verdict : DISK_PASSES;
    return c->taken;
}

bool disk_faults_strike(struct disk_call *c, struct disk_blow *blow) {
    pthread_mutex_lock(&c->disk->lock);
    bool done = strike(c, blow);
    c->disk->telling += blow->verdict != DISK_PASSES;
    pthread_mutex_unlock(&c->disk->lock);
    if (!done)
        return false;
    if (blow->verdict == DISK_FAILS)
        disk_answer_error(c, -blow->error);
    disk_faults_tell(c, blow);
    return true;
}

static void tell(const struct disk_call *c, const struct disk_blow *blow) {
    const struct disk_struck s = {.node = c->mount->node,
                                  .rule = blow->rule,
                                  .verdict = blow->verdict,
                                  .does = blow->does,
                                  .pid = blow->pid,
                                  .error = blow->error,
                                  .path = blow->path + 1};
    bool cut = blow->verdict == DISK_CUTS;
    if (c->disk->struck && c->taken && (!cut || c->cut))
        c->disk->struck(c->disk->arg, &s);
}

void disk_faults_tell(const struct disk_call *c, const struct disk_blow *blow) {
    if (blow->verdict == DISK_PASSES)
        return;
    tell(c, blow);
    pthread_mutex_lock(&c->disk->lock);
    c->disk->telling--;
    pthread_cond_broadcast(&c->disk->parked_changed);
    pthread_mutex_unlock(&c->disk->lock);
}

/* One is told of an operation. */
void disk_faults_late(struct disk_call *c, const struct disk_rule *rule, const char *path) {
    struct disk_blow *blow = c->blow;
    if (!blow || blow->verdict != DISK_PASSES)
        return;
    blow->verdict = DISK_LATE;
    blow->rule = rule->id;
    blow->error = 0;
    blow->does = DISK_DOES_LOOK;
    blow->pid = disk_process_of(c->disk, (int)c->in->pid);
    put(blow->path, path);
    c->disk->telling++;
}

int64_t disk_faults_held(const struct disk_call *c, const struct disk_file *f) {
    struct stat st;
    if (!c->mount->rules_n || !f || f->directory || fstat(f->fd, &st) != 0 ||
        st.st_nlink != f->held + 1)
        return 0;
    return st.st_size;
}

void disk_faults_freed(struct disk_call *c, const char *path, int64_t bytes) {
    BUF_FINI struct buf absolute = {0};
    if (!c->mount->rules_n || bytes <= 0)
        return;
    buf_printf(&absolute, "/%s", path);
    disk_rules_freed(c->mount->rules, c->mount->rules_n, buf_str(&absolute), bytes);
}

/* ---- rules ---- */

void disk_rule_add(struct disk *d, size_t slot, const struct disk_rule *rule) {
    pthread_mutex_lock(&d->lock);
    struct disk_mount *m = d->mounts[slot];
    if (m)
        mem_push(m->rules, m->rules_n) = (struct disk_rule_state){.rule = *rule};
    pthread_mutex_unlock(&d->lock);
}

void disk_rule_drop(struct disk *d, size_t slot, int64_t id) {
    pthread_mutex_lock(&d->lock);
    struct disk_mount *m = d->mounts[slot];
    size_t i = 0;
    while (m && i < m->rules_n && m->rules[i].rule.id != id)
        i++;
    if (m && i < m->rules_n)
        memmove(&m->rules[i], &m->rules[i + 1], (--m->rules_n - i) * sizeof(*m->rules));
    if (m)
        disk_late_tidy(m);
    list_each(it, &d->parked) {
        struct disk_parked *p = list_entry(it, struct disk_parked, link);
        p->released |= p->mount == m && p->rule == id;
    }
    pthread_cond_broadcast(&d->parked_changed);
    while (d->telling)
        pthread_cond_wait(&d->parked_changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

void disk_let_go(struct disk *d, size_t slot) {
    pthread_mutex_lock(&d->lock);
    struct disk_mount *m = d->mounts[slot];
    if (m)
        m->rules_n = 0;
    if (m)
        disk_late_tidy(m);
    list_each(it, &d->parked) {
        struct disk_parked *p = list_entry(it, struct disk_parked, link);
        p->ends |= p->mount == m;
    }
    pthread_cond_broadcast(&d->parked_changed);
    pthread_mutex_unlock(&d->lock);
}
