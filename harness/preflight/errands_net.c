/* What one host does with another over TCP: answers it, reaches it, measures the way to it, and adds up
 * numbers in a ring. */
#include "harness/preflight/outpost.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ADDRESSES = 8, PART = 1 << 17, RING_MAX = 1 << 20, PORTS_MAX = 32 };
enum { LANES = 16, LANE_MAX = 4 << 20 };
static const int64_t MS = 1000000;

/* ---- bytes with a deadline; 0 or a -errno ---- */

static int wait_for(int fd, short what, int64_t until_ns) {
    struct pollfd p = {.fd = fd, .events = what};
    for (;;) {
        int64_t left = until_ns - clock_monotonic_ns();
        int r = poll(&p, 1, left > 0 ? (int)(left / MS) + 1 : 0);
        if (r > 0)
            return 0;
        if (r == 0 && clock_monotonic_ns() >= until_ns)
            return -ETIMEDOUT;
        if (r < 0 && errno != EINTR)
            return -errno;
    }
}

static int send_all(int fd, const void *data, size_t n, int64_t until_ns) {
    for (size_t at = 0; at < n;) {
        ssize_t k = send(fd, (const char *)data + at, n - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k > 0)
            at += (size_t)k;
        else if (k < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        else if (wait_for(fd, POLLOUT, until_ns) < 0)
            return -ETIMEDOUT;
    }
    return 0;
}

static int receive_all(int fd, void *data, size_t n, int64_t until_ns) {
    for (size_t at = 0; at < n;) {
        ssize_t k = recv(fd, (char *)data + at, n - at, MSG_DONTWAIT);
        if (k > 0)
            at += (size_t)k;
        else if (k == 0)
            return -ECONNRESET;
        else if (errno != EAGAIN && errno != EINTR)
            return -errno;
        else if (wait_for(fd, POLLIN, until_ns) < 0)
            return -ETIMEDOUT;
    }
    return 0;
}

static int connect_to(const struct json *to, int64_t until_ns, int *ret) {
    struct tcp_endpoint e = {.port = (uint16_t)json_get_i64(to, "port", 0)};
    struct tcp_address found[ADDRESSES];
    int one = 1, r = -EHOSTUNREACH;
    str_copy(e.host, sizeof(e.host), json_get_string(to, "host", ""));
    int n = tcp_resolve(&e, found, ADDRESSES, NULL);
    if (n < 0)
        return n;
    for (int i = 0; i < n && r < 0; i++) {
        FILE_CLOSE int fd = -1;
        r = tcp_connect(&found[i], &fd);
        r = r < 0 ? r : wait_for(fd, POLLOUT, until_ns);
        r = r < 0 ? r : tcp_connected(fd);
        if (r == 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
            *ret = file_keep(&fd);
        }
    }
    return r;
}

/* ---- the server, a process beside us: 'e' sends back what comes, 's' counts it ---- */

static void serve_one(int fd) {
    char *part = mem_alloc(PART, 1), kind = 0;
    uint64_t seen = 0;
    ssize_t n = read(fd, &kind, 1);
    while (n > 0 && (n = read(fd, part, PART)) > 0) {
        seen += (uint64_t)n;
        if (kind == 'e' && file_write_all(fd, part, (size_t)n, NULL) < 0)
            break;
    }
    if (kind == 's')
        file_write_all(fd, &seen, sizeof(seen), NULL);
    _exit(0);
}

static void serve(const int *fds, size_t n) {
    struct pollfd p[PORTS_MAX];
    int one = 1;
    signal(SIGCHLD, SIG_IGN);
    for (size_t i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    for (;;) {
        if (poll(p, n, -1) < 0 && errno != EINTR)
            _exit(1);
        for (size_t i = 0; i < n; i++) {
            int fd = accept4(fds[i], NULL, NULL, SOCK_CLOEXEC);
            if (fd < 0)
                continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
            pid_t child = fork();
            if (child == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                serve_one(fd);
            }
            close(fd);
        }
    }
}

static pid_t start_server(const int *fds, size_t n) {
    pid_t own = getpid(), child = fork();
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != own)
        _exit(1);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    serve(fds, n);
    _exit(0);
}

void outpost_end_server(struct outpost *o) {
    if (!o->server)
        return;
    kill(o->server, SIGKILL);
    waitpid(o->server, NULL, 0);
    o->server = 0;
}

/* {"ports": [29400]}; none: one that is free. */
static void run_listen(struct outpost *o, const struct json *asked, struct json_writer *w) {
    const struct json *ports = json_get(asked, "ports");
    int fds[PORTS_MAX];
    size_t n = 0;
    json_array(w, "ports");
    const struct json *port = json_first(ports);
    int r = 0;
    int64_t bad = 0;
    outpost_end_server(o);
    do {
        uint16_t got = 0;
        int64_t wanted = json_i64(port, 0);
        r = n < PORTS_MAX ? tcp_listen(TCP_ANYWHERE, (uint16_t)wanted, 128, &fds[n], &got, NULL)
                          : -E2BIG;
        bad = r < 0 ? wanted : bad;
        if (r == 0) {
            json_put_i64(w, NULL, got);
            n++;
        }
    } while (port && (port = port->next) && r == 0);
    json_end_array(w);
    if (r == 0)
        o->server = start_server(fds, n);
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    if (r < 0)
        errand_failed(w, r, "listen at port %lld", (long long)bad);
}

/* ---- reaching and measuring ---- */

static int exchange(int fd, const char *text, int64_t until_ns) {
    char back[64] = "";
    size_t n = strlen(text);
    int r = send_all(fd, "e", 1, until_ns);
    r = r < 0 ? r : send_all(fd, text, n, until_ns);
    r = r < 0 ? r : receive_all(fd, back, n, until_ns);
    return r < 0 ? r : strcmp(back, text) == 0 ? 0 : -EBADMSG;
}

static void reach_one(const struct json *to, int64_t within_ns, struct json_writer *w) {
    FILE_CLOSE int fd = -1;
    int64_t until = clock_monotonic_ns() + within_ns;
    int r = connect_to(to, until, &fd);
    r = r < 0 ? r : exchange(fd, "rankquake?", until);
    if (r == 0)
        return;
    json_object(w, NULL);
    json_put_string(w, "host", json_get_string(to, "name", "?"));
    json_put_i64(w, "port", json_get_i64(to, "port", 0));
    json_put_string(w, "why", strerror(-r));
    json_end_object(w);
}

/* One of LANES: every LANES-th of the peers. */
static void reach_lane(const struct json *asked, size_t lane, int fd) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    int64_t within_ns = json_get_i64(asked, "within_ms", 3000) * MS;
    size_t i = 0;
    json_array(&w, NULL);
    json_each(to, json_get(asked, "to")) if (i++ % LANES == lane) reach_one(to, within_ns, &w);
    json_end_array(&w);
    file_write_all(fd, out.data, out.len, NULL);
}

/* The descriptor from which its list is read; -1: why is in errno. */
static int start_lane(const struct json *asked, size_t lane, pid_t *ret) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    *ret = fork();
    if (*ret == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        reach_lane(asked, lane, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (*ret > 0)
        return ends[0];
    close(ends[0]);
    return -1;
}

static bool end_lane(int fd, pid_t child, struct json_writer *w) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf text = {0};
    file_read_fd(fd, LANE_MAX, &text, NULL);
    close(fd);
    waitpid(child, NULL, 0);
    const struct json *list = json_parse(&a, buf_str(&text), text.len, NULL);
    json_each(failed, list) json_put_tree(w, NULL, failed);
    return list;
}

/* {"to": [{"host", "port"}], "within_ms"}: "failed" lists those that were not reached. Several at a time, each in
 * a process: one that does not answer, or a name that nobody resolves, holds up its own lane. */
static void run_reach(struct outpost *o, const struct json *asked, struct json_writer *w) {
    size_t peers = json_get(asked, "to") ? json_get(asked, "to")->length : 0;
    size_t lanes = peers < LANES ? peers : LANES;
    pid_t children[LANES];
    int fds[LANES], r = 0;
    (void)o;
    for (size_t i = 0; i < lanes; i++)
        if ((fds[i] = start_lane(asked, i, &children[i])) < 0)
            r = -errno;
    json_array(w, "failed");
    for (size_t i = 0; i < lanes; i++)
        if (fds[i] >= 0 && !end_lane(fds[i], children[i], w))
            r = -EPIPE;
    json_end_array(w);
    if (r < 0)
        errand_failed(w, r, "reach the others in %zu processes", lanes);
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int measure_latency(const struct json *to, int64_t until, int64_t *ret_ns) {
    enum { TIMES = 21 };
    int64_t took[TIMES];
    FILE_CLOSE int fd = -1;
    char byte = 'x';
    int r = connect_to(to, until, &fd);
    r = r < 0 ? r : send_all(fd, "e", 1, until);
    for (size_t i = 0; i < TIMES && r == 0; i++) {
        int64_t began = clock_monotonic_ns();
        r = send_all(fd, &byte, 1, until);
        r = r < 0 ? r : receive_all(fd, &byte, 1, until);
        took[i] = clock_monotonic_ns() - began;
    }
    if (r < 0)
        return r;
    qsort(took, TIMES, sizeof(*took), by_number);
    *ret_ns = took[TIMES / 2];
    return 0;
}

/* Until so long has passed or so much been sent, whichever comes first. */
static int measure_rate(const struct json *to, int64_t until, double *ret_mb_s) {
    int64_t lasting = json_get_i64(to, "lasting_ms", 100) * MS;
    int64_t most = json_get_i64(to, "bytes", INT64_MAX), sent = 0;
    FILE_CLOSE int fd = -1;
    char *part = mem_alloc(PART, 1);
    uint64_t seen = 0;
    int r = connect_to(to, until, &fd);
    r = r < 0 ? r : send_all(fd, "s", 1, until);
    int64_t began = clock_monotonic_ns();
    for (; r == 0 && sent < most && clock_monotonic_ns() - began < lasting; sent += PART)
        r = send_all(fd, part, PART, until);
    if (r == 0 && shutdown(fd, SHUT_WR) < 0)
        r = -errno;
    r = r < 0 ? r : receive_all(fd, &seen, sizeof(seen), until);
    *ret_mb_s = (double)seen / 1e6 / ((double)(clock_monotonic_ns() - began) / 1e9);
    free(part);
    return r;
}

/* {"host", "port", "lasting_ms", "bytes", "within_ms"} */
static void run_measure(struct outpost *o, const struct json *asked, struct json_writer *w) {
    int64_t latency = 0, until = clock_monotonic_ns() + json_get_i64(asked, "within_ms", 5000) * MS;
    double rate = 0;
    (void)o;
    int r = measure_latency(asked, until, &latency);
    r = r < 0 ? r : measure_rate(asked, until, &rate);
    if (r < 0) {
        json_put_string(w, "failed", strerror(-r));
        return;
    }
    json_put_i64(w, "latency_ns", latency);
    json_put_i64(w, "kb_s", (int64_t)(rate * 1e3));
}

/* ---- an all-reduce ---- */

static void run_ring_listen(struct outpost *o, const struct json *asked, struct json_writer *w) {
    uint16_t port = 0;
    (void)asked;
    file_close(&o->ring);
    int r = tcp_listen(TCP_ANYWHERE, 0, 1, &o->ring, &port, NULL);
    if (r < 0)
        errand_failed(w, r, "listen");
    else
        json_put_i64(w, "port", port);
}

struct sum_ring {
    uint64_t *v, *in;
    size_t count, ranks, rank;
    int to, from;
    int64_t until_ns;
};

/* Chunk k of the vector. */
static size_t chunk(const struct sum_ring *g, size_t k, size_t *ret_n) {
    size_t first = g->count * k / g->ranks;
    *ret_n = g->count * (k + 1) / g->ranks - first;
    return first;
}

/* Sends one and receives another at the same time: both are larger than a socket holds. */
static int swap(const struct sum_ring *g, const char *out, size_t out_n, char *in, size_t in_n) {
    size_t sent = 0, got = 0;
    while (sent < out_n || got < in_n) {
        struct pollfd p[2] = {{.fd = sent < out_n ? g->to : -1, .events = POLLOUT},
                              {.fd = got < in_n ? g->from : -1, .events = POLLIN}};
        int64_t left = g->until_ns - clock_monotonic_ns();
        if (left <= 0)
            return -ETIMEDOUT;
        if (poll(p, 2, (int)(left / MS) + 1) < 0 && errno != EINTR)
            return -errno;
        ssize_t k =
            p[0].revents ? send(g->to, out + sent, out_n - sent, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        if (k < 0 && errno != EAGAIN)
            return -errno;
        sent += k > 0 ? (size_t)k : 0;
        k = p[1].revents ? recv(g->from, in + got, in_n - got, MSG_DONTWAIT) : -1;
        if (k == 0)
            return -ECONNRESET;
        if (k < 0 && p[1].revents && errno != EAGAIN)
            return -errno;
        got += k > 0 ? (size_t)k : 0;
    }
    return 0;
}

/* First each chunk is added up on its way around, then each sum goes around. */
static int all_reduce(const struct sum_ring *g) {
    size_t n = g->ranks, out_n, in_n;
    for (size_t step = 0; step < 2 * (n - 1); step++) {
        bool adds = step < n - 1;
        size_t k = adds ? step : step - (n - 1);
        size_t out = chunk(g, (g->rank + (adds ? 0 : 1) + n - k % n) % n, &out_n);
        size_t in = chunk(g, (g->rank + (adds ? 0 : 1) + 2 * n - 1 - k) % n, &in_n);
        int r = swap(g, (char *)(g->v + out), out_n * sizeof(*g->v), (char *)g->in,
                     in_n * sizeof(*g->in));
        if (r < 0)
            return r;
        for (size_t i = 0; i < in_n; i++)
            g->v[in + i] = (adds ? g->v[in + i] : 0) + g->in[i];
    }
    return 0;
}

static uint64_t part_of(size_t rank, size_t i) {
    return (rank + 1) * UINT64_C(1000003) + i * UINT64_C(2654435761);
}

static size_t count_wrong(const struct sum_ring *g) {
    size_t wrong = 0;
    uint64_t ranks = g->ranks;
    for (size_t i = 0; i < g->count; i++) {
        uint64_t right =
            ranks * (ranks + 1) / 2 * UINT64_C(1000003) + ranks * i * UINT64_C(2654435761);
        wrong += g->v[i] != right;
    }
    return wrong;
}

static int join(struct outpost *o, const struct json *asked, struct sum_ring *g) {
    int r = connect_to(asked, g->until_ns, &g->to);
    r = r < 0 ? r : wait_for(o->ring, POLLIN, g->until_ns);
    if (r == 0 && (g->from = accept4(o->ring, NULL, NULL, SOCK_CLOEXEC)) < 0)
        r = -errno;
    return r;
}

/* {"rank", "ranks", "count", "host", "port": of the next, "within_ms"}; behind ring-listen. */
static void run_ring(struct outpost *o, const struct json *asked, struct json_writer *w) {
    struct sum_ring g = {.to = -1, .from = -1};
    g.rank = (size_t)json_get_i64(asked, "rank", 0);
    g.ranks = (size_t)json_get_i64(asked, "ranks", 1);
    g.count = (size_t)json_get_i64(asked, "count", 1024);
    g.until_ns = clock_monotonic_ns() + json_get_i64(asked, "within_ms", 5000) * MS;
    if (g.count > RING_MAX || g.ranks < 2 || g.rank >= g.ranks) {
        json_put_string(w, "error", "no such ring");
        return;
    }
    g.v = mem_array(uint64_t, g.count);
    g.in = mem_array(uint64_t, g.count / g.ranks + 1);
    for (size_t i = 0; i < g.count; i++)
        g.v[i] = part_of(g.rank, i);
    int64_t began = clock_monotonic_ns();
    int r = join(o, asked, &g);
    r = r < 0 ? r : all_reduce(&g);
    if (r < 0)
        json_put_string(w, "failed", strerror(-r));
    else
        json_put_i64(w, "wrong", (int64_t)count_wrong(&g));
    json_put_i64(w, "us", (clock_monotonic_ns() - began) / 1000);
    file_close(&g.to);
    file_close(&g.from);
    file_close(&o->ring);
    free(g.v);
    free(g.in);
}

const struct errand errands_net[] = {
    {"listen", run_listen, false},   {"reach", run_reach, false},
    {"measure", run_measure, false}, {"ring-listen", run_ring_listen, false},
    {"ring", run_ring, false},       {0}};
