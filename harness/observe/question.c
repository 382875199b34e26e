#include "harness/observe/question.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What was killed is gone at once, unless a disk holds it. */
static const int64_t DEATH_NS = 10000000000;

struct question {
    struct process process;
    int out;
    struct buf text;
    size_t bytes_max;
    bool too_long, late;
    struct loop_source *on_out, *on_end, *on_late;
    question_fn *fn;
    void *arg;
};

static void question_free(struct question *q) {
    loop_source_free(q->on_out);
    loop_source_free(q->on_end);
    loop_source_free(q->on_late);
    process_close(&q->process);
    file_close(&q->out);
    buf_fini(&q->text);
    free(q);
}

/* Freed first: whoever is told may end everything. */
static void tell(struct question *q, const char *ended) {
    struct buf text = q->text;
    struct question_answer a = {.too_long = q->too_long, .late = q->late, .ended = ended};
    question_fn *fn = q->fn;
    void *arg = q->arg;
    buf_puts(&text, ""); /* there is a text, though it be empty */
    a.text = text.data;
    a.len = text.len;
    q->text = (struct buf){0};
    question_free(q);
    fn(arg, &a);
    buf_fini(&text);
}

/* False: there is no more, for now or for ever. */
static bool read_out(struct question *q) {
    char block[4096];
    ssize_t n = read(q->out, block, sizeof(block));
    size_t room = q->bytes_max - q->text.len, got = n > 0 ? (size_t)n : 0;
    buf_put(&q->text, block, got < room ? got : room);
    q->too_long |= got > room;
    if (n == 0)
        q->on_out = loop_source_free(q->on_out);
    return n > 0;
}

static void on_out(void *arg, int fd, int what) {
    read_out(arg);
}

/* What it has left running may hold its standard output open: that is not waited for, but ended,
 * while the number of its group cannot be anybody else's. */
static void on_end(void *arg, int fd, int what) {
    struct question *q = arg;
    char text[64], why[200] = "";
    int status = 0;
    kill(-q->process.pid, SIGKILL);
    while (!q->too_long && read_out(q)) /* who left the group may print for ever */
        ;
    int r = process_reap(&q->process, 0, &status);
    if (r < 0)
        snprintf(why, sizeof(why), "nobody knows how it ended: %s", strerror(-r));
    else if (status)
        snprintf(why, sizeof(why), "it ended with %s",
                 process_status_text(status, text, sizeof(text)));
    tell(q, *why ? why : NULL);
}

static void on_late(void *arg, int64_t now) {
    struct question *q = arg;
    if (q->late) {
        tell(q, "it could not be killed");
        return;
    }
    q->late = true;
    kill(-q->process.pid, SIGKILL); /* its end follows */
    loop_timer_at(q->on_late, now + DEATH_NS);
}

static int spawn(struct question *q, const struct process_spawn *program, struct err *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, -errno, "make a pipe");
    FILE_CLOSE int out = ends[1];
    const int *given = program->fds;
    const int fds[] = {given ? given[0] : -1, out, given ? given[2] : -1};
    struct process_spawn s = *program;
    s.fds = fds;
    s.group = true;
    s.death_signal = SIGKILL;
    q->out = ends[0];
    fcntl(q->out, F_SETFL, O_NONBLOCK);
    return process_spawn(&s, &q->process, err);
}

int question_enter(void *place) {
    const struct question_place *to = place;
    if (to->pidfd < 0)
        return 0;
    if (setns(to->pidfd, to->namespaces) != 0)
        return -errno;
    if (chdir(to->cwd) != 0 && chdir("/") != 0)
        return -errno;
    return to->privileged ? 0 : rights_drop(rights_of_programs);
}

struct question *question_ask(struct loop *l, const struct question_spec *spec, question_fn *fn,
                              void *arg, struct err *err) {
    struct question *q = mem_new(struct question);
    *q = (struct question){
        .process = PROCESS_NONE, .out = -1, .bytes_max = spec->bytes_max, .fn = fn, .arg = arg};
    int64_t deadline_ns = clock_monotonic_ns() + spec->within_ns;
    if (spawn(q, &spec->program, err) < 0) {
        question_free(q);
        return NULL;
    }
    q->on_out = loop_fd(l, q->out, LOOP_READ, on_out, q);
    q->on_end = loop_fd(l, q->process.pidfd, LOOP_READ, on_end, q);
    q->on_late = loop_timer(l, on_late, q);
    loop_timer_at(q->on_late, deadline_ns);
    return q;
}

struct question *question_abandon(struct question *q) {
    if (!q)
        return NULL;
    kill(-q->process.pid, SIGKILL);
    process_reap(&q->process, DEATH_NS, NULL);
    question_free(q);
    return NULL;
}
