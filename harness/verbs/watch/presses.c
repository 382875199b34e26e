#include "harness/verbs/watch/presses.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/verbs/watch/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A fault is answered when it has been taken, not when it is in force. */
static const int64_t answer_ns = 60000000000;

struct press {
    struct presses *all;
    struct loop_source *on_answer, *on_late;
    int fd;
    press_fn *fn;
    void *arg;
    struct buf heard;
};

struct presses {
    struct loop *loop;
    const struct folder *run;
    struct press *of[PRESSES_MAX];
};

struct presses *presses_new(struct loop *loop, const struct folder *run) {
    struct presses *p = mem_new(struct presses);
    *p = (struct presses){.loop = loop, .run = run};
    return p;
}

static void finish(struct press *s, enum press_end end, const char *text) {
    for (size_t i = 0; i < PRESSES_MAX; i++)
        if (s->all->of[i] == s)
            s->all->of[i] = NULL;
    loop_source_free(s->on_answer);
    loop_source_free(s->on_late);
    file_close(&s->fd);
    s->fn(s->arg, end, text);
    buf_fini(&s->heard);
    free(s);
}

struct presses *presses_free(struct presses *p) {
    if (!p)
        return NULL;
    for (size_t i = 0; i < PRESSES_MAX; i++)
        if (p->of[i])
            finish(p->of[i], PRESS_GONE, "the page is no longer served");
    free(p);
    return NULL;
}

static void on_answer(void *arg, int fd, int what) {
    struct press *s = arg;
    char part[4096], text[PRESS_ANSWER], *end;
    ssize_t n = read(fd, part, sizeof(part));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        buf_put(&s->heard, part, (size_t)n);
    if (s->heard.len && (end = memchr(s->heard.data, '\n', s->heard.len))) {
        *end = '\0';
        bool refused = say_read(s->heard.data, text, sizeof(text));
        finish(s, refused ? PRESS_REFUSED : PRESS_DONE, text);
    } else if (n <= 0 || s->heard.len > 1 << 16) {
        finish(s, PRESS_GONE, "the run has ended, or does not take words from here");
    }
}

static void on_late(void *arg, int64_t now) {
    finish(arg, PRESS_GONE, "the run has not answered for 60 s");
}

static struct press **find_free(struct presses *p) {
    for (size_t i = 0; i < PRESSES_MAX; i++)
        if (!p->of[i])
            return &p->of[i];
    return NULL;
}

static bool send_line(int fd, const char *line) {
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "%s\n", line);
    return send(fd, text.data, text.len, MSG_NOSIGNAL) == (ssize_t)text.len;
}

void presses_say(struct presses *p, const char *line, press_fn *fn, void *arg) {
    struct err err = {0};
    struct press **place = find_free(p);
    int fd = place ? say_connect_now(p->run, &err) : -EAGAIN;
    if (fd == -EAGAIN) {
        fn(arg, PRESS_BUSY, "other lines are still waiting for their answers; say it again");
        return;
    }
    if (fd < 0) {
        fn(arg, PRESS_NOT_TAKEN, err.msg);
        return;
    }
    struct press *s = *place = mem_new(struct press);
    *s = (struct press){.all = p, .fd = fd, .fn = fn, .arg = arg};
    if (!send_line(fd, line)) {
        finish(s, PRESS_GONE, "the run has ended, or does not take words from here");
        return;
    }
    s->on_answer = loop_fd(p->loop, fd, LOOP_READ, on_answer, s);
    s->on_late = loop_timer(p->loop, on_late, s);
    loop_timer_at(s->on_late, clock_monotonic_ns() + answer_ns);
}
