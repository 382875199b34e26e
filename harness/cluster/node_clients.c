#include "harness/cluster/node_clients.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "harness/carrier/armed_page.h"
#include "harness/cluster/seen_process.h"
#include "harness/cluster/sighting.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Of who goes on saying something while he is read. */
enum { MESSAGES_A_DRAIN = 2000, WAITS_MAX = 4 << 20, STATUS_WAIT_MS = 200 };

struct node_client {
    struct list link;
    struct node_clients *of;
    int64_t id;
    int fd;
    pid_t pid;
    bool probe, held; /* held: it waits for one byte */
    struct loop_source *source;
};

struct node_worker {
    struct list link;
    struct node_clients *of;
    struct process process;
    uint64_t start;
    struct loop_source *source;
};

struct node_clients {
    struct loop *loop;
    struct carrier *to;
    int listener;
    struct loop_source *on_listener;
    struct list clients, workers;
    struct armed_page page;
    int64_t ids;
    bool paused, has_probe;
    bool gives; /* what workers are given is told */
    struct given_key key;
    int given; /* so many have been told */
    dev_t probe_dev;
    ino_t probe_ino;
};

/* ---- what the harness is told ---- */

static struct json_writer say(const struct node_clients *c, struct buf *text, const char *op) {
    const struct sighting now = sighting_now(c->loop);
    return sighting_say(&now, text, op);
}

/* A harness that has gone is seen at the carrier's other descriptor. */
static void say_send(struct node_clients *c, struct buf *text, struct json_writer *w) {
    json_end_object(w);
    carrier_send(c->to, text, NULL, 0, NULL);
    buf_fini(text);
    if (carrier_waits(c->to) > WAITS_MAX)
        node_clients_pause(c, true);
}

/* ---- workers ---- */

static struct node_worker *worker_of(const struct node_clients *c, pid_t pid) {
    list_each(it, &c->workers) {
        struct node_worker *w = list_entry(it, struct node_worker, link);
        if (w->process.pid == pid)
            return w;
    }
    return NULL;
}

static void worker_free(struct node_worker *w) {
    list_remove(&w->link);
    loop_source_free(w->source);
    process_close(&w->process);
    free(w);
}

/* While it is a zombie /proc tells it; once it has been reaped the kernel does, a moment later. */
static bool status_of(const struct node_worker *w, int *ret) {
    struct pollfd reaped = {.fd = w->process.pidfd};
    int r = process_zombie_status(w->process.pid, ret);
    if (r == -ESRCH && (r = process_exit_info(w->process.pidfd, ret)) == -EAGAIN &&
        poll(&reaped, 1, STATUS_WAIT_MS) == 1)
        r = process_exit_info(w->process.pidfd, ret);
    return r == 0;
}

static bool read_one(struct node_client *k);

/* What it has said before it died comes first, and its status may be told only when it has been reaped: it
 * has ended before that. */
static void worker_ended(struct node_worker *w) {
    struct node_clients *c = w->of;
    const struct sighting then = sighting_now(c->loop);
    struct buf text = {0};
    int status = 0;
    bool known = status_of(w, &status);
    list_each_safe(it, next, &c->clients) {
        struct node_client *k = list_entry(it, struct node_client, link);
        for (int i = 0; i < MESSAGES_A_DRAIN && k->pid == w->process.pid && read_one(k); i++)
            ;
    }
    struct json_writer out = sighting_say(&then, &text, "ended");
    seen_process_put_name(&out, w->process.pid, w->start);
    json_put_known(&out, "status", known, status);
    say_send(c, &text, &out);
    worker_free(w);
}

static void on_worker(void *arg, int fd, int what) {
    worker_ended(arg);
}

static void watch(struct node_client *k) {
    struct node_clients *c = k->of;
    int pidfd;
    socklen_t len = sizeof(pidfd);
    struct process p = {k->pid, -1};
    if (worker_of(c, k->pid))
        return;
    if (getsockopt(k->fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
        p.pidfd = pidfd;
    else if (process_open(k->pid, &p, NULL) != 0) /* Linux < 6.5; it waits for its page */
        return;
    struct node_worker *w = mem_new(struct node_worker);
    *w = (struct node_worker){.of = c, .process = p};
    process_start_ticks(k->pid, &w->start);
    w->source = loop_fd(c->loop, p.pidfd, LOOP_READ, on_worker, w);
    list_append(&c->workers, &w->link);
}

/* ---- who speaks ---- */

static const char *image_of(const struct node_clients *c, pid_t pid) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    if (stat(path, &st) != 0)
        return "unknown";
    bool probe = c->has_probe && st.st_dev == c->probe_dev && st.st_ino == c->probe_ino;
    return probe ? "probe" : "other";
}

static void client_free(struct node_client *k) {
    list_remove(&k->link);
    loop_source_free(k->source);
    file_close(&k->fd);
    free(k);
}

static void client_gone(struct node_client *k) {
    struct node_clients *c = k->of;
    struct buf text = {0};
    struct json_writer w = say(c, &text, "gone");
    json_put_i64(&w, "id", k->id);
    json_put_string(&w, "image", image_of(c, k->pid));
    client_free(k);
    say_send(c, &text, &w);
}

static bool is_armed(const char *said, size_t n) {
    ARENA_FINI struct arena arena = {0};
    return json_get(json_parse(&arena, said, n, NULL), "armed");
}

/* False: there is nothing now, or it has gone. */
static bool read_one(struct node_client *k) {
    char said[RANKQUAKE_MESSAGE_MAX + 1];
    ssize_t n = recv(k->fd, said, sizeof(said), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        client_gone(k);
        return false;
    }
    k->held = is_armed(said, (size_t)n);
    struct buf text = {0};
    struct json_writer w = say(k->of, &text, "record");
    json_put_i64(&w, "id", k->id);
    json_put_stringn(&w, "text", said, (size_t)n);
    say_send(k->of, &text, &w);
    return true;
}

static void on_client(void *arg, int fd, int what) {
    read_one(arg);
}

/* Until it has its page it waits, so that what it was given stands still. */
static void tell_given(struct node_client *k) {
    struct node_clients *c = k->of;
    struct buf text = {0};
    if (!c->gives || c->given++ >= GIVEN_MAX)
        return;
    struct json_writer w = say(c, &text, "given");
    seen_process_put_name_now(&w, k->pid);
    json_object(&w, "given");
    given_put(&w, &c->key, k->pid);
    json_end_object(&w);
    say_send(c, &text, &w);
}

static void begin_client(struct node_clients *c, int fd, pid_t pid) {
    struct node_client *k = mem_new(struct node_client);
    *k = (struct node_client){.of = c, .id = ++c->ids, .fd = fd, .pid = pid};
    k->probe = strcmp(image_of(c, pid), "probe") == 0;
    if (k->probe) {
        watch(k);
        tell_given(k);
    }
    k->source = loop_fd(c->loop, fd, c->paused ? 0 : LOOP_READ, on_client, k);
    list_append(&c->clients, &k->link);
    struct buf text = {0};
    struct json_writer w = say(c, &text, "client");
    json_put_i64(&w, "id", k->id);
    seen_process_put_line(&w, pid);
    json_put_bool(&w, "probe", k->probe);
    say_send(c, &text, &w);
    descriptors_send(fd, "P", 1, &c->page.fd, 1, MSG_DONTWAIT);
}

static void on_listener(void *arg, int fd, int what) {
    struct node_clients *c = arg;
    struct ucred who;
    socklen_t len = sizeof(who);
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0)
        begin_client(c, client, who.pid);
    else
        close(client);
}

/* ---- what the harness says ---- */

void node_clients_arm(struct node_clients *c, const struct json *order) {
    armed_page_set(&c->page, (uint32_t)json_get_i64(order, "kinds", 0),
                   (uint64_t)json_get_i64(order, "next_step", 0));
}

/* Who does not wait would take the byte for the answer to the next event that does. */
static void go_on(struct node_client *k) {
    if (!k->held)
        return;
    k->held = false;
    (void)!send(k->fd, "G", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* gone: its end of file follows */
}

void node_clients_release(struct node_clients *c, const struct json *order) {
    int64_t id = json_get_i64(order, "id", 0);
    list_each(it, &c->clients) {
        struct node_client *k = list_entry(it, struct node_client, link);
        if (k->id == id)
            go_on(k);
    }
}

void node_clients_put_held(const struct node_clients *c, struct json_writer *w) {
    list_each(it, &c->clients) {
        const struct node_client *k = list_entry(it, struct node_client, link);
        if (k->held)
            seen_process_put(w, k->pid);
    }
}

void node_clients_release_all(struct node_clients *c) {
    armed_page_set(&c->page, 0, 0);
    list_each(it, &c->clients) go_on(list_entry(it, struct node_client, link));
}

void node_clients_pause(struct node_clients *c, bool paused) {
    if (c->paused == paused)
        return;
    c->paused = paused;
    list_each(it, &c->clients)
        loop_fd_set(list_entry(it, struct node_client, link)->source, paused ? 0 : LOOP_READ);
}

void node_clients_drain(struct node_clients *c) {
    list_each_safe(it, next, &c->clients) {
        struct node_client *k = list_entry(it, struct node_client, link);
        for (int i = 0; i < MESSAGES_A_DRAIN && read_one(k); i++)
            ;
    }
    list_each_safe(at, after, &c->workers) {
        struct node_worker *w = list_entry(at, struct node_worker, link);
        struct pollfd p = {.fd = w->process.pidfd, .events = POLLIN};
        if (poll(&p, 1, 0) == 1)
            worker_ended(w);
    }
}

/* ---- its life ---- */

struct node_clients *node_clients_new(struct loop *l, struct carrier *to, int listener,
                                      const char *probe, const struct given_key *key,
                                      struct err *err) {
    struct node_clients *c = mem_new(struct node_clients);
    struct stat st;
    *c = (struct node_clients){.loop = l, .to = to, .listener = listener, .page = ARMED_PAGE_NONE};
    list_init(&c->clients);
    list_init(&c->workers);
    if (armed_page_make(&c->page, err) != 0)
        return node_clients_free(c);
    c->gives = key != NULL;
    if (key)
        c->key = *key;
    if (probe && stat(probe, &st) == 0) {
        c->has_probe = true;
        c->probe_dev = st.st_dev;
        c->probe_ino = st.st_ino;
    }
    c->on_listener = loop_fd(l, listener, LOOP_READ, on_listener, c);
    return c;
}

struct node_clients *node_clients_free(struct node_clients *c) {
    if (!c)
        return NULL;
    list_each_safe(it, next, &c->clients) client_free(list_entry(it, struct node_client, link));
    list_each_safe(at, after, &c->workers) worker_free(list_entry(at, struct node_worker, link));
    loop_source_free(c->on_listener);
    armed_page_end(&c->page);
    file_close(&c->listener);
    free(c);
    return NULL;
}
