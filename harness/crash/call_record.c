#include "harness/crash/call_record.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/crash/call_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { fchmodat2_nr = 452 }; /* on every machine */

static const struct {
    int nr;
    call_deed_fn *does;
} deeds[] = {
    {SYS_openat, call_does_open_at},
    {SYS_openat2, call_does_open_how},
    {SYS_close, call_does_close},
    {SYS_renameat2, call_does_rename_at},
    {SYS_linkat, call_does_link_at},
    {SYS_symlinkat, call_does_symlink_at},
    {SYS_unlinkat, call_does_unlink_at},
    {SYS_mkdirat, call_does_mkdir_at},
    {SYS_truncate, call_does_truncate},
    {SYS_write, call_does_write},
    {SYS_pwrite64, call_does_pwrite},
    {SYS_writev, call_does_writev},
    {SYS_pwritev, call_does_pwritev},
    {SYS_pwritev2, call_does_pwritev2},
    {SYS_ftruncate, call_does_ftruncate},
    {SYS_fallocate, call_does_allocate},
    {SYS_fsync, call_does_fsync},
    {SYS_fdatasync, call_does_fdatasync},
    {SYS_sync_file_range, call_does_sync_range},
    {SYS_sync, call_does_sync},
    {SYS_syncfs, call_does_syncfs},
    {SYS_msync, call_does_msync},
    {SYS_copy_file_range, call_does_copy_range},
    {SYS_sendfile, call_does_sendfile},
    {SYS_splice, call_does_splice},
    {SYS_io_uring_setup, call_does_ring},
    {SYS_umask, call_does_umask},
    {SYS_fchmod, call_does_fchmod},
    {SYS_fchmodat, call_does_chmod_at},
    {fchmodat2_nr, call_does_chmod_at}, /* which C libraries do not know yet (Linux 6.6) */
#ifdef SYS_renameat
    {SYS_renameat, call_does_rename_at},
#endif
#ifdef SYS_open /* calls that newer machines never had */
    {SYS_open, call_does_open},
    {SYS_creat, call_does_creat},
    {SYS_rename, call_does_rename},
    {SYS_link, call_does_link},
    {SYS_symlink, call_does_symlink},
    {SYS_unlink, call_does_unlink},
    {SYS_rmdir, call_does_rmdir},
    {SYS_mkdir, call_does_mkdir},
    {SYS_chmod, call_does_chmod},
#endif
};
enum { DEEDS = sizeof(deeds) / sizeof(*deeds) };
static const int64_t idle_ns = 2000000, again_ns = 1000000;

const struct call_watch *call_record_watch(void) {
    static struct call_watch w = {.passes_readers = true};
    if (w.numbers_n == 0)
        for (size_t i = 0; i < DEEDS; i++)
            w.numbers[w.numbers_n++] = deeds[i].nr;
    return &w;
}

struct call_record *call_record_new(int watch, int dir, struct disk_recorder *to, struct err *err) {
    struct call_record *r = mem_new(struct call_record);
    *r = (struct call_record){.watch = watch, .dir = dir, .to = to, .pidfd = -1};
    for (size_t i = 0; i < CALL_FOLDERS; i++)
        r->folders[i].fd = -1;
    r->idle = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (r->idle < 0)
        err_set(err, -errno, "make a timer");
    else if (!file_path_of(dir, r->base, sizeof(r->base)))
        err_say(err, -ENOENT, "the directory that is recorded has no path");
    else if (disk_recorder_hold(to, err) == 0)
        return r;
    return call_record_free(r);
}

struct call_record *call_record_free(struct call_record *r) {
    if (!r)
        return NULL;
    file_close(&r->pidfd);
    file_close(&r->idle);
    for (size_t i = 0; i < CALL_FOLDERS; i++)
        file_close(&r->folders[i].fd);
    free(r->known);
    crash_index_fini(&r->by_inode);
    buf_fini(&r->bytes);
    free(r);
    return NULL;
}

struct call_record_seen call_record_seen(const struct call_record *r) {
    return r->seen;
}

int call_record_idle_fd(const struct call_record *r) {
    return r->idle;
}

/* In between a job computes: nobody waits for it. The timer is set once and not anew for each call, as
 * a poll with a timeout would: on a virtual machine that takes longer than the call. */
static void idle_at(struct call_record *r, int64_t t_ns) {
    struct itimerspec at = {.it_value = {t_ns / 1000000000, t_ns % 1000000000}};
    r->idle_runs = timerfd_settime(r->idle, TFD_TIMER_ABSTIME, &at, NULL) == 0;
}

void call_record_idle(struct call_record *r) {
    uint64_t times;
    if (read(r->idle, &times, sizeof(times)) < 0)
        return;
    r->idle_runs = false;
    if (clock_monotonic_ns() < r->served_ns + idle_ns)
        idle_at(r, r->served_ns + idle_ns);
    else
        disk_recorder_flush(r->to);
}

/* A thread of the process that called last: it is one of who has that number, and who had it has it still.
 * No number is given again within a millisecond: all others are given before it. */
static bool is_known(struct call_record *r, pid_t thread) {
    int64_t was_ns = r->met_ns;
    r->met_ns = clock_monotonic_ns();
    if (r->pidfd < 0)
        return false;
    if (thread == r->thread && r->met_ns - was_ns < again_ns)
        return true;
    return (thread == r->pid || syscall(SYS_tgkill, r->pid, thread, 0) == 0) &&
           syscall(SYS_pidfd_send_signal, r->pidfd, 0, NULL, 0) == 0;
}

/* Whose call it is: its pidfd and RANK. False: it was not known, and may have died meanwhile. */
static bool meet(struct call_record *r, struct watched_call *c) {
    char path[64];
    bool known = is_known(r, c->thread);
    r->thread = c->thread;
    if (known) {
        c->pid = r->pid;
        return true;
    }
    file_close(&r->pidfd);
    r->mask_known = false;
    r->pid = c->pid = call_watch_process(c->thread);
    r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)r->pid);
    FILE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    disk_writer_in(fd, &r->who);
    return false;
}

int call_record_serve(struct call_record *r, short revents) {
    struct watched_call c;
    int n = call_watch_receive(r->watch, revents, &c);
    if (n <= 0)
        return n;
    struct call_scene s = {r, &c};
    int64_t answer = CALL_GOES_ON;
    if (!meet(r, &c) && !call_watch_waits(r->watch, c.id))
        return 1;
    for (size_t i = 0; i < DEEDS; i++)
        if (deeds[i].nr == c.nr)
            answer = deeds[i].does(&s);
    r->seen.no_room += answer == -ENOSPC || answer == -EDQUOT;
    if (answer == CALL_GOES_ON)
        call_watch_pass(r->watch, c.id);
    else if (answer != CALL_ANSWERED)
        call_watch_answer(r->watch, c.id, answer);
    return 1;
}

/* ---- paths that are known ---- */

/* Of what had that name nothing is known. */
static void forget(struct call_record *r, const char *path) {
    for (size_t i = 0; i < CALL_SERVED; i++)
        r->served[i].known = r->served[i].known && !str_eq(r->served[i].path, path);
    for (size_t i = 0; i < CALL_FOLDERS; i++)
        if (r->folders[i].fd >= 0 && str_eq(r->folders[i].path, path))
            file_close(&r->folders[i].fd);
}

/* False: there is no room for its new path. */
static bool follow(char path[PATH_MAX], const char *from, const char *to) {
    size_t n = strlen(from), m = strlen(to);
    if (strncmp(path, from, n) != 0 || (path[n] && path[n] != '/'))
        return true;
    size_t rest = strlen(path + n) + 1;
    if (m + rest > PATH_MAX)
        return false;
    memmove(path + m, path + n, rest);
    memcpy(path, to, m);
    return true;
}

/* With all that lies below it. */
static void renamed(struct call_record *r, const char *from, const char *to) {
    forget(r, to);
    for (size_t i = 0; i < CALL_SERVED; i++)
        r->served[i].known = r->served[i].known && follow(r->served[i].path, from, to);
    for (size_t i = 0; i < CALL_FOLDERS; i++)
        if (r->folders[i].fd >= 0 && !follow(r->folders[i].path, from, to))
            file_close(&r->folders[i].fd);
}

static void follow_names(struct call_record *r, const struct disk_operation *o) {
    if (o->deed == DISK_RENAME)
        renamed(r, o->path, o->to);
    else if (o->deed == DISK_CREATE || o->deed == DISK_MKDIR || o->deed == DISK_UNLINK ||
             o->deed == DISK_RMDIR)
        forget(r, o->path);
}

void call_scene_made(const struct call_scene *s, const struct stat *st) {
    for (size_t i = 0; i < CALL_FOLDERS; i++)
        if (s->r->outside[i].ino == st->st_ino && s->r->outside[i].dev == st->st_dev)
            s->r->outside[i].ino = 0;
}

void call_scene_moved(const struct call_scene *s) {
    for (size_t i = 0; i < CALL_SERVED; i++)
        s->r->served[i].known = false;
    for (size_t i = 0; i < CALL_FOLDERS; i++)
        file_close(&s->r->folders[i].fd);
    memset(s->r->outside, 0, sizeof(s->r->outside));
}

void call_scene_tell(const struct call_scene *s, struct disk_operation o) {
    struct call_record *r = s->r;
    follow_names(r, &o);
    r->served_ns = o.t_ns = clock_monotonic_ns();
    o.pid = s->c->pid;
    o.rank = r->who.rank;
    o.node = r->who.node;
    o.to = o.to ? o.to : "";
    r->seen.operations += o.deed != DISK_OPEN && o.deed != DISK_CLOSE;
    disk_recorder_add(r->to, &o);
    if (!r->idle_runs && disk_recorder_holds(r->to))
        idle_at(r, o.t_ns + idle_ns);
}

struct call_served *call_scene_find_served(const struct call_scene *s, const struct stat *st) {
    for (size_t i = 0; i < CALL_SERVED; i++) {
        struct call_served *l = &s->r->served[i];
        if (l->known && l->ino == st->st_ino && l->dev == st->st_dev)
            return l;
    }
    return NULL;
}

void call_scene_served(const struct call_scene *s, const struct stat *st, const char *path) {
    struct call_served *l = call_scene_find_served(s, st);
    if (!l) {
        l = &s->r->served[s->r->served_next];
        s->r->served_next = (s->r->served_next + 1) % CALL_SERVED;
    }
    l->known = st->st_nlink > 0 && str_copy(l->path, PATH_MAX, path);
    l->dev = st->st_dev;
    l->ino = st->st_ino;
}

/* ---- numbers ---- */

static uint64_t hash_of(const struct stat *st) {
    uint64_t inode[] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
    return crash_index_hash(0, inode, sizeof(inode));
}

static struct known_file *find_known(struct call_record *r, const struct stat *st) {
    uint64_t hash = hash_of(st);
    for (size_t at = 0, i; (i = crash_index_next(&r->by_inode, hash, &at)) != SIZE_MAX;)
        if (r->known[i].ino == st->st_ino && r->known[i].dev == st->st_dev)
            return &r->known[i];
    return NULL;
}

uint64_t call_scene_new_number(const struct call_scene *s, const struct stat *st) {
    struct call_record *r = s->r;
    struct known_file *k = find_known(r, st);
    if (!k) {
        mem_push(r->known, r->known_n) = (struct known_file){st->st_dev, st->st_ino, 0};
        k = &r->known[r->known_n - 1];
        crash_index_put(&r->by_inode, hash_of(st), r->known_n - 1);
    }
    return k->file = ++r->files;
}

uint64_t call_scene_number(const struct call_scene *s, const struct stat *st) {
    struct known_file *k = find_known(s->r, st);
    return k ? k->file : call_scene_new_number(s, st);
}
