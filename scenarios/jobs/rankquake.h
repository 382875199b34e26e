/* rankquake.h: lets a training job tell RankQuake what it is doing. One file, nothing to link.
 *
 *     struct rankquake q;
 *     rankquake_open(&q);                 // does nothing unless run under rankquake
 *     rankquake_ready(&q);
 *     for (step = 1; step <= steps; step++) {
 *         train(...);
 *         rankquake_step(&q, step, loss, samples, shards, n_shards);
 *     }
 *     rankquake_done(&q, model_sha256);
 *     rankquake_close(&q);
 *
 * Without RANKQUAKE_EVENTS in the environment nothing happens and nothing is paid. When the harness
 * dies the client goes silent and the job runs on. When it is stopped, as on a virtual machine that
 * is paused, whoever opens waits for it, for RANKQUAKE_WAIT seconds at most: the job stands still
 * rather than train unseen. Nothing here prints, exits or raises a signal.
 *
 * C99 or C++11, Linux. Not thread-safe: use a handle from one thread at a time. One connection per
 * process: its end is how the harness sees the end of the process, so close it only at the end. A
 * child made by fork must open its own; with the parent's handle it stays silent.
 *
 * The protocol, version 1
 * -----------------------
 * RANKQUAKE_EVENTS is the path of an AF_UNIX SOCK_SEQPACKET socket, or its abstract name behind an
 * @, where its path would be too long (unix(7)). After connect() the server
 * sends one byte 'P' that carries, by SCM_RIGHTS, a memfd: the page (struct rankquake_page),
 * written by the harness, read-only here. Then the client sends one JSON object of at most 4096
 * bytes per message:
 *
 *     {"v":1,"seq":7,"lost":0,"kind":"step","step":137,"loss":0.41,"samples":48,"shards":[0,1,2]}
 *
 * seq counts from 1 every event tried on this connection, lost those of them that could not be sent
 * so far: sends never block, a slow reader must not hang the job. An event is armed when the page
 * has the bit of its kind and, for a step, the step has reached next_step (0: any). An armed event
 * carries "armed":ARMED_SEQ as well, is sent even if that has to wait, and the client then blocks
 * until it reads one byte ('G'): this is how a fault hits a job at an exact step. Nothing else is
 * ever answered.
 *
 * Two bits of the page's kinds are no events but what the scenario asks for besides (enum
 * rankquake_ask), since it costs time: with RANKQUAKE_ASK_WEIGHTS a step carries
 * "weights":"0123456789abcdef", at most 64 characters that are equal only where the weights are;
 * with RANKQUAKE_ASK_SAMPLES events
 *     {"kind":"samples","step":137,"epoch":1,"of":60000,"ids":[17,4,59998]}
 * come before a step: the samples that this process has trained for it, each by the number that it
 * has in the data set, in as many messages as it takes; epochs count from 0, and of is how many
 * different samples an epoch trains on all ranks together.
 *
 * Every process that is given RANK and WORLD_SIZE is a worker, also one that a worker has started. The
 * harness reads them when a process connects, from what its program was started with. What a
 * process has set since (a fork, then setenv) it cannot see; so rankquake_open says it, and
 * rankquake_rank for ranks that know themselves by arguments:
 *     {"kind":"rank","env":{"RANK":"1","WORLD_SIZE":"2",..}}
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANKQUAKE_H
#define RANKQUAKE_H

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RANKQUAKE_VERSION_OF_PAGE = 1,
    RANKQUAKE_MESSAGE_MAX = 4096,  /* bytes */
    RANKQUAKE_OPEN_WAIT_MS = 5000, /* for the server to accept, then for its page */
    RANKQUAKE_OPEN_WAIT_MAX_MS = 86400000
};

/* The kinds; the value is the bit in rankquake_page.kinds. */
enum rankquake_kind {
    RANKQUAKE_READY = 0,            /* set up, before the first connection to a peer */
    RANKQUAKE_FIRST_COLLECTIVE = 1, /* about to begin the first collective of this process */
    RANKQUAKE_STEP = 2,             /* update `step` has been applied, the next not begun */
    RANKQUAKE_CHECKPOINT_BEGIN = 3,
    RANKQUAKE_CHECKPOINT_WRITE = 4,  /* bytes written, neither synced nor renamed */
    RANKQUAKE_CHECKPOINT_COMMIT = 5, /* it is complete and durable */
    RANKQUAKE_RESUME = 6,
    RANKQUAKE_EXIT_BARRIER = 7, /* all work done, about to leave together */
    RANKQUAKE_DONE = 8,
    RANKQUAKE_REGION = 9, /* memory that a fault may flip */
    RANKQUAKE_OTHER = 10, /* every kind that has no bit of its own */
    RANKQUAKE_WORKER_START = 11,
    RANKQUAKE_EXEC_FAILED = 12,
    RANKQUAKE_LAUNCHER = 13,
    RANKQUAKE_SAMPLES = 14, /* which samples a step has trained; before the step itself */
    RANKQUAKE_KINDS = 15
};

/* What a scenario may ask for besides; the value is the bit in rankquake_page.kinds. */
enum rankquake_ask {
    RANKQUAKE_ASK_WEIGHTS = 30, /* a hash of the weights with each step */
    RANKQUAKE_ASK_SAMPLES = 31  /* the samples of each step */
};

/* What the harness is waiting for. version never changes while a client is connected. */
struct rankquake_page {
    uint32_t version, kinds;
    uint64_t next_step, armed_seq;
};

struct rankquake {
    int fd; /* -1: silent */
    pid_t pid;
    uint64_t seq, lost;
    const struct rankquake_page *page;
};

/* The name of a kind in messages; "other" for a number that is none. */
static inline const char *rankquake_kind_name(int kind) {
    static const char *const names[RANKQUAKE_KINDS] = {"ready",
                                                       "first-collective",
                                                       "step",
                                                       "checkpoint-begin",
                                                       "checkpoint-write",
                                                       "checkpoint-commit",
                                                       "resume",
                                                       "exit-barrier",
                                                       "done",
                                                       "region",
                                                       "other",
                                                       "worker-start",
                                                       "exec-failed",
                                                       "launcher",
                                                       "samples"};
    return kind >= 0 && kind < RANKQUAKE_KINDS ? names[kind] : "other";
}

/* The kind of a name, RANKQUAKE_OTHER for one that has no bit of its own. */
static inline int rankquake_kind_of(const char *name) {
    for (int i = 0; i < RANKQUAKE_KINDS; i++)
        if (strcmp(rankquake_kind_name(i), name) == 0)
            return i;
    return RANKQUAKE_OTHER;
}

/* Ends the connection; from here on q is silent. */
static inline void rankquake_close(struct rankquake *q) {
    if (q->page)
        munmap((void *)(uintptr_t)q->page, sizeof(*q->page));
    if (q->fd >= 0)
        close(q->fd);
    q->page = NULL;
    q->fd = -1;
}

/* How long a harness may be away before it is given up: RANKQUAKE_WAIT, seconds, which it sets to
 * the time that the whole run may take. Its death ends the wait at once. */
static inline int rankquake_open_wait_ms_(void) {
    const char *text = getenv("RANKQUAKE_WAIT");
    long seconds = text ? strtol(text, NULL, 10) : 0;
    if (seconds <= 0)
        return RANKQUAKE_OPEN_WAIT_MS;
    return seconds < RANKQUAKE_OPEN_WAIT_MAX_MS / 1000 ? (int)seconds * 1000
                                                       : RANKQUAKE_OPEN_WAIT_MAX_MS;
}

/* Takes the message 'P' and the page's descriptor with it, which becomes the caller's. Returns the
 * descriptor or a negative errno. */
static inline int rankquake_receive_page_(int fd) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char byte = 0;
    struct iovec iov;
    struct msghdr msg;
    struct pollfd p;
    int page = -1;
    ssize_t n;
    p.fd = fd;
    p.events = POLLIN;
    p.revents = 0;
    do
        n = poll(&p, 1, rankquake_open_wait_ms_());
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n == 0 ? -ETIMEDOUT : -errno;
    memset(&msg, 0, sizeof(msg));
    iov.iov_base = &byte;
    iov.iov_len = 1;
    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.bytes;
    msg.msg_controllen = sizeof(control.bytes);
    do
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(&page, CMSG_DATA(c), sizeof(page));
    if (page >= 0 && byte != 'P') {
        close(page);
        page = -1;
    }
    return page >= 0 ? page : -EPROTO;
}

static inline int rankquake_map_page_(struct rankquake *q) {
    int fd = rankquake_receive_page_(q->fd);
    if (fd < 0)
        return fd;
    struct stat st;
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(struct rankquake_page))
        p = mmap(NULL, sizeof(struct rankquake_page), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        return -EPROTO;
    q->page = (const struct rankquake_page *)p;
    return q->page->version == RANKQUAKE_VERSION_OF_PAGE ? 0 : -EPROTO;
}

/* Returns the length of the address that RANKQUAKE_EVENTS names, or -ENAMETOOLONG. */
static inline int rankquake_address_(const char *path, struct sockaddr_un *ret) {
    memset(ret, 0, sizeof(*ret));
    ret->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(ret->sun_path))
        return -ENAMETOOLONG;
    memcpy(ret->sun_path, path, strlen(path));
    if (*path != '@')
        return (int)sizeof(*ret);
    ret->sun_path[0] = '\0';
    return (int)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
}

/* Connects to the socket at path. Returns 1, or a negative errno and a silent q (ENAMETOOLONG: the
 * path is longer than a Unix socket's address can be). */
static inline int rankquake_open_at(struct rankquake *q, const char *path) {
    struct sockaddr_un addr;
    struct timeval wait, forever;
    int r, len = rankquake_address_(path, &addr);
    memset(q, 0, sizeof(*q));
    q->fd = -1;
    q->pid = getpid();
    if (len < 0)
        return len;
    q->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (q->fd < 0)
        return -errno;
    /* A Unix connect waits while the backlog is full, at most for the send timeout. */
    wait.tv_sec = rankquake_open_wait_ms_() / 1000;
    wait.tv_usec = 0;
    forever.tv_sec = forever.tv_usec = 0;
    setsockopt(q->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    do
        r = connect(q->fd, (const struct sockaddr *)&addr, (socklen_t)len);
    while (r < 0 && errno == EINTR);
    r = r < 0 ? -errno : rankquake_map_page_(q);
    if (r < 0) {
        rankquake_close(q);
        return r;
    }
    setsockopt(q->fd, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof(forever));
    return 1;
}

/* True when an event would go somewhere: worth preparing its fields. */
static inline int rankquake_listening(const struct rankquake *q) {
    return q->fd >= 0;
}

/* True when the scenario asks for that: what nobody asks for need not be computed. */
static inline int rankquake_asked(const struct rankquake *q, enum rankquake_ask what) {
    if (q->fd < 0)
        return 0;
    uint32_t kinds = __atomic_load_n(&q->page->kinds, __ATOMIC_ACQUIRE);
    return (int)(kinds >> (int)what & 1);
}

/* A child's copy of the connection is closed: the harness takes EOF for the end of the parent. */
static inline int rankquake_usable_(struct rankquake *q) {
    if (q->fd < 0)
        return 0;
    if (q->pid == getpid())
        return 1;
    rankquake_close(q);
    return 0;
}

static inline int rankquake_armed_(const struct rankquake *q, int kind, uint64_t step,
                                   uint64_t *ret_seq) {
    const struct rankquake_page *p = q->page;
    uint32_t kinds = __atomic_load_n(&p->kinds, __ATOMIC_ACQUIRE);
    if (!(kinds & (UINT32_C(1) << kind)))
        return 0;
    uint64_t next = __atomic_load_n(&p->next_step, __ATOMIC_ACQUIRE);
    if (kind == RANKQUAKE_STEP && step < next)
        return 0;
    *ret_seq = __atomic_load_n(&p->armed_seq, __ATOMIC_ACQUIRE);
    return 1;
}

/* Returns 0 when the message went out, 1 when it is lost; a harness that is gone makes q silent. */
static inline int rankquake_deliver_(struct rankquake *q, const char *text, size_t len, int wait) {
    ssize_t n;
    do
        n = send(q->fd, text, len, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return 0;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EMSGSIZE && errno != ENOBUFS)
        rankquake_close(q);
    return 1;
}

/* Stands still until the harness lets go or is gone. */
static inline void rankquake_hold_(struct rankquake *q) {
    char byte;
    ssize_t n;
    do
        n = recv(q->fd, &byte, 1, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        rankquake_close(q);
}

/* Text put together by hand: printf would take longer than the socket does. */
static inline char *rankquake_put_(char *p, const char *s) {
    while (*s)
        *p++ = *s++;
    return p;
}

static inline char *rankquake_put_u64_(char *p, uint64_t v) {
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        *p++ = digits[--n];
    return p;
}

static inline int rankquake_send_(struct rankquake *q, const char *name, uint64_t step,
                                  const char *fields, size_t n) {
    char text[RANKQUAKE_MESSAGE_MAX + 1], *p = text;
    uint64_t armed_seq = 0;
    if (!rankquake_usable_(q))
        return -1;
    int armed = rankquake_armed_(q, rankquake_kind_of(name), step, &armed_seq);
    q->seq++;
    if (n + strlen(name) + 128 > RANKQUAKE_MESSAGE_MAX) {
        q->lost++;
        return -1;
    }
    p = rankquake_put_u64_(rankquake_put_(p, "{\"v\":1,\"seq\":"), q->seq);
    p = rankquake_put_u64_(rankquake_put_(p, ",\"lost\":"), q->lost);
    p = rankquake_put_(rankquake_put_(rankquake_put_(p, ",\"kind\":\""), name), "\"");
    if (armed)
        p = rankquake_put_u64_(rankquake_put_(p, ",\"armed\":"), armed_seq);
    if (n) {
        *p++ = ',';
        memcpy(p, fields, n);
        p += n;
    }
    *p++ = '}';
    if (rankquake_deliver_(q, text, (size_t)(p - text), armed)) {
        q->lost++;
        return -1;
    }
    if (armed)
        rankquake_hold_(q);
    return armed;
}

static inline int rankquake_vsend_(struct rankquake *q, const char *name, const char *fields,
                                   va_list ap) __attribute__((format(printf, 3, 0)));
static inline int rankquake_vsend_(struct rankquake *q, const char *name, const char *fields,
                                   va_list ap) {
    char text[RANKQUAKE_MESSAGE_MAX];
    if (!rankquake_usable_(q))
        return -1;
    int n = vsnprintf(text, sizeof(text), fields, ap);
    if (n < 0 || n >= (int)sizeof(text)) { /* too long: half an event would be a lie */
        q->seq++;
        q->lost++;
        return -1;
    }
    return rankquake_send_(q, name, 0, text, (size_t)n);
}

/* Sends an event of any kind. fields is a printf format that makes the inside of a JSON object,
 * `"what":"stop","round":3`, or "" for none; strings in it go through rankquake_quote. A name that
 * has no bit of its own arms with `other`; for steps use rankquake_step, which knows the step that
 * is armed. Returns 1 when the harness held us for a while, 0 when the event was just sent, -1 when
 * it was not (silent, lost or too long). */
static inline int rankquake_event_named(struct rankquake *q, const char *name, const char *fields,
                                        ...) __attribute__((format(printf, 3, 4)));
static inline int rankquake_event_named(struct rankquake *q, const char *name, const char *fields,
                                        ...) {
    va_list ap;
    va_start(ap, fields);
    int r = rankquake_vsend_(q, name, fields, ap);
    va_end(ap);
    return r;
}

/* The same by its number. */
static inline int rankquake_event(struct rankquake *q, enum rankquake_kind kind, const char *fields,
                                  ...) __attribute__((format(printf, 3, 4)));
static inline int rankquake_event(struct rankquake *q, enum rankquake_kind kind, const char *fields,
                                  ...) {
    va_list ap;
    va_start(ap, fields);
    int r = rankquake_vsend_(q, rankquake_kind_name((int)kind), fields, ap);
    va_end(ap);
    return r;
}

/* Writes s as the inside of a JSON string and a NUL; what does not fit is cut off between two
 * characters. Control characters are escaped; bytes above 127 are copied, so s should be UTF-8.
 * Returns dst. */
static inline char *rankquake_quote(char *dst, size_t size, const char *s) {
    size_t n = 0;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        size_t need = c < 32 || c == 127 ? 6 : c == '"' || c == '\\' ? 2 : 1;
        if (n + need + 1 > size)
            break;
        if (need == 6)
            n += (size_t)snprintf(dst + n, size - n, "\\u%04x", c);
        else {
            if (need == 2)
                dst[n++] = '\\';
            dst[n++] = (char)c;
        }
    }
    while (*s && n && ((unsigned char)*s & 0xc0) == 0x80)
        s--, n--; /* do not leave half a character behind */
    if (size)
        dst[n] = 0;
    return dst;
}

/* ---- who this process is ---- */

/* Whether the program was started with it in its environment, where the harness sees it. */
static inline int rankquake_was_given_(const char *name, const char *value) {
    FILE *f = fopen("/proc/self/environ", "r");
    char *entry = NULL;
    size_t room = 0, n = strlen(name);
    int given = 0;
    while (f && !given && getdelim(&entry, &room, 0, f) > 0)
        given =
            strncmp(entry, name, n) == 0 && entry[n] == '=' && strcmp(entry + n + 1, value) == 0;
    free(entry);
    if (f)
        fclose(f);
    return given || !f;
}

static inline char *rankquake_put_variable_(char *p, const char *end, const char *name,
                                            const char *value) {
    char quoted[256];
    if (!value || !*value || end - p < (long)(sizeof(quoted) + strlen(name) + 8))
        return p;
    rankquake_quote(quoted, sizeof(quoted), value);
    p = rankquake_put_(rankquake_put_(rankquake_put_(p, ",\""), name), "\":\"");
    return rankquake_put_(rankquake_put_(p, quoted), "\"");
}

/* Says which rank this process is, for a job that starts its ranks itself and tells them so by
 * arguments: only a process of which this is known can be the target `rank K`. From the environment
 * rankquake_open tells it by itself; what that has of a worker besides is told, too. Before any
 * other event. */
static inline int rankquake_rank(struct rankquake *q, int rank, int world_size) {
    static const char *const others[] = {"LOCAL_RANK",
                                         "LOCAL_WORLD_SIZE",
                                         "GROUP_RANK",
                                         "GROUP_WORLD_SIZE",
                                         "ROLE_RANK",
                                         "ROLE_WORLD_SIZE",
                                         "ROLE_NAME",
                                         "MASTER_ADDR",
                                         "MASTER_PORT",
                                         "TORCHELASTIC_RESTART_COUNT",
                                         "TORCHELASTIC_MAX_RESTARTS",
                                         "TORCHELASTIC_RUN_ID"};
    char fields[RANKQUAKE_MESSAGE_MAX], *p = fields;
    const char *end = fields + sizeof(fields) - 256;
    size_t i;
    if (q->fd < 0)
        return -1;
    p = rankquake_put_u64_(rankquake_put_(p, "\"env\":{\"RANK\":\""), (uint64_t)rank);
    p = rankquake_put_u64_(rankquake_put_(p, "\",\"WORLD_SIZE\":\""), (uint64_t)world_size);
    p = rankquake_put_(p, "\"");
    for (i = 0; i < sizeof(others) / sizeof(*others); i++)
        p = rankquake_put_variable_(p, end, others[i], getenv(others[i]));
    *p++ = '}';
    return rankquake_send_(q, "rank", 0, fields, (size_t)(p - fields));
}

/* A rank that a job has made by fork and named by setenv: nobody sees that from outside. */
static inline void rankquake_tell_rank_(struct rankquake *q) {
    const char *rank = getenv("RANK"), *world = getenv("WORLD_SIZE");
    if (rank && world && *rank && *world &&
        !(rankquake_was_given_("RANK", rank) && rankquake_was_given_("WORLD_SIZE", world)))
        rankquake_rank(q, atoi(rank), atoi(world));
}

/* Connects as RANKQUAKE_EVENTS says. Returns 1, 0 without that variable, or a negative errno; in
 * the last two cases q is silent and every call below does nothing. */
static inline int rankquake_open(struct rankquake *q) {
    const char *path = getenv("RANKQUAKE_EVENTS");
    int r = 0;
    memset(q, 0, sizeof(*q));
    q->fd = -1;
    q->pid = getpid();
    if (path && *path)
        r = rankquake_open_at(q, path);
    if (r > 0)
        rankquake_tell_rank_(q);
    return r;
}

/* A JSON number whatever the locale's decimal point is; null for what JSON cannot say. Nine
 * decimals for the common sizes, nine digits else. */
static inline char *rankquake_put_double_(char *p, double v) {
    double size = v < 0 ? -v : v;
    if (v != v || v - v != 0)
        return rankquake_put_(p, "null");
    if (size != 0 && (size < 1e-4 || size >= 1e9)) {
        char *end = p + snprintf(p, 32, "%.9g", v);
        for (; p < end; p++)
            if (*p == ',')
                *p = '.';
        return end;
    }
    uint64_t parts = (uint64_t)(size * 1e9 + 0.5), decimals = parts % 1000000000;
    if (v < 0)
        *p++ = '-';
    p = rankquake_put_u64_(p, parts / 1000000000);
    if (decimals)
        *p++ = '.';
    for (uint64_t unit = 100000000; decimals; decimals %= unit, unit /= 10)
        *p++ = (char)('0' + decimals / unit);
    return p;
}

static inline int rankquake_ready(struct rankquake *q) {
    return rankquake_event(q, RANKQUAKE_READY, "%s", "");
}

static inline int rankquake_first_collective(struct rankquake *q) {
    return rankquake_event(q, RANKQUAKE_FIRST_COLLECTIVE, "%s", "");
}

/* Numbers from v on, as many as fit before end: ",", "17,4,5". Returns where the text ends. */
static inline char *rankquake_put_list_(char *p, const char *end, const uint64_t *v, size_t n,
                                        size_t *ret_put) {
    size_t i = 0;
    for (; i < n && end - p > 24; i++) {
        if (i)
            *p++ = ',';
        p = rankquake_put_u64_(p, v[i]);
    }
    *ret_put = i;
    return p;
}

/* The same as rankquake_step, with a text of at most 64 characters that is equal only where the
 * weights are, such as a hash of them; NULL: none. For when rankquake_asked says that it is wanted.
 */
static inline int rankquake_step_weights(struct rankquake *q, uint64_t step, double loss,
                                         uint64_t samples, const int *shards, size_t n_shards,
                                         const char *weights) {
    char fields[RANKQUAKE_MESSAGE_MAX], *p = fields, *end = fields + sizeof(fields) - 160;
    if (!rankquake_listening(q))
        return -1;
    p = rankquake_put_u64_(rankquake_put_(p, "\"step\":"), step);
    p = rankquake_put_double_(rankquake_put_(p, ",\"loss\":"), loss);
    p = rankquake_put_u64_(rankquake_put_(p, ",\"samples\":"), samples);
    p = rankquake_put_(p, ",\"shards\":[");
    for (size_t i = 0; i < n_shards; i++) {
        if (end - p < 16) { /* half a ledger would be a lie */
            q->seq++;
            q->lost++;
            return -1;
        }
        if (i)
            *p++ = ',';
        p = rankquake_put_u64_(p, (uint64_t)shards[i]);
    }
    *p++ = ']';
    if (weights) {
        char quoted[65];
        rankquake_quote(quoted, sizeof(quoted), weights);
        p = rankquake_put_(rankquake_put_(rankquake_put_(p, ",\"weights\":\""), quoted), "\"");
    }
    return rankquake_send_(q, "step", step, fields, (size_t)(p - fields));
}

/* Update `step` (from 1) has been applied: the ledger. samples and shards are what this process
 * itself computed for it; shards may be NULL. */
static inline int rankquake_step(struct rankquake *q, uint64_t step, double loss, uint64_t samples,
                                 const int *shards, size_t n_shards) {
    return rankquake_step_weights(q, step, loss, samples, shards, n_shards, NULL);
}

/* The samples that this process has trained for `step`, each by its number in the data set; before
 * rankquake_step of it. epoch counts from 0; of: how many different samples an epoch trains, on all
 * ranks together. Tell what was read, not what was to be read. For when rankquake_asked says that
 * it is wanted. */
static inline int rankquake_samples(struct rankquake *q, uint64_t step, uint64_t epoch, uint64_t of,
                                    const uint64_t *ids, size_t n) {
    char fields[RANKQUAKE_MESSAGE_MAX];
    const char *end = fields + sizeof(fields) - 256;
    int r = -1;
    if (!rankquake_listening(q))
        return -1;
    do {
        size_t put = 0;
        char *p = rankquake_put_u64_(rankquake_put_(fields, "\"step\":"), step);
        p = rankquake_put_u64_(rankquake_put_(p, ",\"epoch\":"), epoch);
        p = rankquake_put_u64_(rankquake_put_(p, ",\"of\":"), of);
        p = rankquake_put_list_(rankquake_put_(p, ",\"ids\":["), end, ids, n, &put);
        *p++ = ']';
        r = rankquake_send_(q, "samples", step, fields, (size_t)(p - fields));
        ids += put;
        n -= put;
    } while (n);
    return r;
}

static inline int rankquake_at_path_(struct rankquake *q, enum rankquake_kind kind, uint64_t step,
                                     const char *path) {
    char quoted[2 * 1024];
    if (!rankquake_listening(q))
        return -1;
    return rankquake_event(q, kind, "\"step\":%llu,\"path\":\"%s\"", (unsigned long long)step,
                           rankquake_quote(quoted, sizeof(quoted), path));
}

static inline int rankquake_checkpoint_begin(struct rankquake *q, uint64_t step, const char *path) {
    return rankquake_at_path_(q, RANKQUAKE_CHECKPOINT_BEGIN, step, path);
}

static inline int rankquake_checkpoint_write(struct rankquake *q, uint64_t step, const char *path) {
    return rankquake_at_path_(q, RANKQUAKE_CHECKPOINT_WRITE, step, path);
}

static inline int rankquake_checkpoint_commit(struct rankquake *q, uint64_t step,
                                              const char *path) {
    return rankquake_at_path_(q, RANKQUAKE_CHECKPOINT_COMMIT, step, path);
}

/* The state of `step` has been loaded from path; step 0 and "": a fresh start. */
static inline int rankquake_resume(struct rankquake *q, uint64_t step, const char *path) {
    return rankquake_at_path_(q, RANKQUAKE_RESUME, step, path);
}

static inline int rankquake_exit_barrier(struct rankquake *q) {
    return rankquake_event(q, RANKQUAKE_EXIT_BARRIER, "%s", "");
}

/* The work is done; model is the SHA-256 of the weights in hex. */
static inline int rankquake_done(struct rankquake *q, const char *model) {
    char quoted[256];
    return rankquake_event(q, RANKQUAKE_DONE, "\"model\":\"%s\"",
                           rankquake_quote(quoted, sizeof(quoted), model));
}

/* Memory of this process that a fault may flip bits in. */
static inline int rankquake_region(struct rankquake *q, const char *name, const void *address,
                                   size_t bytes) {
    char quoted[256];
    return rankquake_event(q, RANKQUAKE_REGION, "\"name\":\"%s\",\"address\":%llu,\"bytes\":%llu",
                           rankquake_quote(quoted, sizeof(quoted), name),
                           (unsigned long long)(uintptr_t)address, (unsigned long long)bytes);
}

#ifdef __cplusplus
}
#endif

#endif
