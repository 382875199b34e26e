#include "faults/mechanism/disk/disk_server.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "faults/mechanism/disk/disk_faults.h"
#include "faults/mechanism/disk/disk_late.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Linux 5.16; not in the headers of every C library. What was opened to read alone is closed without a
 * word. */
static const uint32_t no_flush = 1U << 5;
/* No number of a thread is given again so soon: all others are given before it. */
static const int64_t again_ns = 1000000;

enum { REQUEST_MAX = DISK_WRITE_MAX + 8192, REPLY_MAX = DISK_WRITE_MAX };

/* ---- answers ---- */

static int answer(struct disk_call *c, int code, const void *data, size_t len) {
    struct fuse_out_header out = {
        .len = (uint32_t)(sizeof(out) + len), .error = code, .unique = c->in->unique};
    struct iovec v[] = {{&out, sizeof(out)}, {(void *)(uintptr_t)data, len}};
    c->taken = writev(c->mount->fd, v, len ? 2 : 1) >= 0;
    return c->taken ? 0 : -errno;
}

int disk_answer(struct disk_call *c, const void *data, size_t len) {
    return answer(c, 0, data, len);
}

int disk_answer_error(struct disk_call *c, int code) {
    return answer(c, code, NULL, 0);
}

struct disk_file *disk_file_of(const struct disk_call *c, uint64_t number) {
    return disk_tree_find(&c->disk->tree, number);
}

struct disk_way disk_way_of(const struct disk_file *f) {
    struct disk_way way;
    snprintf(way.path, sizeof(way.path), "/proc/self/fd/%d", f->fd);
    return way;
}

int disk_attr(const struct disk_file *f, struct fuse_attr *ret) {
    struct stat st;
    if (fstatat(f->fd, "", &st, AT_EMPTY_PATH) != 0)
        return -errno;
    *ret = (struct fuse_attr){
        .ino = st.st_ino,
        .size = (uint64_t)st.st_size,
        .blocks = (uint64_t)st.st_blocks,
        .atime = (uint64_t)st.st_atim.tv_sec,
        .mtime = (uint64_t)st.st_mtim.tv_sec,
        .ctime = (uint64_t)st.st_ctim.tv_sec,
        .atimensec = (uint32_t)st.st_atim.tv_nsec,
        .mtimensec = (uint32_t)st.st_mtim.tv_nsec,
        .ctimensec = (uint32_t)st.st_ctim.tv_nsec,
        .mode = st.st_mode,
        .nlink = (uint32_t)st.st_nlink - f->held,
        .uid = st.st_uid,
        .gid = st.st_gid,
        .rdev = (uint32_t)st.st_rdev,
        .blksize = (uint32_t)st.st_blksize,
    };
    return 0;
}

int disk_folder_fd(const struct disk_call *c) {
    struct disk_file *f = c->disk->alone ? disk_file_of(c, c->in->nodeid) : NULL;
    return f && f->fd >= 0 && f->directory ? openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                           : -1;
}

void disk_hold_fd(struct disk_mount *m, int fd) {
    mem_push(m->opened, m->opened_n) = fd;
}

void disk_drop_fd(struct disk_mount *m, int fd) {
    size_t i = 0;
    while (i < m->opened_n && m->opened[i] != fd)
        i++;
    if (i == m->opened_n)
        return;
    m->opened[i] = m->opened[--m->opened_n];
    close(fd);
}

uint64_t disk_valid_s(const struct disk *d) {
    return d->alone ? 86400 : 0;
}

/* What only writes goes past the kernel's pages: a copy less, and no memory for it. Nobody can map it. */
uint32_t disk_open_flags(const struct disk *d, int flags) {
    if (!d->alone)
        return 0;
    return (flags & O_ACCMODE) == O_WRONLY   ? FOPEN_DIRECT_IO
           : (flags & O_ACCMODE) == O_RDONLY ? no_flush
                                             : 0;
}

/* ---- the record ---- */

static void writer_in(int proc, struct disk_writer *ret) {
    FILE_CLOSE int fd = openat(proc, "environ", O_RDONLY | O_CLOEXEC);
    disk_writer_in(fd, ret);
}

static int process_in(int proc, int thread) {
    BUF_FINI struct buf status = {0};
    FILE_CLOSE int fd = openat(proc, "status", O_RDONLY | O_CLOEXEC);
    const char *tgid = fd >= 0 && file_read_fd(fd, 1 << 16, &status, NULL) == 0
                           ? strstr(buf_str(&status), "\nTgid:")
                           : NULL;
    return tgid ? atoi(tgid + strlen("\nTgid:")) : thread;
}

static const struct disk_caller *caller_of(struct disk *d, int thread) {
    static const struct disk_caller nobody = {.who = {.rank = -1}};
    struct disk_caller *known = &d->callers[(unsigned)thread % DISK_CALLERS];
    char path[32];
    if (thread <= 0)
        return &nobody;
    int64_t now_ns = clock_monotonic_ns(), was_ns = known->met_ns;
    known->met_ns = now_ns;
    if (known->thread == thread &&
        (now_ns - was_ns < again_ns || faccessat(known->proc, "stat", F_OK, 0) == 0))
        return known;
    if (known->thread)
        file_close(&known->proc);
    snprintf(path, sizeof(path), "/proc/%d", thread);
    *known = (struct disk_caller){
        .thread = thread, .pid = thread, .met_ns = now_ns, .who = {.rank = -1}};
    known->proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (known->proc >= 0) {
        known->pid = process_in(known->proc, thread);
        writer_in(known->proc, &known->who);
    }
    return known;
}

int disk_process_of(struct disk *d, int thread) {
    return caller_of(d, thread)->pid;
}

static void note(struct disk_call *c, struct disk_operation *o) {
    const struct disk_caller *who = caller_of(c->disk, (int)c->in->pid);
    o->pid = who->pid;
    o->rank = who->who.rank;
    o->node = *c->mount->node ? c->mount->node : who->who.node;
    o->t_ns = clock_monotonic_ns();
    disk_recorder_add(c->disk->recorder, o);
    disk_idle_note(c->disk, o->t_ns);
}

void disk_note(struct disk_call *c, struct disk_operation o, const struct disk_file *f) {
    if (!c->disk->recorder)
        return;
    o.file = f->number;
    o.directory = f->directory;
    o.path = disk_tree_path(&c->disk->tree, f, &c->disk->path);
    note(c, &o);
}

void disk_note_entry(struct disk_call *c, struct disk_operation o, uint64_t parent,
                     const char *name) {
    if (!c->disk->recorder)
        return;
    o.path = disk_tree_entry(&c->disk->tree, parent, name, &c->disk->path);
    note(c, &o);
}

void disk_mark(struct disk *d, const char *node, int pid, const char *what) {
    pthread_mutex_lock(&d->lock);
    if (d->recorder) {
        const struct disk_caller *who = caller_of(d, pid);
        struct disk_operation o = {.deed = DISK_MARK,
                                   .path = what,
                                   .t_ns = clock_monotonic_ns(),
                                   .pid = pid,
                                   .rank = who->who.rank,
                                   .node = node};
        disk_recorder_add(d->recorder, &o);
        disk_idle_note(d, o.t_ns);
    }
    pthread_mutex_unlock(&d->lock);
}

/* ---- requests ---- */

static void init(struct disk_call *c) {
    const struct fuse_init_in *in = c->arg;
    const uint32_t wanted = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_AUTO_INVAL_DATA |
                            FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES | FUSE_HANDLE_KILLPRIV_V2 |
                            FUSE_ASYNC_DIO;
    struct fuse_init_out out = {
        .major = FUSE_KERNEL_VERSION,
        .minor = FUSE_KERNEL_MINOR_VERSION,
        .max_readahead = in->max_readahead,
        .flags = in->flags & (c->disk->alone ? wanted | FUSE_NO_OPENDIR_SUPPORT : wanted),
        .max_background = 64,
        .congestion_threshold = 48,
        .max_write = DISK_WRITE_MAX,
        .time_gran = 1,
        .max_pages = DISK_WRITE_MAX / 4096,
    };
    disk_answer(c, &out, sizeof(out));
}

static void forget_one(struct disk_call *c, uint64_t number, uint64_t n) {
    struct disk_file *f = disk_file_of(c, number);
    uint32_t *known = f ? &f->lookups[c->mount->slot] : NULL;
    if (!f)
        return;
    n = n < *known ? n : *known;
    *known -= (uint32_t)n;
    f->lookups_all -= n;
    disk_tree_tidy(&c->disk->tree, f);
}

static void forget(struct disk_call *c) {
    const struct fuse_forget_in *in = c->arg;
    forget_one(c, c->in->nodeid, in->nlookup);
}

static void forget_many(struct disk_call *c) {
    const struct fuse_batch_forget_in *in = c->arg;
    const struct fuse_forget_one *v = (const void *)(in + 1);
    size_t n = (c->arg_len - sizeof(*in)) / sizeof(*v);
    for (size_t i = 0; i < in->count && i < n; i++)
        forget_one(c, v[i].nodeid, v[i].nlookup);
}

static void destroy(struct disk_call *c) {
    disk_answer_error(c, 0);
}

static void interrupt(struct disk_call *c) {
    const struct fuse_interrupt_in *in = c->arg;
    disk_faults_interrupt(c->disk, in->unique);
}

/* size: of what comes before the name, or all. free: runs outside of the lock. */
static const struct opcode {
    disk_deal *deal;
    size_t size;
    bool named, free;
} opcodes[] = {
    [FUSE_LOOKUP] = {disk_lookup, 0, true, false},
    [FUSE_FORGET] = {forget, sizeof(struct fuse_forget_in), false, false},
    [FUSE_GETATTR] = {disk_getattr, sizeof(struct fuse_getattr_in), false, false},
    [FUSE_SETATTR] = {disk_setattr, sizeof(struct fuse_setattr_in), false, false},
    [FUSE_READLINK] = {disk_readlink, 0, false, false},
    [FUSE_SYMLINK] = {disk_symlink, 0, true, false},
    [FUSE_MKNOD] = {disk_mknod, sizeof(struct fuse_mknod_in), true, false},
    [FUSE_MKDIR] = {disk_mkdir, sizeof(struct fuse_mkdir_in), true, false},
    [FUSE_UNLINK] = {disk_unlink, 0, true, false},
    [FUSE_RMDIR] = {disk_rmdir, 0, true, false},
    [FUSE_RENAME] = {disk_rename, sizeof(struct fuse_rename_in), true, false},
    [FUSE_LINK] = {disk_link, sizeof(struct fuse_link_in), true, false},
    [FUSE_OPEN] = {disk_open_file, sizeof(struct fuse_open_in), false, false},
    [FUSE_READ] = {disk_read, sizeof(struct fuse_read_in), false, true},
    [FUSE_WRITE] = {disk_write, sizeof(struct fuse_write_in), false, false},
    [FUSE_STATFS] = {disk_statfs, 0, false, false},
    [FUSE_RELEASE] = {disk_release, sizeof(struct fuse_release_in), false, false},
    [FUSE_FSYNC] = {disk_fsync, sizeof(struct fuse_fsync_in), false, true},
    [FUSE_SETXATTR] = {disk_setxattr, FUSE_COMPAT_SETXATTR_IN_SIZE, true, false},
    [FUSE_GETXATTR] = {disk_getxattr, sizeof(struct fuse_getxattr_in), true, false},
    [FUSE_LISTXATTR] = {disk_listxattr, sizeof(struct fuse_getxattr_in), false, false},
    [FUSE_REMOVEXATTR] = {disk_removexattr, 0, true, false},
    [FUSE_FLUSH] = {disk_flush, sizeof(struct fuse_flush_in), false, false},
    [FUSE_INIT] = {init, 16, false, false},
    [FUSE_OPENDIR] = {disk_opendir, sizeof(struct fuse_open_in), false, false},
    [FUSE_READDIR] = {disk_readdir, sizeof(struct fuse_read_in), false, true},
    [FUSE_RELEASEDIR] = {disk_release, sizeof(struct fuse_release_in), false, false},
    [FUSE_FSYNCDIR] = {disk_fsync, sizeof(struct fuse_fsync_in), false, true},
    [FUSE_CREATE] = {disk_create, sizeof(struct fuse_create_in), true, false},
    [FUSE_INTERRUPT] = {interrupt, sizeof(struct fuse_interrupt_in), false, false},
    [FUSE_DESTROY] = {destroy, 0, false, false},
    [FUSE_BATCH_FORGET] = {forget_many, sizeof(struct fuse_batch_forget_in), false, false},
    [FUSE_FALLOCATE] = {disk_fallocate, sizeof(struct fuse_fallocate_in), false, false},
    [FUSE_RENAME2] = {disk_rename2, sizeof(struct fuse_rename2_in), true, false},
    [FUSE_LSEEK] = {disk_lseek, sizeof(struct fuse_lseek_in), false, true},
    [FUSE_SYNCFS] = {disk_syncfs, sizeof(struct fuse_syncfs_in), false, true},
};

static bool takes_no_answer(uint32_t opcode) {
    return opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT;
}

void disk_deal_with(struct disk_call *c) {
    const struct opcode *o =
        c->in->opcode < sizeof(opcodes) / sizeof(*opcodes) ? &opcodes[c->in->opcode] : NULL;
    if (!o || !o->deal || c->arg_len < o->size) {
        if (!takes_no_answer(c->in->opcode))
            disk_answer_error(c, !o || !o->deal ? -ENOSYS : -EIO);
        return;
    }
    c->name = o->named ? (const char *)c->arg + o->size : NULL;
    struct disk_blow blow;
    blow.verdict = DISK_PASSES;
    c->blow = &blow;
    if (__atomic_load_n(&c->mount->rules_n, __ATOMIC_RELAXED) && !c->ruled &&
        disk_faults_strike(c, &blow))
        return;
    if (!o->free)
        pthread_mutex_lock(&c->disk->lock);
    if (c->mount->dead && !takes_no_answer(c->in->opcode))
        disk_answer_error(c, -ENOTCONN);
    else
        o->deal(c);
    if (!o->free)
        pthread_mutex_unlock(&c->disk->lock);
    disk_faults_tell(c, &blow);
}

struct disk_call disk_call_of(struct disk_mount *m, const char *request, size_t n, char *reply) {
    return (struct disk_call){.mount = m,
                              .disk = m->disk,
                              .in = (const void *)request,
                              .arg = request + sizeof(struct fuse_in_header),
                              .arg_len = n - sizeof(struct fuse_in_header),
                              .reply = reply};
}

/* ---- threads ---- */

static void *serve(void *arg);

bool disk_thread(void *(*body)(void *), void *arg) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        pthread_detach(thread);
    return r == 0;
}

/* There is always one that waits, as long as there may be more: a request may take its time. */
static void count_idle(struct disk_mount *m, int change) {
    pthread_mutex_lock(&m->disk->threads_lock);
    m->idle += (unsigned)change;
    bool more = m->idle == 0 && m->threads < DISK_THREADS_MAX;
    if (more) {
        m->threads++;
        m->idle++;
    }
    pthread_mutex_unlock(&m->disk->threads_lock);
    if (more && !disk_thread(serve, m)) {
        pthread_mutex_lock(&m->disk->threads_lock);
        m->threads--;
        m->idle--;
        pthread_mutex_unlock(&m->disk->threads_lock);
    }
}

/* Only the last one that ends frees the mount, after it was forgotten. */
static void *serve(void *arg) {
    struct disk_mount *m = arg;
    char *request = mem_alloc(1, REQUEST_MAX), *reply = mem_alloc(1, REPLY_MAX);
    for (;;) {
        ssize_t n = read(m->fd, request, REQUEST_MAX);
        if (n < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
            continue;
        if (n < (ssize_t)sizeof(struct fuse_in_header)) /* ENODEV: unmounted */
            break;
        count_idle(m, -1);
        struct disk_call c = disk_call_of(m, request, (size_t)n, reply);
        disk_deal_with(&c);
        count_idle(m, 1);
    }
    free(request);
    free(reply);
    return NULL;
}

static int free_slot(struct disk *d, size_t *ret) {
    for (size_t i = 0; i < DISK_MOUNTS_MAX; i++)
        if (!d->mounts[i]) {
            *ret = i;
            return 0;
        }
    return -ENOSPC;
}

int disk_mount(struct disk *d, const char *node, int *ret_mount, size_t *ret_slot,
               struct err *err) {
    struct stat st;
    struct fuse_port port = FUSE_PORT_NONE;
    size_t slot;
    if (free_slot(d, &slot) != 0)
        return err_say(err, -ENOSPC, "a disk can be mounted %d times, not more", DISK_MOUNTS_MAX);
    if (fstat(d->backing, &st) != 0)
        return err_set(err, -errno, "look at the directory of a disk");
    int r = fuse_port_open(&port, st.st_mode & S_IFMT, err);
    if (r)
        return r;
    struct disk_mount *m = mem_new(struct disk_mount);
    *m = (struct disk_mount){
        .disk = d, .slot = slot, .fd = port.fd, .node = mem_strdup(node), .threads = 1, .idle = 1};
    if (!disk_thread(serve, m)) {
        free(m->node);
        free(m);
        fuse_port_close(&port);
        return err_set(err, -EAGAIN, "start a thread");
    }
    pthread_mutex_lock(&d->lock);
    d->mounts[slot] = m;
    pthread_mutex_unlock(&d->lock);
    *ret_mount = port.mount;
    *ret_slot = slot;
    return 0;
}

/* Its threads may still be about to see that it is over, so that what they read stays. */
static void end_mount(struct disk *d, size_t slot) {
    struct disk_mount *m = d->mounts[slot];
    m->dead = true;
    pthread_cond_broadcast(&d->parked_changed);
    disk_late_forget(m);
    while (m->opened_n)
        disk_drop_fd(m, m->opened[0]);
    for (uint64_t i = DISK_ROOT; i < d->tree.numbers; i++) {
        struct disk_file *f = disk_tree_find(&d->tree, i);
        if (!f || !f->lookups[slot])
            continue;
        f->lookups_all -= f->lookups[slot];
        f->lookups[slot] = 0;
        disk_tree_tidy(&d->tree, f);
    }
    d->mounts[slot] = NULL;
}

void disk_forget(struct disk *d, size_t slot) {
    pthread_mutex_lock(&d->lock);
    if (d->mounts[slot])
        end_mount(d, slot);
    pthread_mutex_unlock(&d->lock);
}

int disk_power_off(struct disk *d, size_t slot, struct err *err) {
    int r = 0;
    pthread_mutex_lock(&d->lock);
    if (d->mounts[slot]) {
        end_mount(d, slot);
        r = disk_loss_strike(&d->loss, slot, err);
        if (d->loss.how == DISK_LOSES)
            disk_tree_reset(&d->tree);
    }
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* ---- all of it ---- */

int disk_open(struct disk **ret, const char *dir, const struct disk_options *o, struct err *err) {
    struct stat st;
    struct disk *d = mem_new(struct disk);
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->threads_lock, NULL);
    disk_faults_begin(d);
    d->struck = o->struck;
    d->arg = o->arg;
    d->root = geteuid() == 0;
    d->alone = o->alone;
    d->idle = -1;
    d->backing = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = d->backing < 0 || fstat(d->backing, &st) != 0
                ? err_set(err, -errno, "open %s", dir)
                : disk_loss_open(&d->loss, o, &d->tree, d->backing, err);
    if (r == 0) {
        disk_tree_add(&d->tree, &st)->fd = fcntl(d->backing, F_DUPFD_CLOEXEC, 3);
        r = o->record ? disk_recorder_open(&d->recorder, o->record, o->max_bytes, err) : 0;
    }
    if (r == 0 && d->recorder)
        r = disk_tell_all(d, err);
    if (r == 0 && d->recorder && d->alone)
        r = disk_idle_begin(d, err);
    if (r) {
        disk_recorder_close(d->recorder, NULL);
        disk_loss_close(&d->loss);
        disk_tree_fini(&d->tree);
        file_close(&d->idle);
        file_close(&d->backing);
        free(d);
        return r;
    }
    *ret = d;
    return 0;
}

int disk_close(struct disk *d, struct err *err) {
    pthread_mutex_lock(&d->lock);
    int r = disk_recorder_close(d->recorder, err);
    d->recorder = NULL;
    disk_loss_close(&d->loss);
    for (size_t i = 0; i < DISK_MOUNTS_MAX; i++)
        if (d->mounts[i])
            d->mounts[i]->dead = true;
    pthread_cond_broadcast(&d->parked_changed);
    pthread_mutex_unlock(&d->lock);
    return r;
}
