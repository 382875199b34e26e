#include "agent/hosts/fleet.h"

#include "agent/hosts/remote.h"
#include "agent/hosts/remote_launch.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/printable.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/line.h"
#include "base/sys/loop.h"
#include "base/sys/process.h"
#include "base/sys/signals.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t PATIENCE_NS = INT64_C(15000000000);
enum { LINE_KEPT = 64 << 10, SSH_FAILED = 255, NOT_THERE = 127, UNREACHED = 69, SIGNALS = 3 };

struct fleet_stream {
    struct ship *ship;
    int fd, to; /* fd -1: at its end */
    bool shown; /* to is a terminal */
    struct loop_source *source;
    struct buf line;
};

/* One host. */
struct ship {
    struct fleet *fleet;
    const struct host *host;
    bool direct; /* this machine: without ssh */
    struct process process;
    struct loop_source *ended, *writable;
    int in; /* its standard input; -1: closed */
    struct buf unsent;
    struct fleet_stream streams[2];
    bool over;
    int code;
};

struct fleet {
    const struct fleet_spec *spec;
    struct loop *loop;
    struct arena arena;
    struct ship *ships;
    size_t sailing; /* not over */
    int signo;      /* the first that came; 0: none */
    bool stopping;  /* because of a host that failed */
    int failure;    /* exit code for the first that failed by itself */
    struct loop_source *signals[SIGNALS];
    struct loop_source *patience; /* for those that should have ended as others did */
};

/* ---- what they print ---- */

/* A line of an agent that is JSON stays so, and says where it is from. */
static bool is_agents_json(const struct fleet_stream *s) {
    static const char begin[] = "{\"time\":";
    return s->to == STDERR_FILENO && line_is_json() && s->line.len > sizeof(begin) &&
           memcmp(s->line.data, begin, sizeof(begin) - 1) == 0 &&
           s->line.data[s->line.len - 1] == '}';
}

/* A host may be anybody's, and what it says stands beside what the others say. Over a line of a
 * progress bar its program has written again and again: a terminal shows the last writing. */
static void put_shown(struct buf *out, const struct fleet_stream *s, size_t from) {
    const char *line = buf_str(&s->line);
    size_t n = s->line.len;
    while (n && line[n - 1] == '\r')
        n--;
    const char *again = memrchr(line, '\r', n);
    from = again ? (size_t)(again + 1 - line) : from;
    printable_put(out, line + from, n - from, PRINTABLE_LINES | PRINTABLE_COLORS);
}

static void show(struct fleet_stream *s) {
    const char *host = s->ship->host->name; /* no letter of it needs an escape: hosts.c */
    BUF_FINI struct buf out = {0};
    bool json = is_agents_json(s);
    buf_printf(&out, json ? "{\"host\":\"%s\"," : "[%s] ", host);
    if (s->shown)
        put_shown(&out, s, json);
    else
        buf_put(&out, buf_str(&s->line) + json, s->line.len - json);
    buf_putc(&out, '\n');
    file_write_all(s->to, out.data, out.len, NULL);
    buf_clear(&s->line);
}

static void take(struct fleet_stream *s, const char *data, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (data[i] != '\n')
            buf_putc(&s->line, data[i]);
        if (data[i] == '\n' || s->line.len == LINE_KEPT)
            show(s);
    }
}

static void close_stream(struct fleet_stream *s) {
    if (s->line.len)
        show(s);
    s->source = loop_source_free(s->source);
    file_close(&s->fd);
    buf_fini(&s->line);
}

static void settle(struct ship *p);

static void on_output(void *arg, int fd, int what) {
    struct fleet_stream *s = arg;
    char data[16 << 10];
    ssize_t n = read(fd, data, sizeof(data));
    if (n > 0)
        take(s, data, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        if (n < 0)
            line_say(LINE_ERROR, "host", "host %s: read what it says: %s", s->ship->host->name,
                     strerror(errno));
        close_stream(s);
        settle(s->ship);
    }
}

/* ---- what they are told ---- */

/* It has ended, which is told elsewhere, or is told by this that nothing comes any more. */
static void close_input(struct ship *p) {
    p->writable = loop_source_free(p->writable);
    file_close(&p->in);
    buf_clear(&p->unsent);
}

static void flush(struct ship *p) {
    while (p->unsent.len && p->in >= 0) {
        ssize_t n = write(p->in, p->unsent.data, p->unsent.len);
        if (n > 0)
            buf_consume(&p->unsent, (size_t)n);
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            close_input(p);
    }
    if (p->writable)
        loop_fd_set(p->writable, p->unsent.len ? LOOP_WRITE : 0);
}

static void on_writable(void *arg, int fd, int what) {
    flush(arg);
}

/* One that has ended hears nothing any more. */
static void tell(struct ship *p, int signo) {
    buf_putc(&p->unsent, (char)signo);
    flush(p);
}

static void stop_all(struct fleet *f) {
    f->stopping = true;
    for (size_t i = 0; i < f->spec->hosts.n; i++)
        tell(&f->ships[i], SIGTERM);
}

/* ---- how they end ---- */

/* What ended without knowing the job's outcome: ssh that did not come through, an agent that could
 * not begin or lost the store, or was killed. */
static bool failed_by_itself(const struct ship *p) {
    return p->code != 0 && p->code != 1;
}

static bool is_code_of_ssh(const struct ship *p, int code) {
    return p->code == code && !p->direct;
}

static void tell_why(const struct ship *p) {
    if (is_code_of_ssh(p, SSH_FAILED))
        line_say(LINE_ERROR, "host", "host %s: ssh failed (exit code 255); try: ssh %s true",
                 p->host->name, p->host->name);
    else if (is_code_of_ssh(p, NOT_THERE))
        line_say(LINE_ERROR, "host", "host %s: rankrun is not there under the path it has here",
                 p->host->name);
    else if (p->code > 128 && p->code < 128 + NSIG)
        line_say(LINE_ERROR, "host", "host %s: ended by signal %d", p->host->name, p->code - 128);
    else
        line_say(LINE_ERROR, "host", "host %s: %s ended with code %d", p->host->name,
                 p->fleet->spec->plain ? "the command" : "its agent", p->code);
}

static bool too_few(const struct fleet *f) {
    size_t left = f->spec->hosts.n;
    for (size_t i = 0; i < f->spec->hosts.n; i++)
        left -= f->ships[i].over && f->ships[i].code != 0;
    return left < (size_t)f->spec->min && f->sailing;
}

static void stop_rest(struct fleet *f) {
    if (f->spec->plain || f->signo || f->stopping || !too_few(f))
        return;
    line_say(LINE_ERROR, "host", "too few hosts are left: stopping the others");
    stop_all(f);
}

static void on_patience(void *arg, int64_t now_ns) {
    stop_rest(arg);
}

/* An agent that ends with 1 tells the job's outcome, by which the others end as well - unless it
 * was something else that ended with 1. */
static void note_failure(struct ship *p) {
    struct fleet *f = p->fleet;
    if (!failed_by_itself(p) && !f->spec->plain) {
        loop_timer_at(f->patience, clock_monotonic_ns() + PATIENCE_NS);
        return;
    }
    tell_why(p);
    bool unreached = is_code_of_ssh(p, SSH_FAILED) || is_code_of_ssh(p, NOT_THERE);
    if (!f->failure)
        f->failure = unreached ? UNREACHED : p->code;
    stop_rest(f);
}

/* A host is over when its process has ended and all it said is shown. */
static void settle(struct ship *p) {
    struct fleet *f = p->fleet;
    if (p->process.pidfd >= 0 || p->streams[0].fd >= 0 || p->streams[1].fd >= 0)
        return;
    p->over = true;
    f->sailing--;
    if (p->code != 0 && !f->signo && !f->stopping)
        note_failure(p);
    if (!f->sailing)
        loop_stop(f->loop);
}

static void on_ended(void *arg, int fd, int what) {
    struct ship *p = arg;
    int status = 0;
    process_reap(&p->process, -1, &status);
    p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    p->ended = loop_source_free(p->ended);
    process_close(&p->process);
    close_input(p);
    settle(p);
}

/* The second signal is for those that do not end: without its connection a far end stops by itself.
 */
static void on_signal(void *arg, int signo) {
    struct fleet *f = arg;
    for (size_t i = 0; i < f->spec->hosts.n; i++) {
        struct ship *p = &f->ships[i];
        if (!f->signo)
            tell(p, signo);
        else
            process_signal(&p->process, SIGKILL);
    }
    if (!f->signo)
        f->signo = signo;
}

/* ---- how they start ---- */

/* ssh gives its words to a shell over there. */
static const char *quoted(const char *s, struct arena *a) {
    BUF_FINI struct buf b = {0};
    buf_putc(&b, '\'');
    for (; *s; s++)
        if (*s == '\'')
            buf_puts(&b, "'\\''");
        else
            buf_putc(&b, *s);
    buf_putc(&b, '\'');
    return arena_strdup(a, buf_str(&b));
}

static const char *const *command_of(struct fleet *f, const struct ship *p, const char *self) {
    size_t n = 0;
    char **words =
        str_split(&f->arena, f->spec->ssh ? f->spec->ssh : "ssh -o BatchMode=yes -T", ' ', &n);
    const char **argv = arena_array(&f->arena, const char *, n + 4);
    size_t k = 0;
    if (p->direct) {
        argv[k++] = self;
        argv[k++] = "remote";
        if (line_is_json())
            argv[k++] = REMOTE_JSON;
    } else {
        for (size_t i = 0; i < n; i++)
            argv[k++] = words[i];
        argv[k++] = p->host->name;
        argv[k++] = arena_printf(&f->arena, "exec %s remote%s", quoted(self, &f->arena),
                                 line_is_json() ? " " REMOTE_JSON : "");
    }
    argv[k] = NULL;
    return argv;
}

static void begin_stream(struct ship *p, int i, int fd) {
    struct fleet_stream *s = &p->streams[i];
    *s = (struct fleet_stream){.ship = p, .fd = fd, .to = i + 1, .shown = isatty(i + 1)};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    s->source = loop_fd(p->fleet->loop, fd, LOOP_READ, on_output, s);
}

static int spawn(struct fleet *f, struct ship *p, const char *self, struct err *err) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, said[2] = {-1, -1};
    int code = process_report_pipe(in);
    code = code ? code : process_report_pipe(out);
    code = code ? code : process_report_pipe(said);
    if (code)
        err_set(err, code, "make pipes for host %s", p->host->name);
    struct process_spawn s = {
        .argv = command_of(f, p, self),
        .fds = (const int[]){in[0], out[1], said[1]},
        .group = true,
    };
    if (!code && (code = process_spawn(&s, &p->process, err)) < 0)
        err_wrap(err, "host %s: ", p->host->name);
    file_close(&in[0]);
    file_close(&out[1]);
    file_close(&said[1]);
    if (code) {
        file_close(&in[1]);
        file_close(&out[0]);
        file_close(&said[0]);
        return code;
    }
    p->in = in[1];
    fcntl(p->in, F_SETFL, O_NONBLOCK);
    begin_stream(p, 0, out[0]);
    begin_stream(p, 1, said[0]);
    return 0;
}

static int start(struct fleet *f, size_t i, const char *self, const char *dir,
                 const char *const *env, struct err *err) {
    struct ship *p = &f->ships[i];
    struct remote_launch e = {dir, f->spec->argv[i], env, f->spec->plain};
    *p = (struct ship){.fleet = f,
                       .host = &f->spec->hosts.list[i],
                       .process = PROCESS_NONE,
                       .in = -1,
                       .streams = {{.fd = -1}, {.fd = -1}}};
    p->direct = tcp_host_is_ours(p->host->name);
    int code = spawn(f, p, self, err);
    if (code)
        return code;
    f->sailing++;
    p->ended = loop_fd(f->loop, p->process.pidfd, LOOP_READ, on_ended, p);
    p->writable = loop_fd(f->loop, p->in, 0, on_writable, p);
    remote_launch_write(&e, &p->unsent);
    flush(p);
    return 0;
}

static int start_all(struct fleet *f, struct err *err) {
    char self[PATH_MAX], dir[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0 || !getcwd(dir, sizeof(dir)))
        return err_set(err, -errno, "find the current directory and program");
    self[n] = '\0';
    const char *const *env = remote_launch_environment(&f->arena, f->spec->variable);
    int code = 0;
    for (size_t i = 0; i < f->spec->hosts.n && !code; i++)
        code = start(f, i, self, dir, env, err);
    return code;
}

/* Agents that know the outcome say the same one. */
static int outcome(const struct fleet *f) {
    bool succeeded = false;
    if (f->spec->plain)
        return f->signo ? 128 + f->signo : f->failure;
    for (size_t i = 0; i < f->spec->hosts.n; i++) {
        if (f->ships[i].code == 1)
            return 1;
        succeeded |= f->ships[i].code == 0;
    }
    return succeeded ? 0 : f->signo ? 128 + f->signo : f->failure;
}

static void fleet_fini(struct fleet *f) {
    for (size_t i = 0; i < f->spec->hosts.n; i++) {
        struct ship *p = &f->ships[i];
        if (!p->fleet)
            continue;
        loop_source_free(p->ended);
        close_input(p);
        close_stream(&p->streams[0]);
        close_stream(&p->streams[1]);
        if (p->process.pidfd >= 0)
            process_reap(&p->process, -1, NULL); /* its input has ended: so does it */
        process_close(&p->process);
        buf_fini(&p->unsent);
    }
    for (int i = 0; i < SIGNALS; i++)
        loop_source_free(f->signals[i]);
    loop_source_free(f->patience);
    loop_free(f->loop);
    arena_fini(&f->arena);
    free(f->ships);
}

int fleet_run(const struct fleet_spec *s, struct err *err) {
    static const int numbers[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
    struct fleet f = {.spec = s, .loop = loop_new(err)};
    if (!f.loop)
        return err->code;
    f.ships = mem_array(struct ship, s->hosts.n);
    signal_ignore_writes();
    f.patience = loop_timer(f.loop, on_patience, &f);
    for (int i = 0; i < SIGNALS; i++)
        f.signals[i] = loop_signal(f.loop, numbers[i], on_signal, &f);
    int code = start_all(&f, err);
    if (!code)
        code = loop_run(f.loop, err);
    if (!code)
        code = outcome(&f);
    fleet_fini(&f);
    return code;
}
