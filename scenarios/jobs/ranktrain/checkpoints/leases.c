#include "scenarios/jobs/ranktrain/checkpoints/leases.h"
#include "scenarios/jobs/ranktrain/checkpoint_dir.h"

#include "base/json.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEASE_BYTES = 256 };

static const char prefix[] = "evaluator-", suffix[] = ".lease";

static bool is_lease(const char *name) {
    size_t n = strlen(name), end = sizeof(suffix) - 1;
    return strncmp(name, prefix, sizeof(prefix) - 1) == 0 && n > end &&
           strcmp(name + n - end, suffix) == 0;
}

/* Of the whole file, for the open description and not for the process. */
static struct flock lock_of(short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

static bool is_alive(int dir, int fd) {
    struct flock lock = lock_of(F_RDLCK);
    struct stat own, now;
    if (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        return true;
    return fstat(fd, &own) == 0 && fstat(dir, &now) == 0 &&
           now.st_mtim.tv_sec - own.st_mtim.tv_sec < LEASE_SECONDS;
}

/* One that cannot be read wants everything. */
static void take_terms(struct leases *l, int fd) {
    ARENA_FINI struct arena arena = {0};
    BUF_FINI struct buf text = {0};
    const struct json *j = NULL;
    if (file_read_fd(fd, LEASE_BYTES, &text, NULL) == 0)
        j = json_parse(&arena, buf_str(&text), text.len, NULL);
    if (!j || l->n == LEASES) {
        l->all = true;
        return;
    }
    l->terms[l->n++] = (struct lease_terms){.read = json_get_i64(j, "read", -1),
                                            .every = json_get_i64(j, "every", 1)};
}

void leases_look(int dir, struct leases *ret) {
    *ret = (struct leases){0};
    FILE_CLOSE_DIR DIR *d = checkpoint_dir_list(dir, ".");
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!is_lease(e->d_name))
            continue;
        FILE_CLOSE int fd = openat(dir, e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && is_alive(dir, fd))
            take_terms(ret, fd);
        else if (fd >= 0)
            unlinkat(dir, e->d_name, 0);
    }
}

bool leases_want(const struct leases *l, int64_t step) {
    bool wanted = l->all;
    for (int i = 0; i < l->n && !wanted; i++)
        wanted =
            step > l->terms[i].read && (l->terms[i].every < 1 || step % l->terms[i].every == 0);
    return wanted;
}

int lease_read(struct lease *l, int64_t step, struct err *err) {
    char text[LEASE_BYTES + 1];
    int n = snprintf(text, sizeof(text),
                     "{\"format\": \"ranktrain-lease\", \"read\": %lld, \"every\": %lld}",
                     (long long)step, (long long)l->every);
    memset(text + n, ' ', sizeof(text) - (size_t)n);
    text[LEASE_BYTES - 1] = '\n';
    if (pwrite(l->fd, text, LEASE_BYTES, 0) != LEASE_BYTES)
        return err_set(err, errno ? -errno : -EIO, "write %s", l->name);
    return 0;
}

int lease_take(struct lease *ret, int dir, int64_t every, struct err *err) {
    struct lease l = {.dir = dir, .every = every};
    struct flock lock = lock_of(F_WRLCK);
    char host[65] = "";
    gethostname(host, sizeof(host) - 1);
    for (char *c = host; *c; c++)
        *c = *c == '/' ? '_' : *c;
    snprintf(l.name, sizeof(l.name), "%s%s-%ld%s", prefix, host, (long)getpid(), suffix);
    l.fd = openat(dir, l.name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (l.fd < 0)
        return err_set(err, -errno,
                       "make %s, without which checkpoints may be gone before they are "
                       "read",
                       l.name);
    int r = fcntl(l.fd, F_OFD_SETLK, &lock) < 0 && errno != ENOLCK && errno != EOPNOTSUPP
                ? err_set(err, -errno, "lock %s", l.name)
                : lease_read(&l, -1, err);
    if (r < 0)
        file_close(&l.fd);
    else
        *ret = l;
    return r;
}

void lease_renew(struct lease *l) {
    if (l->fd >= 0)
        futimens(l->fd, NULL);
}

void lease_drop(struct lease *l) {
    if (l->fd >= 0)
        unlinkat(l->dir, l->name, 0);
    file_close(&l->fd);
}
