#include "harness/preflight/station.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ANSWER_MAX = 16 << 20, SAID_MAX = 1 << 20, TIMES_MOST = 3 };
static const int64_t END_NS = 2000000000;

static void fall_silent(struct station *s, const char *why) {
    if (!*s->why)
        str_copy(s->why, sizeof(s->why), why);
}

static bool make_pipes(int to[2], int from[2]) {
    if (pipe2(to, O_CLOEXEC) < 0)
        return false;
    if (pipe2(from, O_CLOEXEC) == 0)
        return true;
    close(to[0]);
    close(to[1]);
    return false;
}

void station_open(struct station *ret, const char *host, const char *address,
                  const char *const *words) {
    static const char *const own[] = {"rankquake", "preflight", "--outpost", NULL};
    int to[2], from[2];
    struct err err = {0};
    *ret = (struct station){.host = host,
                            .address = address,
                            .times = 1,
                            .process = PROCESS_NONE,
                            .to = -1,
                            .from = -1,
                            .said = -1};
    if (!make_pipes(to, from)) {
        fall_silent(ret, strerror(errno));
        return;
    }
    ret->said = memfd_create("what a host says", MFD_CLOEXEC);
    struct process_spawn spawn = {.argv = words ? words : own,
                                  .file = words ? NULL : "/proc/self/exe",
                                  .fds = (int[]){to[0], from[1], ret->said},
                                  .death_signal = SIGKILL};
    if (process_spawn(&spawn, &ret->process, &err) < 0)
        fall_silent(ret, err.msg);
    close(to[0]);
    close(from[1]);
    ret->to = to[1];
    ret->from = from[0];
}

void station_end(struct station *s) {
    file_close(&s->to);
}

/* It ends when its input does; what hangs is left to the kernel. */
void station_close(struct station *s) {
    station_end(s);
    file_close(&s->from);
    if (s->process.pid && process_reap(&s->process, *s->why ? 0 : END_NS, NULL) == -ETIME) {
        process_signal(&s->process, SIGKILL);
        process_reap(&s->process, END_NS, NULL);
    }
    process_close(&s->process);
    file_close(&s->said);
    buf_fini(&s->heard);
}

bool station_open_again(struct station *s, const char *const *words) {
    const char *host = s->host, *address = s->address;
    int times = s->times;
    if (!*s->why || times >= TIMES_MOST)
        return false;
    station_close(s);
    station_open(s, host, address, words);
    s->times = times + 1;
    return true;
}

/* The last that it printed on standard error: what ssh, or the shell there, complains of. */
static void ended(struct station *s) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf said = {0};
    const char *last = "it said nothing";
    if (s->said >= 0 && lseek(s->said, 0, SEEK_SET) == 0)
        file_read_fd(s->said, SAID_MAX, &said, NULL);
    for (char **line = str_split(&a, buf_str(&said), '\n', NULL); *line; line++) {
        (*line)[strcspn(*line, "\r")] = '\0';
        last = **line ? *line : last;
    }
    fall_silent(s, arena_printf(&a, "the program there ended: %s", last));
}

void station_ask(struct station *s, const char *text) {
    BUF_FINI struct buf line = {0};
    buf_printf(&line, "%s\n", text);
    if (!*s->why && file_write_all(s->to, line.data, line.len, NULL) < 0)
        ended(s);
}

/* More bytes, until then. */
static bool read_more(struct station *s, int64_t until_ns) {
    char part[4096];
    struct pollfd p = {.fd = s->from, .events = POLLIN};
    int64_t left = until_ns - clock_monotonic_ns();
    int r = poll(&p, 1, left > 0 ? (int)(left / 1000000) + 1 : 0);
    if (r < 0 && errno == EINTR)
        return true;
    if (r <= 0) {
        fall_silent(s, "no answer in time");
        return false;
    }
    ssize_t n = read(s->from, part, sizeof(part));
    if (n <= 0) {
        ended(s);
        return false;
    }
    buf_put(&s->heard, part, (size_t)n);
    if (s->heard.len > ANSWER_MAX)
        fall_silent(s, "its answer does not end");
    return !*s->why;
}

const struct json *station_hear(struct station *s, struct arena *a, int64_t until_ns) {
    struct err err = {0};
    const char *end = NULL;
    while (!*s->why && !(end = memchr(buf_str(&s->heard), '\n', s->heard.len)))
        if (!read_more(s, until_ns))
            break;
    if (*s->why || !end)
        return NULL;
    size_t n = (size_t)(end - s->heard.data);
    const char *text = arena_strndup(a, s->heard.data, n);
    buf_consume(&s->heard, n + 1);
    const struct json *j = json_parse(a, text, n, &err);
    if (!j)
        fall_silent(s, "what it answers is no JSON: is a shell there chatty?");
    return j;
}
