#include "harness/observe/listing.h"

#include "agent/base/buf.h"
#include "agent/base/str.h"
#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "agent/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20, STEPS_MAX = 100000 };
static const int64_t DEADLINE_NS = 60000000000; /* a program may have much to load */

struct listing {
    struct process process;
    int out;
    struct buf answer;
    struct loop_source *on_out, *on_end, *on_late;
    int round;
    bool late;
    listing_fn *fn;
    void *arg;
};

static void listing_free(struct listing *g) {
    loop_source_free(g->on_out);
    loop_source_free(g->on_end);
    loop_source_free(g->on_late);
    process_close(&g->process);
    file_close(&g->out);
    buf_fini(&g->answer);
    free(g);
}

/* The steps, or what is wrong with a line. */
static bool read_steps(char *text, int64_t *steps, size_t *n, char *why, size_t size) {
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *word = line + strspn(line, " \t\r");
        word[strcspn(word, " \t\r")] = '\0';
        while (word[0] == '0' && word[1]) /* 00000025 */
            word++;
        if (!*word)
            continue;
        if (*n == STEPS_MAX || !str_to_i64(word, 0, INT64_MAX, &steps[*n])) {
            snprintf(why, size, "it printed \"%.60s\" where the step of a checkpoint should be",
                     word);
            return false;
        }
        ++*n;
    }
    return true;
}

static void answer(struct listing *g, const char *error) {
    char why[200];
    size_t n = 0;
    int64_t *steps = calloc(STEPS_MAX, sizeof(*steps));
    if (!steps)
        abort(); /* out of memory */
    if (!error && g->answer.len > ANSWER_MAX)
        error = "it printed more than a megabyte";
    if (!error && g->answer.len && !read_steps(g->answer.data, steps, &n, why, sizeof(why)))
        error = why;
    g->fn(g->arg, g->round, steps, error ? 0 : n, error);
    free(steps);
    listing_free(g);
}

static bool read_out(struct listing *g) {
    char chunk[4096];
    ssize_t n = read(g->out, chunk, sizeof(chunk));
    if (n > 0 && g->answer.len <= ANSWER_MAX)
        buf_put(&g->answer, chunk, (size_t)n);
    if (n == 0)
        g->on_out = loop_source_free(g->on_out);
    return n > 0;
}

static void on_out(void *arg, int fd, int what) {
    (void)fd, (void)what;
    read_out(arg);
}

/* What it has left running may hold its standard output open: that is not waited for, but ended,
 * while the number of its group cannot be anybody else's. */
static void on_end(void *arg, int fd, int what) {
    (void)fd, (void)what;
    struct listing *g = arg;
    char text[64], why[200];
    int status = 0;
    kill(-g->process.pid, SIGKILL);
    while (g->answer.len <= ANSWER_MAX && read_out(g)) /* who left the group may print for ever */
        ;
    int r = process_reap(&g->process, 0, &status);
    if (g->late)
        snprintf(why, sizeof(why), "it had not ended after %lld s",
                 (long long)(DEADLINE_NS / 1000000000));
    else if (r < 0)
        snprintf(why, sizeof(why), "nobody knows how it ended: %s", strerror(-r));
    else if (status)
        snprintf(why, sizeof(why), "it ended with %s",
                 process_status_text(status, text, sizeof(text)));
    answer(g, g->late || r < 0 || status ? why : NULL);
}

static void on_late(void *arg, int64_t now) {
    (void)now;
    struct listing *g = arg;
    g->late = true;
    kill(-g->process.pid, SIGKILL); /* its end follows */
}

static int spawn(struct listing *g, const char *dir, const char *command, const char *log,
                 struct err *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, -errno, "make a pipe");
    FILE_CLOSE int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    FILE_CLOSE int errors = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    FILE_CLOSE int out = ends[1];
    g->out = ends[0];
    fcntl(g->out, F_SETFL, O_NONBLOCK);
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    const int fds[] = {in, out, errors};
    const struct process_spawn s = {
        .argv = argv, .dir = dir, .fds = fds, .group = true, .death_signal = SIGKILL};
    return process_spawn(&s, &g->process, err);
}

struct listing *listing_start(struct loop *l, const char *dir, const char *command, const char *log,
                              int round, listing_fn *fn, void *arg) {
    struct listing *g = calloc(1, sizeof(*g));
    struct err err = {0};
    struct stat st;
    if (!g)
        abort(); /* out of memory */
    *g = (struct listing){.process = PROCESS_NONE, .out = -1, .round = round, .fn = fn, .arg = arg};
    bool there = stat(dir, &st) == 0;
    if (!there || spawn(g, dir, command, log, &err) < 0) {
        answer(g, there ? err.msg : NULL);
        return NULL;
    }
    g->on_out = loop_fd(l, g->out, LOOP_READ, on_out, g);
    g->on_end = loop_fd(l, g->process.pidfd, LOOP_READ, on_end, g);
    g->on_late = loop_timer(l, on_late, g);
    loop_timer_at(g->on_late, clock_monotonic_ns() + DEADLINE_NS);
    return g;
}

void listing_abandon(struct listing *g) {
    if (!g)
        return;
    kill(-g->process.pid, SIGKILL);
    process_reap(&g->process, DEADLINE_NS / 10, NULL); /* it is dead, unless a disk holds it */
    listing_free(g);
}
