#include "scenarios/jobs/ranktrain/checkpoints/follow.h"
#include "scenarios/jobs/ranktrain/checkpoint_dir.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct follow {
    char dir[PATH_MAX];
    int notify, wake_fd, watch; /* watch -1: none */
    int64_t interval_ns, beat_ns;
    struct stat opened;
};

/* By the number of statfs(2). */
static const struct {
    long type;
    const char *name;
} distant[] = {{0x6969, "NFS"},           {0x517b, "SMB"},        {(long)0xff534d42, "CIFS"},
               {(long)0xfe534d42, "SMB"}, {0x00c36400, "Ceph"},   {0x01021997, "9p"},
               {0x65735546, "FUSE"},      {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},
               {0x5346414f, "AFS"}};

int follow_new(struct follow **ret, const char *dir, int64_t interval_ns, int64_t beat_ns,
               int wake_fd, struct err *err) {
    struct follow *f = mem_new(struct follow);
    *f = (struct follow){.watch = -1,
                         .wake_fd = wake_fd,
                         .interval_ns = interval_ns,
                         .beat_ns = beat_ns,
                         .notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    snprintf(f->dir, sizeof(f->dir), "%s", dir);
    if (f->notify < 0) {
        free(f);
        return err_set(err, -errno, "inotify (fs.inotify.max_user_instances)");
    }
    *ret = f;
    return 0;
}

struct follow *follow_free(struct follow *f) {
    if (f)
        file_close(&f->notify);
    free(f);
    return NULL;
}

/* Returns 1 when something was told or the time is up, -ECANCELED when woken. */
static int wait_for(struct follow *f, int64_t after_ns) {
    struct pollfd p[2] = {{.fd = f->notify, .events = POLLIN},
                          {.fd = f->wake_fd, .events = POLLIN}};
    int64_t deadline_ns = deadline_in_ns(after_ns);
    int n;
    do
        n = poll(p, 2, deadline_left_ms(deadline_ns));
    while (n < 0 && errno == EINTR);
    return n > 0 && p[1].revents ? -ECANCELED : 1;
}

/* Reads what has been told; true: the directory itself has gone. */
static bool drain(struct follow *f) {
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool gone = false;
    for (ssize_t n; (n = read(f->notify, events, sizeof(events))) > 0;)
        for (char *at = events; at < events + n;) {
            struct inotify_event e;
            memcpy(&e, at, sizeof(e));
            gone |= e.wd == f->watch && (e.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED));
            at += sizeof(e) + e.len;
        }
    return gone;
}

static int64_t shorter(const struct follow *f) {
    return f->interval_ns && f->interval_ns < f->beat_ns ? f->interval_ns : f->beat_ns;
}

static int check_kind(const struct follow *f, int fd, struct err *err) {
    struct statfs st;
    if (f->interval_ns || fstatfs(fd, &st) < 0)
        return 0;
    for (size_t i = 0; i < sizeof(distant) / sizeof(*distant); i++)
        if ((long)st.f_type == distant[i].type)
            return err_say(err, -EOPNOTSUPP,
                           "%s lies on %s, where the kernel does not tell what other hosts do: say "
                           "--interval=SECONDS, at which it is looked at",
                           f->dir, distant[i].name);
    return 0;
}

static int watch(struct follow *f, const char *path, struct err *err) {
    int w = inotify_add_watch(f->notify, path,
                              IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    return w < 0 ? err_set(err, -errno, "watch %s", path) : w;
}

/* What is open has no end that the kernel tells of, but on the directory above. Who may not read that one hears of it
 * at the next beat. */
static int keep(struct follow *f, int fd, int w, struct err *err) {
    char above[PATH_MAX + 4];
    f->watch = w;
    if (fstat(fd, &f->opened) < 0)
        return err_set(err, -errno, "--model-dir %s", f->dir);
    snprintf(above, sizeof(above), "%s/..", f->dir);
    (void)inotify_add_watch(f->notify, above, IN_DELETE | IN_ONLYDIR | IN_MASK_ADD);
    return check_kind(f, fd, err);
}

static bool is_there(const struct follow *f) {
    struct stat now;
    if (stat(f->dir, &now) < 0)
        return errno != ENOENT;
    return now.st_ino == f->opened.st_ino && now.st_dev == f->opened.st_dev;
}

int follow_open(struct follow *f, struct err *err) {
    for (;;) {
        char above[PATH_MAX];
        checkpoint_dir_above(f->dir, above);
        int r = watch(f, above, err);
        if (r < 0 && r != -ENOENT)
            return r;
        FILE_CLOSE int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && strcmp(above, f->dir) == 0) {
            r = keep(f, fd, r, err);
            return r < 0 ? r : file_keep(&fd);
        }
        if (fd < 0 && errno != ENOENT)
            return err_set(err, -errno, "--model-dir %s", f->dir);
        /* What has come in between is there, and is found without waiting. */
        if (fd < 0 && !file_exists(f->dir) && wait_for(f, shorter(f)) == -ECANCELED)
            return -ECANCELED;
        drain(f);
        if (r >= 0)
            inotify_rm_watch(f->notify, r);
    }
}

int follow_wait(struct follow *f, struct err *err) {
    int r = wait_for(f, shorter(f));
    if (r < 0)
        return r;
    return drain(f) || !is_there(f) ? err_say(err, -ENOENT, "%s has been taken away", f->dir) : 0;
}
