/* What clients send to the embedded store, as bytes on their connections, for AFL++: evhttp's
 * parser and what stands around it, in front of the handlers that tests/fuzz/input.c asks. The
 * server, its sockets and its loop are the real ones, in this process.
 *
 * The first byte of an input says how its clients behave. What follows is sent as it is, except
 * that a ~ begins an order (obey below), which says where a write ends, that the next connection
 * begins, and so on.
 *
 * Nothing may crash or leak; memory is bounded while it goes on; who has said all ends, one way or
 * the other; and two good clients, a reader and a watcher that were there before, are served
 * afterwards. */
#include "agent/core/kv.h"
#include "agent/store/server.h"
#include "base/sys/clock.h"
#include "base/sys/tcp.h"
#include "tests/fuzz/fuzzed.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

enum {
    CLIENTS_MAX = 6,
    SENT_MAX = 256 << 10, /* by the clients of one input together */
    TURNS = 4, /* of the loop, in which the server takes what was sent, answers and tells the
                  watchers */
    HELD_MAX = 64 << 10,
    KEPT_MAX = 64 << 10,
    MEMORY_MAX = 4 << 20, /* of all that the server has between two turns */
};
static const int64_t REQUEST_NS = 30000000000, SLOW_REQUEST_NS = 2000000, LIMIT_NS = 60000000000;

/* Of the first byte. */
enum {
    HOW_SLOW = 1,  /* clients wait for the server to end what they have not said in full */
    HOW_DEAF = 2,  /* they read nothing until they have said all */
    HOW_TOKEN = 4, /* the server wants one */
};
#define TOKEN "s3cret"

/* Of a sanitizer's allocator; NULL without one. */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void) {
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : 0;
}

static void must(bool holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* ---- a client ---- */

struct client {
    int fd;
    struct loop_source *source;
    struct buf in; /* of a good one: what came */
    bool good;
    bool ended; /* by the server */
};

struct scene {
    struct loop *loop;
    struct kv *kv;
    struct server *server;
    struct client reader, watcher;
    struct client clients[CLIENTS_MAX];
    int n_clients;
    struct buf out; /* what the last client writes next */
    size_t sent;
    size_t allocated; /* before all */
    unsigned how;
    bool late;
};

static void on_readable(void *arg, int fd, int what) {
    struct client *c = arg;
    char bytes[4096];
    (void)what;
    ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    if (n > 0 && c->good)
        buf_put(&c->in, bytes, (size_t)n);
    c->ended = n == 0 || (n < 0 && errno != EAGAIN);
    if (c->ended)
        c->source = loop_source_free(c->source);
}

static void client_open(struct scene *s, struct client *c, bool reads) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(server_port(s->server)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(connect(c->fd, (struct sockaddr *)&a, sizeof(a)) == 0, "the store does not listen");
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->source = loop_fd(s->loop, c->fd, reads ? LOOP_READ : 0, on_readable, c);
}

static void client_close(struct client *c) {
    loop_source_free(c->source);
    if (c->fd >= 0)
        tcp_close_as_broken(&c->fd); /* so that no port waits for its end */
    buf_fini(&c->in);
}

/* What the kernel does not take at once nobody waits for. */
static void client_send(const struct client *c, const char *bytes, size_t n) {
    if (send(c->fd, bytes, n, MSG_NOSIGNAL) < 0)
        return;
}

/* ---- time ---- */

/* The server has had its turns, and has not grown. */
static void turn(struct scene *s) {
    for (int i = 0; i < TURNS; i++)
        event_base_loop(loop_base(s->loop), EVLOOP_NONBLOCK);
    must(server_held(s->server) <= HELD_MAX, "the server holds more than its limit");
    must(allocated() <= s->allocated + MEMORY_MAX, "memory grows");
}

static void on_late(void *arg, int64_t now_ns) {
    struct scene *s = arg;
    (void)now_ns;
    s->late = true;
}

typedef bool holds_fn(const struct scene *s);

static void await(struct scene *s, holds_fn *holds, const char *what) {
    struct loop_source *limit = loop_timer(s->loop, on_late, s);
    loop_timer_at(limit, clock_monotonic_ns() + LIMIT_NS);
    s->late = false;
    while (!holds(s) && !s->late)
        event_base_loop(loop_base(s->loop), EVLOOP_ONCE);
    must(holds(s), what);
    loop_source_free(limit);
}

/* ---- the good clients ---- */

/* All that came is one answer with 200 and its whole body. */
static bool reader_is_answered(const struct scene *s) {
    static const char length[] = "Content-Length: ";
    const char *in = buf_str(&s->reader.in), *body = strstr(in, "\r\n\r\n");
    if (s->reader.ended)
        return true;
    const char *n = body ? strstr(in, length) : NULL;
    return n && strlen(body + 4) >= strtoul(n + strlen(length), NULL, 10);
}

static bool watcher_is_told(const struct scene *s) {
    return s->watcher.ended || strstr(buf_str(&s->watcher.in), "\"events\"");
}

static bool watcher_is_there(const struct scene *s) {
    return s->watcher.ended || strstr(buf_str(&s->watcher.in), "\"created\"");
}

static void ask(const struct client *c, const char *path, const char *body) {
    struct buf text = {0};
    buf_printf(&text,
               "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " TOKEN
               "\r\nContent-Length: %zu\r\n\r\n%s",
               path, strlen(body), body);
    client_send(c, text.data, text.len);
    buf_fini(&text);
}

/* Returns the status. */
static long reader_ask(struct scene *s, const char *path, const char *body) {
    buf_clear(&s->reader.in);
    ask(&s->reader, path, body);
    await(s, reader_is_answered, "a good client is not answered");
    must(!s->reader.ended, "a good client was cut off");
    const char *in = buf_str(&s->reader.in);
    must(strncmp(in, "HTTP/1.1 ", 9) == 0, "a good client is answered with what is no HTTP");
    return strtol(in + 9, NULL, 10);
}

static void begin_good(struct scene *s) {
    s->reader.good = s->watcher.good = true;
    client_open(s, &s->reader, true);
    client_open(s, &s->watcher, true);
    ask(&s->watcher, "/v3/watch", "{\"create_request\":{\"key\":\"Z29vZA==\"}}");
    await(s, watcher_is_there, "a good watch is not begun");
}

/* The store may be full by now; then what is written is refused, and read it is. */
static void check_good(struct scene *s) {
    must(reader_ask(s, "/v3/kv/range", "{\"key\":\"Z29vZA==\"}") == 200,
         "a good client is refused");
    if (reader_ask(s, "/v3/kv/put", "{\"key\":\"Z29vZA==\"}") == 200)
        await(s, watcher_is_told, "a good watch is not told");
    must(!s->watcher.ended, "a good watch was cut off");
}

/* ---- the others ---- */

static struct client *last(struct scene *s) {
    return &s->clients[s->n_clients - 1];
}

static void next_client(struct scene *s) {
    if (s->n_clients < CLIENTS_MAX)
        client_open(s, &s->clients[s->n_clients++], !(s->how & HOW_DEAF));
}

/* What would be written next becomes so many times of it. */
static void repeat(struct scene *s, unsigned times) {
    struct buf all = {0};
    for (unsigned i = 0; i < times && all.len + s->out.len <= SENT_MAX; i++)
        buf_put(&all, buf_str(&s->out), s->out.len);
    buf_fini(&s->out);
    s->out = all;
}

static void write_out(struct scene *s) {
    size_t left = SENT_MAX - s->sent, n = s->out.len < left ? s->out.len : left;
    if (n)
        client_send(last(s), buf_str(&s->out), n);
    s->sent += n;
    buf_clear(&s->out);
    turn(s);
}

static void put_end(struct scene *s, bool own) {
    char ends[2][TCP_ENDS_MAX];
    if (tcp_ends(last(s)->fd, ends[0], ends[1]) == 0)
        buf_puts(&s->out, ends[own ? 0 : 1]);
}

/* What a ~ and this byte mean; nothing, where it is none of these. */
static void obey(struct scene *s, char order, unsigned char n) {
    switch (order) {
    case '~':
        buf_putc(&s->out, order);
        break;
    case '|': /* here ends a write */
        write_out(s);
        break;
    case '*': /* what would be written next, n times; n is the next byte */
        repeat(s, n);
        break;
    case '<': /* the client's address, as it sees it; */
    case '>': /* the server's */
        put_end(s, order == '<');
        break;
    case '.': /* this client has said all */
        write_out(s);
        shutdown(last(s)->fd, SHUT_WR);
        turn(s);
        break;
    case '+': /* the next client, while this one stays */
        write_out(s);
        next_client(s);
        break;
    default:
        break;
    }
}

static void play_script(struct scene *s, const char *bytes, size_t n) {
    next_client(s);
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != '~' || i + 1 == n) {
            buf_putc(&s->out, bytes[i]);
        } else {
            char order = bytes[++i];
            bool counts = order == '*' && i + 1 < n;
            obey(s, order, counts ? (unsigned char)bytes[++i] : 1);
        }
    write_out(s);
}

/* ---- the end ---- */

/* Of who has ended something may still count as held (agent/store/limits/ledger.h): then it cannot
 * be told. */
static bool nobody_is_waited_for(const struct scene *s) {
    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i].ended)
            return true;
    return server_held(s->server) == 0;
}

static bool all_have_ended(const struct scene *s) {
    for (int i = 0; i < s->n_clients; i++)
        if (!s->clients[i].ended)
            return false;
    return server_watches(s->server) == 1 && server_lifelines(s->server) == 0;
}

static void end_others(struct scene *s) {
    if (s->how & HOW_SLOW)
        await(s, nobody_is_waited_for, "a request that never ends is waited for");
    for (int i = 0; i < s->n_clients; i++) {
        if (s->clients[i].source)
            loop_fd_set(s->clients[i].source, LOOP_READ);
        shutdown(s->clients[i].fd, SHUT_WR);
    }
    await(s, all_have_ended, "a connection outlives its client");
}

static void scene_begin(struct scene *s, unsigned how) {
    *s = (struct scene){.allocated = allocated(),
                        .how = how & HOW_SLOW ? how & ~(unsigned)HOW_DEAF : how};
    const struct server_limits limits = {.held_max = HELD_MAX,
                                         .runs_max = KEPT_MAX,
                                         .others_max = KEPT_MAX,
                                         .history_max = KEPT_MAX,
                                         .request_ns =
                                             how & HOW_SLOW ? SLOW_REQUEST_NS : REQUEST_NS};
    s->loop = loop_new(NULL);
    s->kv = kv_new(1, 16);
    s->server = server_new(s->loop, s->kv, "127.0.0.1", 0, NULL);
    must(s->server, "the store cannot listen");
    server_limit(s->server, &limits);
    if (how & HOW_TOKEN)
        server_demand(s->server, TOKEN);
    begin_good(s);
}

static void scene_end(struct scene *s) {
    client_close(&s->reader);
    client_close(&s->watcher);
    for (int i = 0; i < s->n_clients; i++)
        client_close(&s->clients[i]);
    server_free(s->server);
    kv_free(s->kv);
    loop_free(s->loop);
    buf_fini(&s->out);
}

/* Returns how much is there that was not before. */
static size_t play(const char *bytes, size_t n) {
    static struct scene s;
    scene_begin(&s, (unsigned char)*bytes);
    play_script(&s, bytes + 1, n - 1);
    end_others(&s);
    check_good(&s);
    scene_end(&s);
    return allocated() > s.allocated ? allocated() - s.allocated : 0;
}

/* What is kept for good, by a library as by us, is kept once. */
static void take(const char *bytes, size_t n) {
    if (n > 0 && play(bytes, n) && play(bytes, n))
        must(play(bytes, n) == 0, "memory is lost");
}

static void on_fatal(int code) {
    (void)code;
    abort(); /* of libevent, which would exit as if nothing were wrong */
}

static void on_log(int severity, const char *text) {
    (void)severity, (void)text;
}

static void begin(void) {
    signal(SIGPIPE, SIG_IGN); /* as whoever serves a store does */
    event_set_fatal_callback(on_fatal);
    event_set_log_callback(on_log);
}

/* ---- where it begins ---- */

/* The first byte is a digit, and \n stands for \r\n. */
static const char *const seeds[] = {
    /* In pieces, and three on one connection. */
    "0POST /v3/kv/p~|ut HTTP/1.1\nHost: x\nContent-Len~|gth: 29\n\n"
    "{\"key\":\"YQ==\"~|,\"value\":\"Yg==\"}~|"
    "POST /v3/kv/range HTTP/1.1\nHost: x\nContent-Length: 14\n\n"
    "{\"key\":\"YQ==\"}"
    "POST /v3/kv/txn HTTP/1.1\nHost: x\nContent-Length: 2\n\n"
    "{}",
    /* In chunks, with extensions, trailers and sizes that are none. */
    "0POST /v3/kv/put HTTP/1.1\nTransfer-Encoding: chunked\n\n"
    "6\n{\"key\"\n~|17 ;x=y\n:\"YQ==\",\"value\":\"Yg==\"}\n0\nX-After: 1\n\n~|"
    "POST /v3/kv/put HTTP/1.1\nTransfer-Encoding: chunked\n\n"
    "7FFFFFFFFFFFFFFF\n",
    "0POST /v3/kv/range HTTP/1.1\nTransfer-Encoding: chunked\n\n"
    "00000e \n{\"key\":\"YQ==\"}\n0\n\n~|"
    "POST /v3/kv/range HTTP/1.1\nTransfer-Encoding: chunked\n\n"
    "-1\n{}\n0\n\n",
    /* Headers without end, many of them, folded, and without a name. */
    "1GET /metrics HTTP/1.1\nX-Long: ~|yyyyyyyyyyyyyyyy~*\xff~*\x05~|\n\n",
    "0GET /metrics HTTP/1.1\n~|A: b\n~*\xff\n~|GET /metrics HTTP/1.1\nX: 1\n 2\n\t3\n: 4\nHost\n\n",
    /* Other methods, versions, targets and wishes. */
    "0HEAD / HTTP/1.0\nConnection: keep-alive\n\n~+"
    "PUT http://u:p@h:99/v3/kv/put?a=b#c HTTP/1.1\nExpect: 100-continue\nContent-Length: 2\n\n"
    "~|{}~+CONNECT h:1 HTTP/1.1\n\n~+OPTIONS * HTTP/1.1\n\n~+GET /metrics\n\n",
    "0POST /v3/kv/%72ange HTTP/1.1\nConnection: close\nExpect: tea\nContent-Length: 2\n\n"
    "{}~+POST / HTTP/1.1\nContent-Length: 99999999\n\n"
    "{~+POST / HTTP/1.1\nContent-Length: -5\n\n"
    "{~+POST / HTTP/1.1\nContent-Length: 2\nContent-Length: 3\n\n"
    "{}~.~+GET / HTTP/9.9\n\n",
    /* Watches: one that is said more to, one whose client has said all, and nobody reads. */
    "2POST /v3/watch HTTP/1.1\nContent-Length: 33\n\n"
    "{\"create_request\":{\"key\":\"YQ==\"}}~|"
    "POST /v3/kv/put HTTP/1.1\nContent-Length: 14\n\n"
    "{\"key\":\"YQ==\"}~+"
    "POST /v3/kv/put HTTP/1.1\nContent-Length: 14\n\n"
    "{\"key\":\"YQ==\"}~+"
    "POST /v3/watch HTTP/1.1\nContent-Length: 33\n\n"
    "{\"create_request\":{\"key\":\"YQ==\"}}~.",
    /* A lifeline, and what may not follow one. */
    "0POST /v3/rankrun/lifeline HTTP/1.1\nTransfer-Encoding: chunked\n\n"
    "8f\n{\"run_id\":\"r\",\"inc\":\"0123456789abcdef\",\"uid\":"
    "\"0123456789abcdef0123456789abcdef\","
    "\"revision\":\"1\",\"from\":\"~<\",\"to\":\"~>\"}\n0\n\n~|POST",
    /* Never said in full; with a token, and without. */
    "1POST /v3/kv/put HTTP/1.1\nContent-Length: 2000\n\n{\"key\":\"~|YQ==~*x",
    "4POST /v3/kv/range HTTP/1.1\nAuthorization: Bearer s3cret\nContent-Length: 14\n\n"
    "{\"key\":\"YQ==\"}~|"
    "POST /v3/kv/range HTTP/1.1\nContent-Length: 14\n\n"
    "{\"key\":\"YQ==\"}",
    /* More than the server may hold. */
    "0POST /v3/kv/put HTTP/1.1\nContent-Length: 999999\n\n~|0123456789abcdef~*\xff~*\x10~+"
    "POST /v3/kv/put HTTP/1.1\nContent-Length: 999999\n\n~|0123456789abcdef~*\xff~*\x20",
    /* Much of little: requests without end on one connection, whose answers nobody takes. */
    "2POST /v3/kv/put HTTP/1.1\nContent-Length: 41\n\n"
    "{\"key\":\"YQ==\",\"value\":\"eHh4eHh4eHh4eHh4\"}~|GET /metrics HTTP/1.1\n\n~*\xff",
    /* No HTTP at all. */
    "0\x16\x03\x01\x05\x01~+\x05init/\n\n~+\n\n\nGET",
};

static void put_seed(int i, struct buf *out) {
    for (const char *c = seeds[i]; *c; c++)
        buf_puts(out, *c == '\n' ? "\r\n" : (char[]){*c, '\0'});
}

int main(int argc, char **argv) {
    static const struct fuzzed connections = {begin, take, put_seed,
                                              sizeof(seeds) / sizeof(*seeds)};
    return fuzzed_main(&connections, argc, argv);
}
