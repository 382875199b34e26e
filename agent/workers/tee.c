#include "agent/workers/tee.h"

#include "base/buf.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/sys/file.h"
#include "base/texts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum { PORTION = 64 << 10, LINE_MAX_BYTES = 64 << 10 };

struct followed {
    struct list link;
    int file, out, filtered; /* filtered -1: none */
    int watch;
    char *header;
    struct texts needles;
    struct buf line;
    bool after_return; /* the last line ended with one: a line feed that follows belongs to it */
    bool ended;        /* nobody writes into it any more */
};

/* The thread owns what is in `files`; the lock is for what is passed to it. */
struct tee {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved; /* progress, or over */
    struct list arriving; /* of struct followed */
    bool end, finish, over;
    bool alone;        /* nobody waits for the thread any more: what is left is its own */
    uint64_t progress; /* portions shown */
    int wake, inotify;
    struct list files;
};

static struct followed *followed_free(struct followed *f) {
    if (!f)
        return NULL;
    file_close(&f->file);
    file_close(&f->filtered);
    texts_fini(&f->needles);
    free(f->header);
    buf_fini(&f->line);
    free(f);
    return NULL;
}

/* ---- the thread: lines ---- */

static bool is_wanted(const struct followed *f) {
    bool wanted = false;
    for (size_t i = 0; i < f->needles.n && !wanted; i++)
        wanted = memmem(f->line.data, f->line.len, f->needles.v[i], strlen(f->needles.v[i]));
    return wanted;
}

static void end_line(struct followed *f, struct buf *shown, struct buf *filtered) {
    if (f->filtered >= 0 && is_wanted(f)) {
        buf_put(filtered, f->line.data, f->line.len);
        buf_putc(filtered, '\n');
    }
    buf_puts(shown, f->header);
    buf_put(shown, f->line.data, f->line.len);
    buf_putc(shown, '\n');
    buf_clear(&f->line);
}

/* How many of the n bytes belong to the line as it is. */
static size_t run_of(const struct followed *f, const char *data, size_t n) {
    size_t room = LINE_MAX_BYTES - f->line.len, k = 0;
    n = n < room ? n : room;
    while (k < n && data[k] != '\n' && data[k] != '\r')
        k++;
    return k;
}

/* A line without an end is shown in pieces: memory has a bound. */
static void take(struct followed *f, const char *data, size_t n, struct buf *shown,
                 struct buf *filtered) {
    for (size_t i = 0; i < n;) {
        size_t run = run_of(f, data + i, n - i);
        bool belongs = f->after_return && run == 0 && data[i] == '\n';
        buf_put(&f->line, data + i, run);
        i += run;
        f->after_return = false;
        if (f->line.len == LINE_MAX_BYTES) {
            end_line(f, shown, filtered);
        } else if (i < n) {
            f->after_return = data[i++] == '\r';
            if (!belongs)
                end_line(f, shown, filtered);
        }
    }
}

static void write_out(int fd, const struct buf *b) {
    if (b->len)
        file_write_all(fd, b->data, b->len, NULL); /* a console that is gone takes nothing more */
}

static void note_progress(struct tee *t) {
    pthread_mutex_lock(&t->lock);
    t->progress++;
    pthread_cond_signal(&t->moved);
    pthread_mutex_unlock(&t->lock);
}

/* Whether there may be more. */
static bool show_portion(struct tee *t, struct followed *f) {
    char data[PORTION];
    BUF_FINI struct buf shown = {0}, filtered = {0};
    ssize_t n = read(f->file, data, sizeof(data));
    if (n > 0)
        take(f, data, (size_t)n, &shown, &filtered);
    else if (f->ended && f->line.len)
        end_line(f, &shown, &filtered);
    write_out(f->out, &shown);
    if (f->filtered >= 0)
        write_out(f->filtered, &filtered);
    note_progress(t);
    return n > 0;
}

/* In turns, so that a worker that floods does not hide the others. */
static void show_all(struct tee *t) {
    bool more = true;
    while (more) {
        more = false;
        list_each(it, &t->files) {
            more |= show_portion(t, list_entry(it, struct followed, link));
        }
    }
}

/* ---- the thread: files ---- */

/* One after the other: what a round said is told before what the next one says. */
static void show_ended(struct tee *t) {
    list_each_safe(it, next, &t->files) {
        struct followed *f = list_entry(it, struct followed, link);
        if (!f->ended)
            continue;
        while (show_portion(t, f))
            ;
        inotify_rm_watch(t->inotify, f->watch);
        list_remove(&f->link);
        followed_free(f);
    }
}

static void end_each(struct list *files) {
    list_each(it, files) {
        list_entry(it, struct followed, link)->ended = true;
    }
}

/* Takes what was passed; returns whether it is time to finish. */
static bool take_orders(struct tee *t) {
    pthread_mutex_lock(&t->lock);
    bool finish = t->finish;
    if (t->end || finish)
        end_each(&t->files);
    list_each_safe(it, next, &t->arriving) {
        list_remove(it);
        list_append(&t->files, it);
    }
    if (finish)
        end_each(&t->files);
    t->end = false;
    pthread_mutex_unlock(&t->lock);
    return finish;
}

static void wait_for_news(struct tee *t) {
    char events[4096];
    uint64_t times;
    struct pollfd fds[] = {{t->wake, POLLIN, 0}, {t->inotify, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0)
        return;
    if (fds[0].revents)
        (void)!read(t->wake, &times, sizeof(times));
    while (fds[1].revents && read(t->inotify, events, sizeof(events)) > 0)
        ;
}

static struct tee *tee_abandon(struct tee *t) {
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->moved);
    file_close(&t->wake);
    file_close(&t->inotify);
    free(t);
    return NULL;
}

static void *live(void *arg) {
    struct tee *t = arg;
    bool finish = false;
    while (!finish) {
        wait_for_news(t);
        finish = take_orders(t);
        show_ended(t);
        show_all(t);
    }
    pthread_mutex_lock(&t->lock);
    t->over = true;
    bool alone = t->alone;
    pthread_cond_signal(&t->moved);
    pthread_mutex_unlock(&t->lock);
    if (alone)
        tee_abandon(t);
    return NULL;
}

/* ---- the agent ---- */

static void wake(struct tee *t) {
    uint64_t one = 1;
    (void)!write(t->wake, &one, sizeof(one));
}

/* Signals are the agent's: the thread sees none. */
static int start_thread(struct tee *t) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = -pthread_create(&t->thread, NULL, live, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

struct tee *tee_new(struct err *err) {
    pthread_condattr_t attr;
    struct tee *t = mem_new(struct tee);
    list_init(&t->arriving);
    list_init(&t->files);
    t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->moved, &attr);
    pthread_condattr_destroy(&attr);
    if (t->wake < 0 || t->inotify < 0) {
        err_set(err, -errno, "--tee: follow files (fs.inotify.max_user_instances)");
        return tee_abandon(t);
    }
    int code = start_thread(t);
    if (code == 0)
        return t;
    err_set(err, code, "--tee: start a thread");
    return tee_abandon(t);
}

static int open_files(struct followed *f, const struct tee_stream *s, struct err *err) {
    f->file = open(s->path, O_RDONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->file < 0)
        return err_set(err, -errno, "--tee: open %s", s->path);
    if (f->needles.n)
        f->filtered = open(s->filtered_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return f->needles.n && f->filtered < 0 ? err_set(err, -errno, "open %s", s->filtered_path) : 0;
}

int tee_follow(struct tee *t, const struct tee_stream *s, struct err *err) {
    struct followed *f = mem_new(struct followed);
    *f = (struct followed){
        .file = -1, .filtered = -1, .out = s->fd, .header = mem_strdup(s->header)};
    for (const char *const *needle = s->needles; needle && *needle; needle++)
        texts_add(&f->needles, "%s", *needle);
    int code = open_files(f, s, err);
    f->watch = code ? -1 : inotify_add_watch(t->inotify, s->path, IN_MODIFY);
    if (!code && f->watch < 0)
        code = err_set(err, -errno, "--tee: follow %s (fs.inotify.max_user_watches)", s->path);
    if (code) {
        followed_free(f);
        return code;
    }
    pthread_mutex_lock(&t->lock);
    list_append(&t->arriving, &f->link);
    pthread_mutex_unlock(&t->lock);
    wake(t);
    return 0;
}

void tee_end(struct tee *t) {
    pthread_mutex_lock(&t->lock);
    t->end = true;
    end_each(&t->arriving);
    pthread_mutex_unlock(&t->lock);
    wake(t);
}

/* Whether the thread came to its end: while it shows anything it is waited for. */
static bool await(struct tee *t, int64_t patience_ns) {
    int code = 0;
    pthread_mutex_lock(&t->lock);
    t->finish = true;
    wake(t);
    while (!t->over && code == 0) {
        uint64_t seen = t->progress;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t ns = until.tv_nsec + patience_ns;
        until.tv_sec += ns / 1000000000;
        until.tv_nsec = ns % 1000000000;
        while (!t->over && t->progress == seen && code == 0)
            code = pthread_cond_timedwait(&t->moved, &t->lock, &until);
    }
    bool over = t->over;
    t->alone = !over;
    if (t->alone)
        pthread_detach(
            t->thread); /* it hangs in a write, and ends with the process at the latest */
    pthread_mutex_unlock(&t->lock);
    return over;
}

bool tee_free(struct tee *t, int64_t patience_ns) {
    if (!t)
        return true;
    if (!await(t, patience_ns))
        return false;
    pthread_join(t->thread, NULL);
    tee_abandon(t);
    return true;
}
