#include "agent/workers/file_timer.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* CLEAR_READS: more than a pipe holds. */
enum { READ_MAX = 64 << 10, CLEAR_READS = 32, VERSION = 1 };

static const double SECONDS_MAX = 1e9; /* some thirty years: as good as never */

/* A process and a scope; by them it is found again. */
struct file_timer_limit {
    pid_t pid;
    int signo;
    int64_t at_ns;
    char scope[FILE_TIMER_SCOPE];
    uint64_t scope_hash; /* of the whole scope, which may be longer */
};

struct file_timer {
    const struct file_timer_events *ev;
    void *arg;
    char path[PATH_MAX];
    int fd;
    struct loop_source *readable, *due;
    struct file_timer_limit *limits; /* in no order */
    size_t n;
    struct buf line; /* what has no end yet; at most PIPE_BUF */
    bool too_long;   /* and the rest of it is still to come */
    bool odd_told;
};

static void tell_odd(struct file_timer *t, const char *what) {
    if (!t->odd_told)
        t->ev->odd(t->arg, what);
    t->odd_told = true;
}

/* ---- the timers ---- */

static uint64_t hash_of(const char *text) {
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h;
}

static struct file_timer_limit *limit_find(struct file_timer *t, pid_t pid, uint64_t scope_hash) {
    for (size_t i = 0; i < t->n; i++)
        if (t->limits[i].pid == pid && t->limits[i].scope_hash == scope_hash)
            return &t->limits[i];
    return NULL;
}

static void limit_remove(struct file_timer *t, struct file_timer_limit *l) {
    *l = t->limits[--t->n];
}

static void arm(struct file_timer *t) {
    int64_t at_ns = INT64_MAX;
    for (size_t i = 0; i < t->n; i++)
        at_ns = t->limits[i].at_ns < at_ns ? t->limits[i].at_ns : at_ns;
    if (at_ns < INT64_MAX)
        loop_timer_at(t->due, at_ns);
    else
        loop_timer_off(t->due);
}

/* The earliest of the process that is due, and has a signal when one of them has. */
static const struct file_timer_limit *due_of(const struct file_timer *t, pid_t pid,
                                             int64_t now_ns) {
    const struct file_timer_limit *best = NULL;
    for (size_t i = 0; i < t->n; i++) {
        const struct file_timer_limit *l = &t->limits[i];
        if (l->pid != pid || l->at_ns > now_ns)
            continue;
        if (!best || (l->signo > 0) > (best->signo > 0) ||
            ((l->signo > 0) == (best->signo > 0) && l->at_ns < best->at_ns))
            best = l;
    }
    return best;
}

void file_timer_forget(struct file_timer *t, pid_t pid) {
    for (size_t i = t->n; i--;)
        if (t->limits[i].pid == pid)
            limit_remove(t, &t->limits[i]);
    arm(t);
}

static void on_due(void *arg, int64_t now_ns) {
    struct file_timer *t = arg;
    for (size_t i = 0; i < t->n;) {
        if (t->limits[i].at_ns > now_ns) {
            i++;
            continue;
        }
        struct file_timer_limit l = *due_of(t, t->limits[i].pid, now_ns);
        file_timer_forget(t, l.pid);
        if (l.signo > 0)
            t->ev->expired(t->arg, l.pid, l.signo, l.scope, now_ns - l.at_ns);
        i = 0;
    }
    arm(t);
}

/* ---- the requests ---- */

static void set(struct file_timer *t, const struct file_timer_limit *l) {
    struct file_timer_limit *known = limit_find(t, l->pid, l->scope_hash);
    if (known)
        *known = *l;
    else if (t->n < FILE_TIMER_MAX)
        mem_push(t->limits, t->n) = *l;
    else
        tell_odd(t, "more timers than can be kept are set");
}

static int64_t monotonic_of(double epoch_s) {
    double left_s = epoch_s - (double)clock_realtime_ns() / 1e9;
    left_s = left_s < SECONDS_MAX ? left_s : SECONDS_MAX;
    left_s = left_s > -SECONDS_MAX ? left_s : -SECONDS_MAX;
    return clock_monotonic_ns() + (int64_t)(left_s * 1e9);
}

/* False: it is none. */
static bool take_request(struct file_timer *t, const char *text, size_t n) {
    ARENA_FINI struct arena a = {0};
    const struct json *j = json_parse(&a, text, n, NULL), *time = json_get(j, "expiration_time");
    const char *scope = json_get_string(j, "scope_id", NULL);
    int64_t pid = json_get_i64(j, "pid", 0), signo = json_get_i64(j, "signal", -1);
    double at_s = json_number(time, -1);
    bool good = json_get_i64(j, "version", 0) == VERSION && pid > 0 && pid <= INT32_MAX && scope &&
                time && (time->type == JSON_INT || time->type == JSON_DOUBLE) && signo < NSIG;
    if (good) {
        struct file_timer_limit l = {
            .pid = (pid_t)pid, .signo = (int)signo, .scope_hash = hash_of(scope)};
        struct file_timer_limit *known = limit_find(t, l.pid, l.scope_hash);
        snprintf(l.scope, sizeof(l.scope), "%s", scope);
        if (at_s >= 0) {
            l.at_ns = monotonic_of(at_s);
            set(t, &l);
        } else if (known) {
            limit_remove(t, known);
        }
    }
    return good;
}

static void take_line(struct file_timer *t) {
    char what[160];
    if (t->line.len && !t->too_long && !take_request(t, t->line.data, t->line.len)) {
        snprintf(what, sizeof(what), "\"%.100s\" is no request of a timer", buf_str(&t->line));
        tell_odd(t, what);
    }
    t->too_long = false;
    buf_clear(&t->line);
}

static void take(struct file_timer *t, const char *data, size_t n) {
    for (const char *end; n; n -= (size_t)(end - data), data = end) {
        const char *newline = memchr(data, '\n', n);
        end = newline ? newline + 1 : data + n;
        size_t part = (size_t)(end - data) - (newline != NULL);
        if (t->line.len + part > PIPE_BUF) {
            tell_odd(t, "a line is longer than the request of a timer can be");
            t->too_long = true;
            buf_clear(&t->line);
        } else if (!t->too_long) {
            buf_put(&t->line, data, part);
        }
        if (newline)
            take_line(t);
    }
}

/* One piece a turn: who floods it must not keep the agent from its other work. */
static void on_readable(void *arg, int fd, int what) {
    struct file_timer *t = arg;
    char data[READ_MAX];
    ssize_t n = read(fd, data, sizeof(data));
    if (n <= 0)
        return;
    take(t, data, (size_t)n);
    arm(t);
}

void file_timer_clear(struct file_timer *t) {
    char data[READ_MAX];
    for (int i = 0; i < CLEAR_READS && read(t->fd, data, sizeof(data)) > 0; i++)
        ;
    t->n = 0;
    t->too_long = false;
    buf_clear(&t->line);
    arm(t);
}

/* ---- the FIFO ---- */

static int make_fifo(const char *path, struct err *err) {
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISFIFO(st.st_mode))
        return err_say(err, -EINVAL, "%s is there, and no FIFO: name another file", path);
    unlink(path);
    return mkfifo(path, 0600) < 0 ? err_set(err, -errno, "make the FIFO %s", path) : 0;
}

/* Open for writing too: so it is never at an end, and a worker that opens it never waits. */
struct file_timer *file_timer_new(struct loop *l, const char *path,
                                  const struct file_timer_events *ev, void *arg, struct err *err) {
    struct file_timer *t = mem_new(struct file_timer);
    *t = (struct file_timer){.ev = ev, .arg = arg, .fd = -1};
    int code = str_copy(t->path, sizeof(t->path), path)
                   ? make_fifo(path, err)
                   : err_say(err, -ENAMETOOLONG, "%.100s...: the name is too long", path);
    if (code) {
        free(t);
        return NULL;
    }
    t->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (t->fd < 0) {
        err_set(err, -errno, "open the FIFO %s", path);
        return file_timer_free(t);
    }
    t->readable = loop_fd(l, t->fd, LOOP_READ, on_readable, t);
    t->due = loop_timer(l, on_due, t);
    return t;
}

struct file_timer *file_timer_free(struct file_timer *t) {
    if (!t)
        return NULL;
    loop_source_free(t->readable);
    loop_source_free(t->due);
    file_close(&t->fd);
    unlink(t->path);
    free(t->limits);
    buf_fini(&t->line);
    free(t);
    return NULL;
}
