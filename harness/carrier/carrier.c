#include "harness/carrier/carrier.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "harness/carrier/frames.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_MAX = 1 << 16,
    READS_A_TURN = 16,     /* then others are served */
    WAITS_MAX = 128 << 20, /* bytes that the other end has not taken */
};

struct carrier {
    struct carrier_ends ends;
    struct carrier_listener listener;
    struct loop *loop;
    struct loop_source *on_in, *on_out; /* on_out: while something waits to be taken */
    struct frame_stream in;
    struct buf out;
    bool ended, shut;
    bool *freed; /* by a callback that is being called */
    int64_t heard_ns;
};

/* ---- the two ends ---- */

int carrier_pair(struct carrier_ends ret[2], struct err *err) {
    int streams[2], lanes[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams) != 0)
        return err_set(err, -errno, "make a socket pair");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lanes) != 0) {
        err_set(err, -errno, "make a socket pair");
        close(streams[0]);
        close(streams[1]);
        return err ? err->code : -EMFILE;
    }
    for (int i = 0; i < 2; i++)
        ret[i] = (struct carrier_ends){streams[i], streams[i], lanes[i]};
    return 0;
}

void carrier_ends_close(struct carrier_ends *e) {
    if (e->out != e->in)
        file_close(&e->out);
    file_close(&e->in);
    file_close(&e->lane);
    *e = CARRIER_ENDS_NONE;
}

/* ---- what comes ---- */

static void end(struct carrier *c, const struct err *why) {
    c->ended = true;
    c->on_in = loop_source_free(c->on_in);
    c->listener.end(c->listener.arg, why);
}

/* They were sent before the message was. */
static int take_descriptors(struct carrier *c, struct message *m, size_t n, struct err *err) {
    char byte;
    size_t came = CHANNEL_FDS_MAX;
    if (n > CHANNEL_FDS_MAX || c->ends.lane < 0)
        return err_say(err, -EPROTO, "a message speaks of %zu descriptors that cannot have come",
                       n);
    ssize_t r = descriptors_receive(c->ends.lane, &byte, 1, m->fds, &came);
    if (r != 1 || came != n)
        return err_say(err, -EPROTO, "a message speaks of %zu descriptors, and %zu have come", n,
                       r == 1 ? came : 0);
    return 0;
}

static int parse(struct carrier *c, const char *text, size_t len, struct message *m,
                 struct err *err) {
    *m = (struct message){.fds = {-1, -1, -1, -1}};
    m->json = json_parse(&m->arena, text, len, err);
    if (!m->json)
        return err_wrap(err, "a message that cannot be read: "), -EPROTO;
    if (m->json->type != JSON_OBJECT)
        return err_say(err, -EPROTO, "a message that is no object");
    int64_t n = json_get_i64(m->json, "fds", 0);
    return n ? take_descriptors(c, m, n < 0 ? SIZE_MAX : (size_t)n, err) : 0;
}

/* False: the carrier is not there any more, or has ended. */
static bool tell_all(struct carrier *c) {
    const char *text;
    size_t len;
    struct err err;
    int r;
    bool freed = false, *outer = c->freed; /* a callback may read itself */
    c->freed = &freed;
    while ((r = frames_take(&c->in, &text, &len, &err)) == 1) {
        struct message m;
        if ((r = parse(c, text, len, &m, &err)) == 0)
            c->listener.message(c->listener.arg, &m);
        message_fini(&m);
        if (r || freed)
            break;
    }
    if (r < 0 && !freed) {
        err.code = -EPROTO;
        end(c, &err);
    }
    if (freed) {
        if (outer)
            *outer = true;
        return false;
    }
    c->freed = outer;
    return !c->ended;
}

static void end_of_file(struct carrier *c, int code) {
    struct err err;
    size_t left = frames_left(&c->in);
    if (code)
        err_set(&err, code, "hear what the helper says");
    else if (left)
        err_say(&err, -ECONNRESET, "it has gone in the middle of a message");
    else
        err_say(&err, -ECONNRESET, "it has gone");
    end(c, &err);
}

/* True: there may be more. */
static bool read_some(struct carrier *c) {
    static char bytes[READ_MAX];
    ssize_t n = read(c->ends.in, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        end_of_file(c, n < 0 && errno != ECONNRESET ? -errno : 0);
        return false;
    }
    c->heard_ns = clock_monotonic_ns();
    frames_hear(&c->in, bytes, (size_t)n);
    return tell_all(c);
}

static void on_in(void *arg, int fd, int what) {
    struct carrier *c = arg;
    for (int i = 0; i < READS_A_TURN && read_some(c); i++)
        ;
}

void carrier_read(struct carrier *c) {
    while (!c->ended && read_some(c))
        ;
}

/* ---- what is said ---- */

/* Returns 0, also when something waits, or a -errno. */
static int write_some(struct carrier *c) {
    while (c->out.len) {
        ssize_t n = write(c->ends.out, c->out.data, c->out.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        buf_consume(&c->out, (size_t)n);
    }
    return 0;
}

static void on_out(void *arg, int fd, int what) {
    struct carrier *c = arg;
    if (write_some(c) != 0)
        buf_clear(&c->out); /* its end is heard at the other descriptor */
    if (c->out.len)
        return;
    c->on_out = loop_source_free(c->on_out);
    if (c->listener.taken)
        c->listener.taken(c->listener.arg);
}

static int send_descriptors(struct carrier *c, const int *fds, size_t n, struct err *err) {
    if (c->ends.lane < 0)
        return err_say(err, -EOPNOTSUPP, "descriptors cannot be sent to another host");
    int r = descriptors_send(c->ends.lane, "d", 1, fds, n, 0);
    return r ? err_set(err, r, "send descriptors") : 0;
}

static void put(struct carrier *c, const struct buf *text, size_t fds_n) {
    BUF_FINI struct buf with = {0};
    if (fds_n) {
        buf_put(&with, text->data, text->len - 1);
        buf_printf(&with, ",\"fds\":%zu}", fds_n);
    }
    const struct buf *whole = fds_n ? &with : text;
    frame_put(&c->out, whole->data, whole->len);
}

static int may_send(const struct carrier *c, size_t n, struct err *err) {
    if (c->shut || c->ends.out < 0)
        return err_set(err, -EPIPE, "send a message");
    if (n > FRAME_MAX / 2 || c->out.len > WAITS_MAX)
        return err_set(err, -ENOBUFS, "send a message");
    return 0;
}

/* What the other end does not take now waits. */
static int begin_sending(struct carrier *c, struct err *err) {
    int r = write_some(c);
    if (r) {
        buf_clear(&c->out);
        return err_set(err, r, "send a message");
    }
    if (c->out.len && !c->on_out)
        c->on_out = loop_fd(c->loop, c->ends.out, LOOP_WRITE, on_out, c);
    return 0;
}

int carrier_send(struct carrier *c, const struct buf *text, const int *fds, size_t n,
                 struct err *err) {
    assert(n <= CHANNEL_FDS_MAX && text->len > 2 && text->data[text->len - 1] == '}');
    int r = may_send(c, text->len, err);
    if (r == 0 && n)
        r = send_descriptors(c, fds, n, err);
    if (r)
        return r;
    put(c, text, n);
    return begin_sending(c, err);
}

int carrier_send_bytes(struct carrier *c, const char *bytes, size_t n, struct err *err) {
    int r = may_send(c, n, err);
    if (r)
        return r;
    buf_put(&c->out, bytes, n);
    return begin_sending(c, err);
}

int64_t carrier_heard_ns(const struct carrier *c) {
    return c->heard_ns;
}

int carrier_flush(struct carrier *c, int timeout_ms) {
    int64_t until_ns = clock_monotonic_ns() + (int64_t)timeout_ms * 1000000;
    int r = 0;
    while (c->out.len && (r = write_some(c)) == 0 && c->out.len) {
        int64_t left_ns = until_ns - clock_monotonic_ns();
        struct pollfd p = {.fd = c->ends.out, .events = POLLOUT};
        if (left_ns <= 0)
            return -ETIME;
        poll(&p, 1, (int)(left_ns / 1000000) + 1);
    }
    return r;
}

void carrier_shut(struct carrier *c) {
    if (c->shut)
        return;
    c->shut = true;
    c->on_out = loop_source_free(c->on_out);
    if (c->ends.out == c->ends.in)
        shutdown(c->ends.out, SHUT_WR);
    else
        file_close(&c->ends.out);
}

/* ---- its life ---- */

static void never_wait(int fd) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

struct carrier *carrier_new(struct loop *l, const struct carrier_ends *ends,
                            const struct carrier_listener *listener) {
    struct carrier *c = mem_new(struct carrier);
    *c = (struct carrier){.ends = *ends, .listener = *listener, .loop = l};
    never_wait(ends->in);
    never_wait(ends->out);
    c->on_in = loop_fd(l, ends->in, LOOP_READ, on_in, c);
    return c;
}

struct carrier *carrier_free(struct carrier *c) {
    if (!c)
        return NULL;
    if (c->freed)
        *c->freed = true;
    loop_source_free(c->on_in);
    loop_source_free(c->on_out);
    carrier_ends_close(&c->ends);
    frames_fini(&c->in);
    buf_fini(&c->out);
    free(c);
    return NULL;
}

size_t carrier_waits(const struct carrier *c) {
    return c->out.len;
}

int carrier_in(const struct carrier *c) {
    return c->ends.in;
}

bool carrier_has_lane(const struct carrier *c) {
    return c->ends.lane >= 0;
}
