/* Takes the events that workers, rankprobe and launchers send, and holds a sender while a trigger
 * needs it to wait. */
#include "harness/observe/observe.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "base/sys/sent.h"
#include "harness/carrier/armed_page.h"
#include "harness/carrier/host_process.h"
#include "harness/carrier/given.h"
#include "harness/observe/pidfds.h"
#include "harness/observe/spawned.h"
#include "scenarios/jobs/rankquake.h"

#include <fcntl.h>
#include <sys/syscall.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { DESCENT_MAX = 8 }; /* generations between a worker and the process that speaks for it */

/* A history is kept in memory. Whoever sends more than this in a window is not read until it is
 * over: its sends fail then, which costs it nothing, and it counts what was lost. */
enum { MESSAGES_A_WINDOW = 2000 };
static const int64_t WINDOW_NS = 250000000;

struct event_client {
    struct list link;
    struct observer *owner;
    const char *node;
    int fd;
    pid_t pid, worker; /* worker: itself, or the ancestor that it speaks for */
    int pidfd;         /* of who may become a worker yet; else -1 */
    int64_t since_ns;  /* the process was there */
    bool probe;        /* runs our rankprobe: may say what a worker was given */
    bool started;      /* the probe has said so, its end of file means exec */
    bool exec_failed;
    bool held;    /* waits for one byte */
    bool telling; /* the listener is being told, and may keep it yet */
    int *kept;    /* the tags it is kept under: it goes on when none is left */
    size_t kept_n;
    int64_t window_ns;          /* when it began */
    int messages;               /* in it */
    struct loop_source *source; /* NULL: it is on another host */
    struct far_speaker far;
};

struct observer {
    struct loop *loop;
    struct recorder *rec;
    struct list clients;
    struct pidfds *pidfds;
    struct armed_page page; /* one for all; written here, read by every client */
    uint32_t asked;         /* bits of enum rankquake_ask */
    bool sent;              /* when messages were is noted */
    dev_t probe_dev;
    ino_t probe_ino;
    struct loop_source *again; /* the end of the window of somebody who sends too much */
    void (*on_end)(void *arg, pid_t pid);
    void *on_end_arg;
    void (*on_arm)(void *arg, uint32_t kinds, uint64_t next_step);
    void *on_arm_arg;
    uint32_t armed_kinds;
    uint64_t armed_step;
    struct given_key key;
    int given; /* so many have been read */
};

/* ---- the page ---- */

uint32_t observer_kind(const char *name) {
    return UINT32_C(1) << rankquake_kind_of(name);
}

void observer_ask(struct observer *o, bool weights, bool samples) {
    o->asked = (uint32_t)weights << RANKQUAKE_ASK_WEIGHTS | (uint32_t)samples
                                                                << RANKQUAKE_ASK_SAMPLES;
    observer_arm(o, 0, 0);
}

void observer_note_sent(struct observer *o) {
    o->sent = true;
}

void observer_arm(struct observer *o, uint32_t kinds, uint64_t next_step) {
    armed_page_set(&o->page, kinds | o->asked, next_step);
    o->armed_kinds = kinds | o->asked;
    o->armed_step = next_step;
    if (o->on_arm)
        o->on_arm(o->on_arm_arg, o->armed_kinds, o->armed_step);
}

void observer_on_arm(struct observer *o, void (*fn)(void *arg, uint32_t kinds, uint64_t next_step),
                     void *arg) {
    o->on_arm = fn;
    o->on_arm_arg = arg;
    fn(arg, o->armed_kinds, o->armed_step);
}

/* ---- who is speaking ---- */

/* What a process runs: our rankprobe, something else, or nobody can tell (it has ended). */
enum image { IMAGE_UNKNOWN, IMAGE_PROBE, IMAGE_OTHER };

static enum image image_of(const struct observer *o, pid_t pid) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    if (stat(path, &st) < 0)
        return IMAGE_UNKNOWN;
    return st.st_dev == o->probe_dev && st.st_ino == o->probe_ino ? IMAGE_PROBE : IMAGE_OTHER;
}

static pid_t parent_of(pid_t pid) {
    struct process_look p;
    if (host_process_is(pid))
        return host_process_parent(pid);
    return process_look(pid, &p) == 0 ? p.parent : 0;
}

/* Whether it is a rankprobe that has connected: it becomes a worker, though that may not have been
 * read yet. */
static bool is_probe(const struct observer *o, pid_t pid) {
    list_each(it, &o->clients) {
        const struct event_client *c = list_entry(it, struct event_client, link);
        if (c->probe && c->pid == pid)
            return true;
    }
    return false;
}

/* A job may speak from a child (a shell around python): its events belong to the worker above, but
 * where the child is a rank of its own. */
static pid_t worker_of(const struct observer *o, pid_t pid) {
    pid_t at = pid;
    for (int i = 0; at > 1 && i < DESCENT_MAX; i++, at = parent_of(at))
        if (pidfds_find(o->pidfds, at) >= 0 || is_probe(o, at))
            return at;
    return pid;
}

static int peer_pidfd(int fd, pid_t pid) {
    int pidfd;
    socklen_t len = sizeof(pidfd);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
        return pidfd;
    return (int)syscall(SYS_pidfd_open, pid, 0); /* Linux < 6.5; the peer waits for its page */
}

/* ---- messages ---- */

static const char *const own_fields[] = {"v",    "seq", "lost", "kind", "armed", "t",     "source",
                                         "node", "pid", "from", "sent", "bound", "there", NULL};

static bool is_own(const char *key) {
    for (const char *const *p = own_fields; *p; p++)
        if (strcmp(*p, key) == 0)
            return true;
    return false;
}

static enum source source_of(const struct event_client *c, int kind) {
    bool probe = kind == RANKQUAKE_WORKER_START || kind == RANKQUAKE_EXEC_FAILED;
    if (probe && c->probe)
        return SOURCE_PROBE;
    return kind == RANKQUAKE_LAUNCHER ? SOURCE_LAUNCHER : SOURCE_JOB;
}

/* The worker that a process which becomes one itself is below of, 0: none, or one that trains
 * itself and does not make way for it (rounds.h). */
static pid_t below_of(const struct observer *o, pid_t pid) {
    pid_t above = worker_of(o, parent_of(pid));
    return rounds_may_host(o->rec->rounds, above) ? above : 0;
}

static void put_message(struct json_writer *w, const struct event_client *c, const struct json *m) {
    json_put_string(w, "node", c->node);
    json_put_i64(w, "pid", c->worker);
    if (c->worker != c->pid)
        json_put_i64(w, "speaker", c->pid);
    json_put_i64(w, "job_seq", json_get_i64(m, "seq", 0));
    json_put_i64(w, "lost", json_get_i64(m, "lost", 0));
    json_each(it, m) if (!is_own(it->key)) json_put_tree(w, it->key, it);
}

static void release(struct event_client *c) {
    char byte = 'G';
    c->held = false;
    c->kept_n = 0;
    if (c->far.release)
        c->far.release(c->far.arg);
    else
        (void)!send(c->fd, &byte, 1,
                    MSG_NOSIGNAL | MSG_DONTWAIT); /* gone: its end of file follows */
}

static void note_start(struct event_client *c) {
    c->started = true;
    if (c->pidfd >= 0)
        pidfds_watch(c->owner->pidfds, c->node, c->pid, c->pidfd, c->since_ns);
    c->pidfd = -1;
}

/* ---- ranks that a job starts itself ---- */

/* env: what it says of itself; NULL: s is what the kernel says. */
static void record_spawned(struct event_client *c, const struct spawned *s,
                           const struct json *env) {
    static const char *const kinds[] = {"worker-start", "worker-exec"};
    struct recorder *rec = c->owner->rec;
    pid_t above = c->worker;
    pidfds_drain(c->owner->pidfds); /* as before a start that rankprobe tells */
    c->worker = c->pid;
    note_start(c);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct json_writer *w = recorder_begin(rec, clock_monotonic_ns(), SOURCE_PROBE, kinds[i]);
        json_put_string(w, "node", c->node);
        json_put_i64(w, "pid", c->pid);
        if (i == 0) {
            spawned_put(w, s, c->pid, env);
            json_put_i64(w, "below", above);
            json_put_string(w, "by", env ? "job" : "kernel");
        }
        recorder_end(rec, NULL);
    }
}

/* Speaks for the worker above it, or was given a rank of its own. */
static bool becomes_worker(const struct event_client *c, int rank, int world_size) {
    return !c->probe && c->worker != c->pid && c->pidfd >= 0 &&
           rounds_hosts(c->owner->rec->rounds, c->worker, rank, world_size);
}

static void look_at_given(struct event_client *c) {
    struct spawned s;
    if (!spawned_read(&s, c->pid))
        return;
    if (becomes_worker(c, s.rank, s.world_size))
        record_spawned(c, &s, NULL);
    spawned_fini(&s);
}

/* One that is a worker already says nothing new. */
static void hear_rank(struct event_client *c, const struct json *m) {
    const struct json *env = json_get(m, "env");
    struct spawned none = {.rank = -1};
    int rank, world_size;
    if (spawned_claimed(env, &rank, &world_size) && becomes_worker(c, rank, world_size))
        record_spawned(c, &none, env);
    if (json_get(m, "armed"))
        release(c);
}

/* ---- a message ---- */

static void on_message(struct event_client *c, const char *text, size_t len, int64_t sent,
                       const struct clock_stamp *far) {
    ARENA_FINI struct arena arena = {0};
    struct json *m = json_parse(&arena, text, len, NULL);
    const char *name = json_get_string(m, "kind", "other");
    int kind = rankquake_kind_of(name);
    enum source source = source_of(c, kind);
    if (source == SOURCE_JOB && str_eq(name, "rank")) {
        hear_rank(c, m);
        return;
    }
    /* One turn of the loop may serve a start before the ends that came first: those that can be
     * seen by now are noted before it, so that two rounds overlap in the history only if they did.
     */
    if (source == SOURCE_PROBE && kind == RANKQUAKE_WORKER_START && !c->started)
        pidfds_drain(c->owner->pidfds);
    const struct clock_stamp now = {.t_ns = clock_monotonic_ns()}, *at = far ? far : &now;
    c->held = json_get(m, "armed");
    c->kept_n = 0;
    if (source == SOURCE_PROBE && kind == RANKQUAKE_WORKER_START)
        note_start(c);
    c->exec_failed |= source == SOURCE_PROBE && kind == RANKQUAKE_EXEC_FAILED;
    /* A job that says what only rankprobe may say is recorded, as a claim of no kind. */
    bool pretends =
        source == SOURCE_JOB && (kind == RANKQUAKE_WORKER_START || kind == RANKQUAKE_EXEC_FAILED);
    const char *recorded = pretends || kind == RANKQUAKE_OTHER ? "other" : name;
    struct json_writer *w = recorder_begin_at(c->owner->rec, at, source, recorded);
    put_message(w, c, m);
    pid_t below = source == SOURCE_PROBE ? below_of(c->owner, c->pid) : 0;
    if (below)
        json_put_i64(w, "below", below);
    if (c->owner->sent && !far)
        json_put_i64(w, "sent", sent);
    if (kind == RANKQUAKE_OTHER || pretends)
        json_put_string(w, "said", m ? name : "not JSON");
    c->telling = true;
    recorder_end(c->owner->rec, c);
    c->telling = false;
    if (c->held && !c->kept_n)
        release(c);
}

static void client_free(struct event_client *c) {
    if (c->far.forgotten)
        c->far.forgotten(c->far.arg);
    list_remove(&c->link);
    loop_source_free(c->source);
    file_close(&c->fd);
    file_close(&c->pidfd);
    free(c->kept);
    free(c);
}

static void client_ended(struct event_client *c, bool became_other) {
    struct observer *o = c->owner;
    if (c->started && !c->exec_failed && became_other) {
        struct json_writer *w =
            recorder_begin(o->rec, clock_monotonic_ns(), SOURCE_PROBE, "worker-exec");
        json_put_string(w, "node", c->node);
        json_put_i64(w, "pid", c->pid);
        recorder_end(o->rec, NULL);
    }
    client_free(c);
}

/* Reads one message. Returns false when there is none now; ends the client at end of file. */
static bool read_one(struct event_client *c) {
    char text[RANKQUAKE_MESSAGE_MAX + 1], control[SENT_ROOM];
    if (c->fd < 0) /* its helper tells */
        return false;
    struct iovec v = {text, sizeof(text)};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = c->owner->sent ? sizeof(control) : 0};
    ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        client_ended(c, image_of(c->owner, c->pid) == IMAGE_OTHER);
        return false;
    }
    on_message(c, text, (size_t)n, c->owner->sent ? sent_ns(&m) : 0, NULL);
    return true;
}

/* False when its window is full: it is not read again before that is over. */
static bool may_send(struct event_client *c) {
    int64_t now = clock_monotonic_ns();
    if (now - c->window_ns >= WINDOW_NS) {
        c->window_ns = now;
        c->messages = 0;
    }
    if (c->messages++ < MESSAGES_A_WINDOW)
        return true;
    loop_fd_set(c->source, 0);
    loop_timer_at(c->owner->again, c->window_ns + WINDOW_NS);
    return false;
}

static void on_again(void *arg, int64_t now) {
    struct observer *o = arg;
    list_each(it, &o->clients) {
        struct event_client *c = list_entry(it, struct event_client, link);
        if (c->source)
            loop_fd_set(c->source, LOOP_READ);
    }
}

static void on_readable(void *arg, int fd, int what) {
    if (may_send(arg))
        read_one(arg);
}

bool client_is_held(const struct event_client *c) {
    return c->held;
}

static size_t find_kept(const struct event_client *c, int tag) {
    size_t i = 0;
    while (i < c->kept_n && c->kept[i] != tag)
        i++;
    return i;
}

void client_keep(struct event_client *c, int tag) {
    if (find_kept(c, tag) == c->kept_n)
        mem_push(c->kept, c->kept_n) = tag;
}

void observer_kept(const struct observer *o, int tag, kept_fn *fn, void *arg) {
    list_each(it, &o->clients) {
        const struct event_client *c = list_entry(it, struct event_client, link);
        if (find_kept(c, tag) < c->kept_n)
            fn(arg, c->node, c->worker, c->pid);
    }
}

void observer_release(struct observer *o, int tag) {
    list_each(it, &o->clients) {
        struct event_client *c = list_entry(it, struct event_client, link);
        size_t i = find_kept(c, tag);
        if (i == c->kept_n)
            continue;
        c->kept[i] = c->kept[--c->kept_n];
        if (!c->kept_n && !c->telling)
            release(c);
    }
}

/* What was in its socket when that began: somebody may go on sending while we read. */
static void read_all(struct event_client *c) {
    for (int i = 0; i < MESSAGES_A_WINDOW && !c->held && read_one(c); i++)
        ;
}

/* ---- the observer ---- */

/* What a process has said before it died comes first. */
static void on_worker_ended(void *arg, pid_t pid) {
    struct observer *o = arg;
    list_each_safe(it, next, &o->clients) {
        struct event_client *c = list_entry(it, struct event_client, link);
        for (int k = 0; k < MESSAGES_A_WINDOW && c->worker == pid && read_one(c); k++)
            ;
    }
    if (o->on_end)
        o->on_end(o->on_end_arg, pid);
}

void observer_on_end(struct observer *o, void (*fn)(void *arg, pid_t pid), void *arg) {
    o->on_end = fn;
    o->on_end_arg = arg;
}

struct observer *observer_new(struct loop *l, struct recorder *rec, const char *probe,
                              struct err *err) {
    struct stat st;
    if (stat(probe, &st) < 0) {
        err_set(err, -errno, "find rankprobe beside rankquake (%s)", probe);
        return NULL;
    }
    struct observer *o = mem_new(struct observer);
    *o = (struct observer){.loop = l,
                           .rec = rec,
                           .page = ARMED_PAGE_NONE,
                           .probe_dev = st.st_dev,
                           .probe_ino = st.st_ino};
    list_init(&o->clients);
    given_key_draw(&o->key);
    o->again = loop_timer(l, on_again, o);
    o->pidfds = pidfds_new(l, rec, &exit_sources_of_host, on_worker_ended, o);
    if (armed_page_make(&o->page, err) < 0)
        return observer_free(o);
    return o;
}

struct observer *observer_free(struct observer *o) {
    if (!o)
        return NULL;
    list_each_safe(it, next, &o->clients) client_free(list_entry(it, struct event_client, link));
    pidfds_free(o->pidfds);
    loop_source_free(o->again);
    armed_page_end(&o->page);
    free(o);
    return NULL;
}

/* Until it has its page rankprobe waits, so that what it was given stands still. */
static void record_given(struct event_client *c) {
    struct observer *o = c->owner;
    if (o->given++ >= GIVEN_MAX)
        return;
    struct json_writer *w = recorder_begin(o->rec, clock_monotonic_ns(), SOURCE_KERNEL, "given");
    json_put_string(w, "node", c->node);
    json_put_i64(w, "pid", c->pid);
    given_put(w, &o->key, c->pid);
    recorder_end(o->rec, NULL);
}

void observer_record_planned(struct observer *o, const char *node, pid_t parent,
                             const char *const *env, const char *cwd) {
    struct json_writer *w = recorder_begin(o->rec, clock_monotonic_ns(), SOURCE_HARNESS, "given");
    json_put_string(w, "node", node);
    given_put_planned(w, &o->key, parent, env, cwd);
    recorder_end(o->rec, NULL);
}

const struct given_key *observer_given_key(const struct observer *o) {
    return &o->key;
}

void observer_record_given(struct observer *o, const char *node, pid_t pid,
                           const struct json *given, const struct clock_stamp *at) {
    struct json_writer *w =
        recorder_begin_at(o->rec, at, pid ? SOURCE_KERNEL : SOURCE_HARNESS, "given");
    json_put_string(w, "node", node);
    if (pid)
        json_put_i64(w, "pid", pid);
    json_each(it, given) if (!is_own(it->key)) json_put_tree(w, it->key, it);
    recorder_end(o->rec, NULL);
}

void observer_connect(struct observer *o, const char *node, int fd, pid_t pid) {
    struct event_client *c = mem_new(struct event_client);
    *c = (struct event_client){.owner = o, .node = node, .fd = fd, .pid = pid, .pidfd = -1};
    c->since_ns = clock_monotonic_ns();
    if (o->sent)
        sent_ask(fd);
    c->probe = image_of(o, pid) == IMAGE_PROBE;
    c->worker = c->probe ? pid : worker_of(o, pid);
    if (c->probe || c->worker != pid)
        /* once it has its page it may start, end and be reaped before it is served */
        c->pidfd = peer_pidfd(fd, pid);
    if (c->probe)
        record_given(c);
    c->source = loop_fd(o->loop, fd, LOOP_READ, on_readable, c);
    list_append(&o->clients, &c->link);
    look_at_given(c);
    descriptors_send(fd, "P", 1, &o->page.fd, 1, MSG_DONTWAIT);
}

struct event_client *observer_join(struct observer *o, const struct far_speaker *s) {
    struct event_client *c = mem_new(struct event_client);
    *c = (struct event_client){
        .owner = o, .node = s->node, .fd = -1, .pid = s->pid, .pidfd = -1, .far = *s};
    c->since_ns = clock_monotonic_ns();
    c->probe = s->probe;
    c->worker = c->probe ? c->pid : worker_of(o, c->pid);
    c->pidfd = s->end;
    list_append(&o->clients, &c->link);
    return c;
}

void observer_hear(struct event_client *c, const char *text, size_t len,
                   const struct clock_stamp *at) {
    on_message(c, text, len, 0, at);
}

void observer_leave(struct event_client *c, bool became_other) {
    c->far.forgotten = NULL; /* who says so knows */
    client_ended(c, became_other);
}

int observer_worker_pidfd(const struct observer *o, pid_t pid) {
    return pidfds_find(o->pidfds, pid);
}

const char *observer_way(const struct observer *o) {
    return pidfds_way(o->pidfds);
}

void observer_drain(struct observer *o) {
    list_each_safe(it, next, &o->clients) {
        struct event_client *c = list_entry(it, struct event_client, link);
        read_all(c);
    }
    pidfds_drain(o->pidfds);
}
