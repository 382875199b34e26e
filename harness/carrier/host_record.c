#include "harness/carrier/host_record.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BASE "/var/tmp/rankquake-"

enum { LOG_READ_MAX = 4 << 20 };

const char *host_record_path(char ret[HOST_RECORD_NAME_MAX]) {
    snprintf(ret, HOST_RECORD_NAME_MAX, BASE "%u", (unsigned)geteuid());
    return ret;
}

void host_record_host(char ret[HOST_RECORD_NAME_MAX]) {
    ret[0] = ret[HOST_RECORD_NAME_MAX - 1] = '\0';
    gethostname(ret, HOST_RECORD_NAME_MAX - 1);
    for (char *c = ret; *c; c++)
        if (*c == '/')
            *c = '_';
}

/* Somebody else may have made it first, or put a link there. */
int host_record_folder(struct err *err) {
    char path[HOST_RECORD_NAME_MAX];
    struct stat st;
    host_record_path(path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return err_set(err, -errno, "make %s", path);
    FILE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return err_set(err, -errno, "open %s", path);
    if (st.st_uid != geteuid() || st.st_mode & 022)
        return err_say(err, -EPERM,
                       "%s belongs to somebody else, or others may write into it: "
                       "remove it",
                       path);
    return file_keep(&fd);
}

static int open_file(int dir, const char *suffix, int flags, struct err *err) {
    char host[HOST_RECORD_NAME_MAX], name[96];
    host_record_host(host);
    snprintf(name, sizeof(name), "%s%s", host, suffix);
    int fd = openat(dir, name, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? err_set(err, -errno, "open " BASE "%u/%s", (unsigned)geteuid(), name) : fd;
}

/* ---- the lock ---- */

static void write_owner(int fd, const char *run) {
    if (ftruncate(fd, 0) != 0 || pwrite(fd, run, strlen(run), 0) < 0)
        return; /* a full disk: the lock holds all the same, and names nobody */
}

static int join(int fd, const char *run, struct err *err) {
    char owner[128] = "";
    bool shared = flock(fd, LOCK_SH | LOCK_NB) == 0;
    ssize_t n = pread(fd, owner, sizeof(owner) - 1, 0);
    if (shared && n > 0 && strncmp(owner, run, sizeof(owner) - 1) == 0)
        return 0;
    return err_say(err, -EBUSY,
                   "this host is taken by the run %s; wait for its end, or end it there",
                   n > 0 ? owner : "of somebody");
}

static int take_alone(int fd, const char *run, struct err *err) {
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return join(fd, run, err);
    write_owner(fd, run);
    return flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : err_set(err, -errno, "lock this host");
}

/* The first of a run writes its name, and then lets the others of the same run in, who wait for that
 * much: the file is locked in another way meanwhile. */
static int take(int fd, const char *run, struct err *err) {
    struct flock mutex = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    while (fcntl(fd, F_OFD_SETLKW, &mutex) != 0)
        if (errno != EINTR)
            return err_set(err, -errno, "lock this host");
    int r = take_alone(fd, run, err);
    mutex.l_type = F_UNLCK;
    fcntl(fd, F_OFD_SETLK, &mutex);
    return r;
}

int host_record_open(struct host_record *ret, const char *run, struct err *err) {
    FILE_CLOSE int dir = host_record_folder(err);
    if (dir < 0)
        return dir;
    FILE_CLOSE int lock = open_file(dir, ".lock", O_RDWR, err);
    int r = lock < 0 ? lock : take(lock, run, err);
    if (r)
        return r;
    FILE_CLOSE int log = open_file(dir, ".acts.jsonl", O_WRONLY | O_APPEND, err);
    if (log < 0)
        return log;
    *ret = (struct host_record){file_keep(&lock), file_keep(&log), ""};
    str_copy(ret->run, sizeof(ret->run), run);
    return 0;
}

/* ---- the log ---- */

int host_record_open_log(struct host_record *ret, const char *run, struct err *err) {
    FILE_CLOSE int dir = host_record_folder(err);
    FILE_CLOSE int log = dir < 0 ? dir : open_file(dir, ".acts.jsonl", O_WRONLY | O_APPEND, err);
    if (log < 0)
        return log;
    *ret = (struct host_record){-1, file_keep(&log), ""};
    str_copy(ret->run, sizeof(ret->run), run);
    return 0;
}

static void put_time(struct json_writer *w) {
    char text[40];
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + n, sizeof(text) - n, ".%06ldZ", now.tv_nsec / 1000);
    json_put_string(w, "t", text);
}

/* One write a line, so that lines of two helpers do not mix. */
void host_record_note(struct host_record *r, const char *act, const char *about,
                      const char *error) {
    BUF_FINI struct buf line = {0};
    struct json_writer w = {.out = &line};
    if (r->log < 0)
        return;
    json_object(&w, NULL);
    put_time(&w);
    json_put_string(&w, "run", r->run);
    json_put_string(&w, "act", act);
    if (about)
        json_put_string(&w, "about", about);
    if (error)
        json_put_string(&w, "error", error);
    json_end_object(&w);
    buf_putc(&line, '\n');
    (void)!write(r->log, line.data, line.len);
}

void host_record_read(struct buf *ret) {
    static char bytes[LOG_READ_MAX];
    FILE_CLOSE int dir = host_record_folder(NULL);
    FILE_CLOSE int log = dir < 0 ? -1 : open_file(dir, ".acts.jsonl", O_RDONLY, NULL);
    off_t size = log < 0 ? 0 : lseek(log, 0, SEEK_END);
    off_t from = size > LOG_READ_MAX ? size - LOG_READ_MAX : 0;
    ssize_t n = log < 0 ? 0 : pread(log, bytes, sizeof(bytes), from);
    const char *first = from && n > 0 ? memchr(bytes, '\n', (size_t)n) : bytes;
    if (n > 0 && first)
        buf_put(ret, first, (size_t)(bytes + n - first));
}

void host_record_close(struct host_record *r) {
    file_close(&r->lock);
    file_close(&r->log);
}
