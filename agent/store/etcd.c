#include "agent/store/etcd.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
#include "base/sys/process.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_SIZE = 256, LINE_MAX_BYTES = 64 << 10 };
static const int64_t START_NS = 30000000000, END_NS = 10000000000;
static const char VARIABLE[] = "TORCHELASTIC_ETCD_BINARY_PATH";

struct etcd {
    struct process keeper;
    int life; /* closed: the keeper ends */
    int said; /* what etcd says; it ends when the keeper has gone */
    uint16_t port;
    bool ready;
    struct buf line; /* what has come of the next one */
    char words[WORDS_SIZE];
    struct loop_source *source;
    etcd_ended_fn *fn;
    void *arg;
};

/* ---- what it says ---- */

void etcd_words(const char *line, char *ret, unsigned size) {
    ARENA_FINI struct arena arena = {0};
    const struct json *j = json_parse(&arena, line, strlen(line), NULL);
    const char *msg = json_get_string(j, "msg", NULL), *bar = strstr(line, " | ");
    const char *error = json_get_string(j, "error", NULL);
    if (msg)
        line = error ? arena_printf(&arena, "%s: %s", msg, error) : msg;
    else if (bar)
        line = bar + 3;
    str_copy(ret, size, line);
}

/* An option that it does not know is followed by all that it does know. */
static void take_line(struct etcd *e, const char *line) {
    if (strstr(line, "ready to serve client requests"))
        e->ready = true;
    if (line[0] && !strstr(e->words, "not defined"))
        etcd_words(line, e->words, sizeof(e->words));
}

/* False: that was all. */
static bool read_lines(struct etcd *e) {
    char part[4096];
    ssize_t n = read(e->said, part, sizeof(part));
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    if (e->line.len >= LINE_MAX_BYTES) /* what follows is told as a line of its own */
        buf_clear(&e->line);
    buf_put(&e->line, part, (size_t)n);
    for (char *end; e->line.len && (end = memchr(e->line.data, '\n', e->line.len));) {
        *end = '\0';
        take_line(e, e->line.data);
        buf_consume(&e->line, (size_t)(end - e->line.data) + 1);
    }
    return true;
}

/* Until it serves, or is at an end; false when time is up before. */
static bool listen_until_ready(struct etcd *e, int64_t until_ns) {
    while (!e->ready) {
        struct pollfd fd = {e->said, POLLIN, 0};
        int64_t left_ms = (until_ns - clock_monotonic_ns()) / 1000000;
        int n = poll(&fd, 1, left_ms > 0 ? (int)left_ms : 0);
        if (n == 0)
            return false;
        if (n > 0 && !read_lines(e))
            return true;
    }
    return true;
}

/* ---- starting it ---- */

static int find_program(const char **ret, struct err *err) {
    const char *path = getenv(VARIABLE);
    *ret = path && path[0] ? path : "etcd";
    if (path && path[0] && access(path, X_OK) < 0)
        return err_say(err, -EINVAL, "%s=%s in the environment: %s", VARIABLE, path,
                       strerror(errno));
    return 0;
}

/* Its options would be taken from variables too: those of another etcd on this host. */
static const char *const *make_environment(struct arena *a) {
    size_t n = 0, all = 0;
    while (environ[all])
        all++;
    const char **env = arena_array(a, const char *, all + 2);
    for (char **p = environ; *p; p++)
        if (!str_starts(*p, "ETCD_"))
            env[n++] = *p;
#ifdef __aarch64__
    env[n++] = "ETCD_UNSUPPORTED_ARCH=arm64"; /* what etcd was before 3.5 */
#endif
    env[n] = NULL;
    return env;
}

/* The ports are let go at the last moment: nobody is given them by itself. */
static int reserve(uint16_t *ret_client, uint16_t *ret_peer, struct err *err) {
    FILE_CLOSE int client = -1;
    FILE_CLOSE int peer = -1;
    int code = tcp_reserve_port(&client, ret_client, err);
    return code ? code : tcp_reserve_port(&peer, ret_peer, err);
}

/* SIGCONT from the kernel when the agent dies: a keeper that somebody has stopped wakes up and sees
 * its pipe at an end. */
static int spawn(struct etcd *e, const char *program, bool old_api, int life, int said,
                 struct err *err) {
    ARENA_FINI struct arena a = {0};
    uint16_t peer = 0;
    int code = reserve(&e->port, &peer, err);
    const char *client_url = arena_printf(&a, "http://127.0.0.1:%u", e->port);
    const char *argv[] = {ETCD_KEEPER_NAME,
                          program,
                          "--listen-client-urls",
                          client_url,
                          "--advertise-client-urls",
                          client_url,
                          "--listen-peer-urls",
                          arena_printf(&a, "http://127.0.0.1:%u", peer),
                          "--auto-compaction-mode",
                          "revision",
                          "--auto-compaction-retention",
                          "10000",
                          old_api ? "--enable-v2" : NULL,
                          NULL};
    const int fds[] = {life, said, said};
    struct process_spawn s = {.argv = argv,
                              .file = "/proc/self/exe",
                              .envp = make_environment(&a),
                              .fds = fds,
                              .session = true,
                              .death_signal = SIGCONT};
    if (!code)
        code = process_spawn(&s, &e->keeper, err);
    return code;
}

static const char *advice(const char *words) {
    if (strstr(words, "-enable-v2"))
        return "; an etcd from 3.6 on has no v2 API: take --rdzv-backend etcd-v3, or an older one";
    if (strstr(words, "No such file or directory"))
        return "; install it (Debian, Ubuntu: apt install etcd-server), or name one by "
               "TORCHELASTIC_ETCD_BINARY_PATH; --standalone alone needs none";
    return "";
}

static int await_ready(struct etcd *e, const char *program, struct err *err) {
    bool in_time = listen_until_ready(e, clock_monotonic_ns() + START_NS);
    if (e->ready)
        return 0;
    return err_say(err, -EHOSTUNREACH, "the etcd of this job (%s) %s: %s%s", program,
                   in_time ? "did not start" : "did not serve within 30 s",
                   *e->words ? e->words : "it said nothing", advice(e->words));
}

static int begin(struct etcd *e, const char *program, bool old_api, struct err *err) {
    int life[2] = {-1, -1}, said[2] = {-1, -1};
    int code = process_report_pipe(life);
    code = code ? code : process_report_pipe(said);
    e->life = life[1];
    e->said = said[0];
    code = code ? err_set(err, code, "make a pipe")
                : spawn(e, program, old_api, life[0], said[1], err);
    file_close(&said[1]);
    file_close(&life[0]);
    return code ? code : await_ready(e, program, err);
}

struct etcd *etcd_start(bool old_api, struct err *err) {
    const char *program;
    if (find_program(&program, err) < 0)
        return NULL;
    struct etcd *e = mem_new(struct etcd);
    *e = (struct etcd){.keeper = PROCESS_NONE, .life = -1, .said = -1};
    return begin(e, program, old_api, err) == 0 ? e : etcd_free(e);
}

struct etcd *etcd_free(struct etcd *e) {
    if (!e)
        return NULL;
    file_close(&e->life);
    file_close(&e->said);
    if (e->keeper.pid && process_reap(&e->keeper, END_NS, NULL) == -ETIME) {
        process_signal(&e->keeper, SIGKILL);
        process_reap(&e->keeper, END_NS, NULL);
    }
    process_close(&e->keeper);
    buf_fini(&e->line);
    free(e);
    return NULL;
}

uint16_t etcd_port(const struct etcd *e) {
    return e->port;
}

pid_t etcd_keeper(const struct etcd *e) {
    return e->keeper.pid;
}

/* ---- its end ---- */

static void on_said(void *arg, int fd, int what) {
    struct etcd *e = arg;
    if (read_lines(e))
        return;
    e->source = loop_source_free(e->source);
    e->fn(e->arg, e->words);
}

void etcd_watch(struct etcd *e, struct loop *l, etcd_ended_fn *fn, void *arg) {
    e->fn = fn;
    e->arg = arg;
    e->source = loop_fd(l, e->said, LOOP_READ, on_said, e);
}
