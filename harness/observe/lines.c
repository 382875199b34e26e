#include "harness/observe/lines.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* A portion is some milliseconds of matching. What a window allows is more than any job prints that
 * is meant to be read; a backlog beyond the limit is skipped but for its end. */
enum {
    PORTION = 64 << 10,
    WINDOW_BYTES = 1 << 20,
    BACKLOG_MAX = 4 << 20,
    BACKLOG_KEPT = 256 << 10,
    HEAD_KEPT = 32 << 20,
    TAIL_KEPT = 64 << 20,
};
static const int64_t WINDOW_NS = 100000000;

struct lines_file {
    struct list link, waiting; /* waiting: there is something to read */
    struct lines *owner;
    void *who;
    int fd, watch;
    uint64_t offset;
    char line[LINE_LENGTH_MAX + 1];
    size_t len;
    uint64_t emptied; /* of the file, what lies between HEAD_KEPT and this is given back */
    bool reading;
    size_t told; /* the unfinished line was given to fn with this length; 0: not yet */
    bool after_return, cut, skipping;
    enum { TEXT, ESCAPE, SEQUENCE } state;
    struct lines_count count;
};

struct lines {
    struct loop *loop;
    lines_fn *fn;
    void *arg;
    struct list files, waiting;
    int inotify;
    struct loop_source *source, *again;
    int64_t window_ns; /* when the window began */
    size_t read;       /* in it */
    bool deaf;         /* its changes are not listened to */
};

/* ---- bytes into lines ---- */

static void tell(struct lines_file *f) {
    f->line[f->len] = '\0';
    f->count.lines++;
    f->owner->fn(f->owner->arg, f->who, f->line);
}

static void end_line(struct lines_file *f, char end) {
    bool given = f->told && f->told == f->len;
    if (f->len && !given && !f->skipping)
        tell(f);
    f->count.cut_lines += f->cut;
    f->len = f->told = 0;
    f->cut = f->skipping = false;
    f->after_return = end == '\r';
}

static void take_text(struct lines_file *f, char c) {
    if (c == '\n' || c == '\r')
        end_line(f, c);
    else if (c == '\033')
        f->state = ESCAPE;
    else if (f->len == LINE_LENGTH_MAX)
        f->cut = true;
    else
        f->line[f->len++] = (unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
}

static void take(struct lines_file *f, char c) {
    switch (f->state) {
    case TEXT:
        take_text(f, c);
        break;
    case ESCAPE:
        f->state = c == '[' ? SEQUENCE : TEXT;
        break;
    case SEQUENCE: /* "\033[1;32m" ends with a letter; a line that is cut off within one does too */
        if ((c >= '@' && c <= '~') || c == '\n' || c == '\r')
            f->state = TEXT;
        if (c == '\n' || c == '\r')
            end_line(f, c);
        break;
    }
}

/* A bar that stands still has no end yet; it is only one when its beginning was a return. */
static void standing(struct lines_file *f, bool last) {
    if (!f->len || f->told == f->len || f->skipping || !(f->after_return || last))
        return;
    f->told = f->len;
    tell(f);
}

/* ---- files ---- */

static void skip_backlog(struct lines_file *f, uint64_t size) {
    if (size < f->offset) { /* somebody has emptied it */
        f->offset = f->emptied = 0;
        end_line(f, '\n');
        return;
    }
    if (size - f->offset <= BACKLOG_MAX)
        return;
    f->count.skipped_bytes += size - BACKLOG_KEPT - f->offset;
    f->offset = size - BACKLOG_KEPT;
    f->len = f->told = 0;
    f->cut = false;
    f->skipping = true; /* to the next end of a line */
}

/* Of gigabytes the middle is given back to the disk; it reads as zeros. Where the file system
 * cannot do that the file is as long as the job makes it. */
static void give_back(struct lines_file *f) {
    if (f->offset < f->emptied + 2 * (uint64_t)TAIL_KEPT || f->offset < HEAD_KEPT + TAIL_KEPT)
        return;
    uint64_t from = f->emptied > HEAD_KEPT ? f->emptied : HEAD_KEPT, to = f->offset - TAIL_KEPT;
    (void)!fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                     (off_t)(to - from));
    f->emptied = to;
}

/* Returns how much it has read; 0: there is no more now, or it is being read. */
static size_t read_portion(struct lines_file *f) {
    char chunk[PORTION];
    struct stat st;
    if (f->reading || f->fd < 0)
        return 0;
    f->reading = true;
    if (fstat(f->fd, &st) == 0)
        skip_backlog(f, (uint64_t)st.st_size);
    ssize_t n = pread(f->fd, chunk, sizeof(chunk), (off_t)f->offset);
    f->offset += n > 0 ? (uint64_t)n : 0;
    f->count.portions += n > 0;
    for (ssize_t i = 0; i < n; i++)
        take(f, chunk[i]);
    give_back(f);
    f->reading = false;
    return n > 0 ? (size_t)n : 0;
}

void lines_drain(struct lines_file *f) {
    for (size_t n, total = 0; total < BACKLOG_MAX && (n = read_portion(f)); total += n)
        ;
    standing(f, true);
}

static void wait_for_turn(struct lines_file *f) {
    if (list_empty(&f->waiting))
        list_append(&f->owner->waiting, &f->waiting);
}

/* One portion of one file, then the loop may do something else. */
static void serve(struct lines *l, int64_t now) {
    if (now - l->window_ns >= WINDOW_NS) {
        l->window_ns = now;
        l->read = 0;
    }
    if (list_empty(&l->waiting))
        return;
    bool used_up = l->read >= WINDOW_BYTES;
    if (used_up != l->deaf) /* of more changes nobody wants to hear now */
        loop_fd_set(l->source, used_up ? 0 : LOOP_READ);
    l->deaf = used_up;
    if (used_up) {
        loop_timer_at(l->again, l->window_ns + WINDOW_NS);
        return;
    }
    struct lines_file *f = list_entry(l->waiting.next, struct lines_file, waiting);
    list_remove(&f->waiting);
    size_t n = read_portion(f);
    l->read += n;
    if (n == PORTION)
        wait_for_turn(f); /* behind the others */
    else
        standing(f, false);
    if (!list_empty(&l->waiting))
        loop_timer_at(l->again, now);
}

static void on_again(void *arg, int64_t now) {
    serve(arg, now);
}

static void on_changes(void *arg, int fd, int what) {
    struct lines *l = arg;
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(fd, events, sizeof(events));
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *e = (const void *)(events + at);
        list_each(it, &l->files) {
            struct lines_file *f = list_entry(it, struct lines_file, link);
            if (f->fd < 0)
                continue;
            if (f->watch == e->wd || (e->mask & IN_Q_OVERFLOW))
                wait_for_turn(f);
        }
        at += (ssize_t)(sizeof(*e) + e->len);
    }
    serve(l, clock_monotonic_ns());
}

struct lines_file *lines_follow(struct lines *l, int fd, void *who, struct err *err) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d",
             fd); /* it and no other, whatever its name is */
    int watch = inotify_add_watch(l->inotify, path, IN_MODIFY);
    if (watch < 0) {
        err_set(err, -errno, "follow the output of a program");
        file_close(&fd);
        return NULL;
    }
    struct lines_file *f = mem_new(struct lines_file);
    f->owner = l;
    f->who = who;
    f->fd = fd;
    f->watch = watch;
    list_append(&l->files, &f->link);
    list_init(&f->waiting);
    wait_for_turn(f); /* it may have been written to before it was watched */
    loop_timer_at(l->again, clock_monotonic_ns());
    return f;
}

void lines_close(struct lines_file *f) {
    if (f->fd < 0)
        return;
    inotify_rm_watch(f->owner->inotify, f->watch);
    file_close(&f->fd);
    list_remove(&f->waiting);
    f->watch = -1;
}

struct lines_count lines_counted(const struct lines_file *f) {
    return f->count;
}

struct lines *lines_new(struct loop *loop, lines_fn *fn, void *arg, struct err *err) {
    struct lines *l = mem_new(struct lines);
    *l = (struct lines){.loop = loop, .fn = fn, .arg = arg};
    list_init(&l->files);
    list_init(&l->waiting);
    l->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (l->inotify < 0) {
        err_set(err, -errno, "watch what programs print (inotify)");
        free(l);
        return NULL;
    }
    l->source = loop_fd(loop, l->inotify, LOOP_READ, on_changes, l);
    l->again = loop_timer(loop, on_again, l);
    return l;
}

struct lines *lines_free(struct lines *l) {
    if (!l)
        return NULL;
    list_each_safe(it, next, &l->files) {
        struct lines_file *f = list_entry(it, struct lines_file, link);
        file_close(&f->fd);
        free(f);
    }
    loop_source_free(l->source);
    loop_source_free(l->again);
    file_close(&l->inotify);
    free(l);
    return NULL;
}
