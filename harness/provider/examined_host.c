#include "harness/provider/examined_host.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
#include "base/sys/process.h"
#include "harness/carrier/carrier.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELPER_MAX = 64 << 20, SAID_MAX = 8192 };

/* For all of a host: a connection over a bad network, the copy, the questions. */
static const int64_t wait_ns = 60000000000;

struct host_inquiry {
    struct loop *loop;
    struct arena arena;
    const struct provider *provider;
    struct provider_wish wish;
    struct buf helper; /* to be copied; empty: it is not */
    unsigned samples;
    size_t open; /* hosts that have not been settled */
};

enum step { REACHING, COPYING, ASKING, LEAVING };

struct inquired_host {
    struct host_inquiry *of;
    struct examined_host *host;
    enum step step;
    bool refused; /* host->why says why */
    struct process process;
    struct carrier *carrier;
    struct loop_source *on_end, *on_said, *on_late;
    int said_fd;
    struct buf said; /* on standard error */
    int64_t since_ns;
    bool carrier_ended, process_ended;
    int status;
};

/* ---- what is wrong ---- */

/* The last line that it has printed says it best. */
static const char *last_line(struct buf *said) {
    while (said->len && strchr("\r\n ", said->data[said->len - 1]))
        said->data[--said->len] = 0;
    if (!said->len)
        return "";
    char *newline = strrchr(said->data, '\n');
    return newline ? newline + 1 : said->data;
}

static void refuse(struct inquired_host *a, const struct err *why) {
    if (a->refused)
        return;
    a->refused = true;
    a->host->why = *why;
}

static void refuse_end(struct inquired_host *a) {
    struct err err;
    char text[64];
    const char *said = last_line(&a->said);
    err_say(&err, -ECONNREFUSED, "%s: %s: %s%s%s%s%s", a->host->name,
            a->step == COPYING    ? "the helper could not be copied there"
            : a->step == REACHING ? "cannot be reached"
                                  : "was lost while it was asked",
            process_status_text(a->status, text, sizeof(text)), *said ? ", \"" : "", said,
            *said ? "\"" : "",
            a->step == COPYING ? "; it needs room and leave to write in ~/.cache/rankquake there"
                               : "");
    refuse(a, &err);
}

/* ---- its end ---- */

static void let_go(struct inquired_host *a) {
    a->carrier = carrier_free(a->carrier);
    a->on_end = loop_source_free(a->on_end);
    a->on_said = loop_source_free(a->on_said);
    process_close(&a->process);
    file_close(&a->said_fd);
}

static void settle(struct inquired_host *a) {
    struct host_inquiry *x = a->of;
    a->on_late = loop_source_free(a->on_late);
    a->host->works = !a->refused;
    if (--x->open == 0)
        loop_stop(x->loop);
}

/* The command has ended, and all that it had to say was heard. */
static void finish(struct inquired_host *a) {
    let_go(a);
    if (a->step != LEAVING)
        refuse_end(a);
    settle(a);
}

static void on_said(void *arg, int fd, int what) {
    struct inquired_host *a = arg;
    char bytes[1024];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        a->on_said = loop_source_free(a->on_said);
        return;
    }
    if (a->said.len > SAID_MAX)
        buf_consume(&a->said, a->said.len / 2);
    buf_put(&a->said, bytes, (size_t)n);
}

static void on_process_end(void *arg, int fd, int what) {
    struct inquired_host *a = arg;
    a->on_end = loop_source_free(a->on_end);
    process_reap(&a->process, 0, &a->status);
    a->process_ended = true;
    while (a->on_said) { /* what it had printed; a child of its may have it open yet */
        size_t before = a->said.len;
        on_said(a, a->said_fd, LOOP_READ);
        if (a->said.len == before)
            break;
    }
    if (a->carrier && !a->carrier_ended)
        carrier_read(a->carrier);
    finish(a);
}

static void on_late(void *arg, int64_t now_ns) {
    struct inquired_host *a = arg;
    struct err err;
    const char *said = last_line(&a->said);
    err_say(&err, -ETIME, "%s: does not answer; nothing came of it in %d s%s%s%s", a->host->name,
            (int)(wait_ns / 1000000000), *said ? ", but \"" : "", said, *said ? "\"" : "");
    refuse(a, &err);
    process_signal(&a->process, SIGKILL);
}

/* ---- the copy ---- */

/* The shell there has found none, and reads so many bytes. */
static void on_copy(struct inquired_host *a, const struct json *m) {
    const struct buf *helper = &a->of->helper;
    if (!helper->len)
        return;
    a->step = COPYING;
    a->host->copied = true;
    carrier_send_bytes(a->carrier, helper->data, helper->len,
                       NULL); /* its end follows, and is told */
}

/* ---- questions ---- */

static void say(struct inquired_host *a, const char *op, int64_t number) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "op", op);
    json_put_i64(&w, str_eq(op, "clock") ? "t1" : "version", number);
    json_end_object(&w);
    carrier_send(a->carrier, &text, NULL, 0, NULL); /* its end follows, and is told */
}

static void say_errand(struct inquired_host *a) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "op", "left");
    json_put_string(&w, "do", a->host->errand);
    if (a->host->run)
        json_put_string(&w, "run", a->host->run);
    json_end_object(&w);
    carrier_send(a->carrier, &text, NULL, 0, NULL);
}

static void ask_preload(struct inquired_host *a) {
    const char *helper = a->of->wish.program, *slash = strrchr(helper, '/');
    BUF_FINI struct buf text = {0};
    BUF_FINI struct buf folder = {0};
    struct json_writer w = {.out = &text};
    buf_put(&folder, helper, slash ? (size_t)(slash - helper) : 0);
    json_object(&w, NULL);
    json_put_string(&w, "op", "preload");
    json_put_string(&w, "programs", buf_str(&folder));
    json_end_object(&w);
    carrier_send(a->carrier, &text, NULL, 0, NULL);
}

static void ask_next(struct inquired_host *a) {
    if (a->host->clock.samples + a->host->clock.steps < a->of->samples) {
        say(a, "clock", clock_monotonic_ns());
        return;
    }
    if (a->host->errand)
        say_errand(a);
    else
        say(a, "inventory", HELLO_VERSION);
}

static void on_hello(struct inquired_host *a, const struct json *m) {
    struct err err;
    a->host->up_ns = clock_monotonic_ns() - a->since_ns;
    hello_take(m, &a->host->hello);
    a->step = ASKING;
    if (hello_check(&a->host->hello, a->host->name, &err) != 0) {
        refuse(a, &err);
        carrier_shut(a->carrier);
        return;
    }
    say(a, "hello", HELLO_VERSION);
    if (a->of->samples)
        ask_preload(a);
    else
        ask_next(a);
}

static void on_preload(struct inquired_host *a, const struct json *m) {
    const char *error = json_get_string(m, "error", NULL);
    if (error)
        err_say(&a->host->no_clock, -ENOTSUP, "%s", error);
    else
        a->host->hello.can |= 1u << HELLO_CAN_WALL_CLOCKS;
    ask_next(a);
}

static void on_clock(struct inquired_host *a, const struct json *m) {
    const struct clock_sample s = {json_get_i64(m, "t1", 0), json_get_i64(m, "t2", 0),
                                   json_get_i64(m, "t3", 0), carrier_heard_ns(a->carrier)};
    struct err err;
    if (clock_bound_add(&a->host->clock, &s) != -EINVAL) {
        ask_next(a);
        return;
    }
    err_say(&err, -EPROTO,
            "%s: its clock cannot be read: it says that it was asked at %lld ns and "
            "answered at %lld ns",
            a->host->name, (long long)s.t2, (long long)s.t3);
    refuse(a, &err);
    carrier_shut(a->carrier);
}

static void on_inventory(struct inquired_host *a, const struct json *m) {
    struct json_writer w = {.out = &a->host->facts};
    str_copy(a->host->address, sizeof(a->host->address), json_get_string(m, "address", ""));
    a->host->network = (uint64_t)json_get_i64(m, "network", 0);
    json_object(&w, NULL);
    json_each(it, m) if (!str_eq(it->key, "op") && !str_eq(it->key, "t"))
        json_put_tree(&w, it->key, it);
    json_end_object(&w);
    a->step = LEAVING;
    carrier_shut(a->carrier);
}

static void on_broken(struct inquired_host *a, const struct json *m) {
    struct err err;
    err_say(&err, -EPROTO, "%s: %s", a->host->name, json_get_string(m, "error", "it broke"));
    refuse(a, &err);
    carrier_shut(a->carrier);
}

static void on_message(void *arg, struct message *m) {
    static const struct {
        const char *op;
        enum step step; /* when it is expected */
        void (*fn)(struct inquired_host *a, const struct json *m);
    } answers[] = {{"copy", REACHING, on_copy},     {"hello", REACHING, on_hello},
                   {"hello", COPYING, on_hello},    {"clock", ASKING, on_clock},
                   {"preload", ASKING, on_preload}, {"inventory", ASKING, on_inventory},
                   {"left", ASKING, on_inventory}};
    struct inquired_host *a = arg;
    const char *op = json_get_string(m->json, "op", "");
    if (str_eq(op, "broken"))
        on_broken(a, m->json);
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
        if (str_eq(op, answers[i].op) && a->step == answers[i].step) {
            answers[i].fn(a, m->json);
            return;
        }
}

static void on_carrier_end(void *arg, const struct err *why) {
    struct inquired_host *a = arg;
    struct err err = *why;
    a->carrier_ended = true;
    if (why->code == -EPROTO) {
        err_wrap(&err, "%s: ", a->host->name);
        refuse(a, &err);
        process_signal(&a->process, SIGTERM);
    }
}

/* ---- a command ---- */

static int spawn(struct inquired_host *a, int end, struct err *err) {
    struct host_inquiry *x = a->of;
    int said[2];
    if (pipe2(said, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    fcntl(said[0], F_SETFL, O_NONBLOCK);
    const struct process_spawn s = {
        .argv = x->provider->reach(&x->wish, a->host->name, &x->arena),
        .fds = (int[]){end, end, said[1]},
        .session = true, /* nobody is asked for a password at the terminal */
    };
    int r = process_spawn(&s, &a->process, err);
    close(said[1]);
    if (r) {
        close(said[0]);
        return r;
    }
    a->said_fd = said[0];
    a->on_said = loop_fd(x->loop, a->said_fd, LOOP_READ, on_said, a);
    a->on_end = loop_fd(x->loop, a->process.pidfd, LOOP_READ, on_process_end, a);
    return 0;
}

static int begin(struct inquired_host *a, struct err *err) {
    int ends[2];
    a->since_ns = clock_monotonic_ns();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(err, -errno, "make a socket pair");
    int r = spawn(a, ends[1], err);
    close(ends[1]);
    if (r) {
        close(ends[0]);
        return r;
    }
    a->carrier = carrier_new(a->of->loop, &(struct carrier_ends){ends[0], ends[0], -1},
                             &(struct carrier_listener){on_message, on_carrier_end, a, NULL});
    return 0;
}

static void begin_host(struct inquired_host *a) {
    struct host_inquiry *x = a->of;
    struct err err;
    x->open++;
    a->on_late = loop_timer(x->loop, on_late, a);
    loop_timer_at(a->on_late, clock_monotonic_ns() + wait_ns);
    int r = x->provider->check(a->host->name, &err);
    if (r == 0 && (r = begin(a, &err)) != 0)
        err_wrap(&err, "%s: ", a->host->name);
    if (r) {
        refuse(a, &err);
        settle(a);
    }
}

/* ---- all of them ---- */

static int read_helper(struct host_inquiry *x, struct err *err) {
    char hash[65];
    if (!x->provider->copies)
        return 0;
    int r = file_read_plain(x->wish.program, HELPER_MAX, &x->helper, err);
    if (r)
        return r;
    sha256_of(x->helper.data, x->helper.len, hash);
    x->wish.helper = arena_strdup(&x->arena, hash);
    x->wish.offered = x->helper.len;
    return 0;
}

int examined_hosts_ask(const struct provider *p, struct provider_wish *w, const char *helper,
                       unsigned samples, struct examined_host *v, size_t n, struct arena *a,
                       struct err *err) {
    struct host_inquiry x = {.provider = p, .wish = *w, .samples = samples};
    x.wish.program = helper;
    struct inquired_host *all = mem_array(struct inquired_host, n);
    x.loop = loop_new(err);
    int r = x.loop ? read_helper(&x, err) : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        all[i] =
            (struct inquired_host){.of = &x, .host = &v[i], .process = PROCESS_NONE, .said_fd = -1};
        begin_host(&all[i]);
    }
    if (r == 0 && x.open)
        r = loop_run(x.loop, err);
    for (size_t i = 0; i < n && r == 0; i++)
        buf_fini(&all[i].said);
    w->program = helper;
    if (r == 0 && x.wish.helper)
        w->helper = arena_strdup(a, x.wish.helper);
    loop_free(x.loop);
    arena_fini(&x.arena);
    buf_fini(&x.helper);
    free(all);
    return r;
}

void examined_hosts_fini(struct examined_host *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        buf_fini(&v[i].facts);
}
