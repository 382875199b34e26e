#include "harness/cluster/power_keeper.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "harness/carrier/channel.h"
#include "harness/provider/examined_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { AGAIN_MS = 1000, LAST_MAX = 4096 };

struct power_keeper {
    int control;
    struct message begun; /* json NULL: not yet */
    int log;
    bool is_cut;
};

/* ---- a command ---- */

static const char *const *words_of(struct power_keeper *k, const char *which) {
    const struct json *list = json_get(k->begun.json, which);
    size_t n = 0;
    const char **v = arena_array(&k->begun.arena, const char *, (list ? list->length : 0) + 1);
    json_each(it, list) v[n++] = json_string(it, "");
    return v;
}

static void note_command(const struct power_keeper *k, const char *const *argv) {
    BUF_FINI struct buf line = {0};
    buf_puts(&line, "$");
    for (; *argv; argv++)
        buf_printf(&line, " %s", *argv);
    buf_puts(&line, "\n");
    file_write_all(k->log, line.data, line.len, NULL);
}

/* Kept in the log, and its end here. Returns false when there is nothing more now. */
static bool take_output(const struct power_keeper *k, int fd, struct buf *said) {
    char bytes[1024];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n <= 0)
        return false;
    file_write_all(k->log, bytes, (size_t)n, NULL);
    buf_put(said, bytes, (size_t)n);
    if (said->len > LAST_MAX)
        buf_consume(said, said->len - LAST_MAX);
    return true;
}

static const char *last_line(struct buf *said) {
    while (said->len && strchr("\r\n ", said->data[said->len - 1]))
        said->data[--said->len] = 0;
    char *newline = said->len ? strrchr(said->data, '\n') : NULL;
    return newline ? newline + 1 : buf_str(said);
}

/* Until it has ended, or its time is up. What it prints meanwhile is taken. */
static bool await_end(const struct power_keeper *k, const struct process *p, int out,
                      int64_t until_ns, struct buf *said) {
    bool open = true;
    int64_t left_ns;
    while ((left_ns = until_ns - clock_monotonic_ns()) > 0) {
        struct pollfd fds[] = {{.fd = p->pidfd, .events = POLLIN},
                               {.fd = open ? out : -1, .events = POLLIN}};
        if (poll(fds, 2, (int)(left_ns / 1000000) + 1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents)
            open = take_output(k, out, said);
        if (fds[0].revents)
            return true;
    }
    return false;
}

static int spawn(const char *const *argv, int out, struct process *ret, struct err *err) {
    FILE_CLOSE int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const struct process_spawn s = {.argv = argv, .fds = (int[]){in, out, out}, .session = true};
    return in < 0 ? err_set(err, -errno, "open /dev/null") : process_spawn(&s, ret, err);
}

static int judge_end(const struct power_keeper *k, const char *which, int status, struct buf *said,
                     struct err *err) {
    char text[64];
    const char *last = last_line(said);
    if (status == 0)
        return 0;
    return err_say(err, -EIO, "cluster.power.%s has failed: %s%s%s%s; what it printed is in %s",
                   which, process_status_text(status, text, sizeof(text)), *last ? ", \"" : "",
                   last, *last ? "\"" : "", json_get_string(k->begun.json, "log", ""));
}

static int run_command(struct power_keeper *k, const char *which, struct err *err) {
    BUF_FINI struct buf said = {0};
    int64_t within_ns = json_get_i64(k->begun.json, "within", 0);
    const char *const *argv = words_of(k, which);
    int out[2], status = 0;
    struct process p;
    if (pipe2(out, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    note_command(k, argv);
    int r = spawn(argv, out[1], &p, err);
    close(out[1]);
    if (r) {
        close(out[0]);
        return err_wrap(err, "cluster.power.%s: ", which);
    }
    bool ended = await_end(k, &p, out[0], clock_monotonic_ns() + within_ns, &said);
    if (!ended)
        kill(-p.pid, SIGKILL); /* a session of its own: what it has started goes, too */
    process_reap(&p, -1, &status);
    process_close(&p);
    while (take_output(k, out[0], &said))
        ;
    close(out[0]);
    if (ended)
        return judge_end(k, which, status, &said, err);
    const char *last = last_line(&said);
    return err_say(err, -ETIME,
                   "cluster.power.%s has not ended after %d s and was killed%s%s%s; raise "
                   "cluster.power.within if that is not long enough",
                   which, (int)(within_ns / 1000000000), *last ? "; it had said \"" : "", last,
                   *last ? "\"" : "");
}

/* ---- a host that begins anew ---- */

static bool is_closed(const struct power_keeper *k, int timeout_ms) {
    struct pollfd p = {.fd = k->control, .events = POLLIN};
    return poll(&p, 1, timeout_ms) > 0 && p.revents & POLLHUP;
}

/* A host that starts tells nobody: it is tried again and again. */
static int reach(struct power_keeper *k, struct hello *ret, struct err *err) {
    const struct json *j = k->begun.json;
    const char *ssh = json_get_string(j, "ssh", "");
    int64_t within_ns = json_get_i64(j, "within", 0), until_ns = clock_monotonic_ns() + within_ns;
    const struct provider *provider = provider_find(json_get_string(j, "provider", ""));
    struct examined_host h = {.name = json_get_string(j, "host", "")};
    for (;;) {
        ARENA_FINI struct arena a = {0};
        struct provider_wish wish = {.ssh = *ssh ? ssh : NULL};
        int r = provider ? examined_hosts_ask(provider, &wish, json_get_string(j, "program", ""), 0,
                                              &h, 1, &a, err)
                         : err_say(err, -EINVAL, "nobody knows how the host is reached");
        examined_hosts_fini(&h, 1);
        h.facts = (struct buf){0};
        if (r || h.works) {
            *ret = h.hello;
            return r;
        }
        if (clock_monotonic_ns() > until_ns)
            return err_say(err, -ETIME,
                           "cluster.power.on has ended with 0, and the host does not answer %d s "
                           "after: %s",
                           (int)(within_ns / 1000000000), h.why.msg);
        if (is_closed(k, AGAIN_MS))
            return err_say(err, -EPIPE, "the harness has ended");
    }
}

/* ---- orders ---- */

static int answer(const struct power_keeper *k, const char *op, const char *error,
                  const struct hello *h) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "op", op);
    json_put_string(&w, "error", error);
    if (h)
        hello_put(&w, h);
    json_end_object(&w);
    return channel_send(k->control, &text, NULL, 0, NULL);
}

static int on_begin(struct power_keeper *k, struct message *m) {
    file_close(&k->log);
    k->log = message_take_fd(m, 0);
    if (k->begun.json)
        message_fini(&k->begun);
    k->begun = *m;
    *m = (struct message){.fds = {-1, -1, -1, -1}};
    return 0;
}

/* A command that has failed may have taken the power all the same. */
static int on_off(struct power_keeper *k, struct message *m) {
    struct err err;
    k->is_cut = true;
    int r = run_command(k, "off", &err);
    return answer(k, "off", r ? err.msg : NULL, NULL);
}

static int on_on(struct power_keeper *k, struct message *m) {
    struct err err;
    struct hello hello;
    int r = run_command(k, "on", &err);
    r = r ? r : reach(k, &hello, &err);
    k->is_cut = r != 0;
    return answer(k, "on", r ? err.msg : NULL, r ? NULL : &hello);
}

static int obey(struct power_keeper *k, struct message *m) {
    const char *op = json_get_string(m->json, "op", "");
    if (str_eq(op, "begin"))
        return on_begin(k, m);
    if (str_eq(op, "off") && k->begun.json)
        return on_off(k, m);
    if (str_eq(op, "on") && k->begun.json)
        return on_on(k, m);
    return -EPROTO;
}

int power_keeper_run(int control, struct err *err) {
    struct power_keeper k = {.control = control, .log = -1};
    int r = 0;
    while (r >= 0) {
        struct message m;
        struct pollfd p = {.fd = control, .events = POLLIN};
        if (poll(&p, 1, -1) < 0)
            continue;
        r = channel_receive(control, &m, NULL);
        if (r <= 0)
            continue;
        r = obey(&k, &m);
        message_fini(&m);
    }
    r = k.is_cut ? run_command(&k, "on", err) : 0;
    if (k.begun.json)
        message_fini(&k.begun);
    file_close(&k.log);
    return r;
}
