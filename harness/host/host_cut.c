#include "harness/host/host_cut.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/owned_table.h"
#include "base/sys/process.h"
#include "faults/mechanism/call_watch.h"
#include "faults/mechanism/socket_cut.h"
#include "harness/host/own_sockets.h"
#include "harness/host/part_order.h"
#include "harness/host/part_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Counted at what was let go. */
struct tally {
    uint64_t dropped, passed, connections;
    uint64_t unsaid; /* of those dropped: on their way to the peer */
};

struct half {
    struct list link;
    struct part_order order;
    struct owned_table table; /* where it is by table */
    struct tally *peers;      /* by their place in the order */
    struct tally *now;        /* room for what owned_table_count tells */
    size_t late;
};

/* One end of a connection, as it is or is to be. */
struct cut_connection {
    char address[PART_ADDRESS_MAX]; /* of the other end; of a listener its own */
    uint16_t ours, theirs;
    bool listens, begins; /* begins: it has not been opened yet */
};

/* A copy of one deaf socket, for what the kernel counts at it. */
struct deaf_socket {
    struct list link;
    struct cut_connection what;
    struct half *of;
    int fd, peer; /* peer -1: a listener, deaf to everybody */
    uint64_t inode;
    uint32_t before;  /* dropped when it was taken */
    int64_t heard_by; /* segments taken in when it was silent, or a -errno */
};

/* A call that was let go on: the socket is seen among others only when it has done its first step. */
struct passed_call {
    struct cut_connection what;
    pid_t pid;
    int fd;
    uint64_t inode; /* 0: none */
};
enum { CALLS_MAX = 64 };

struct host_cut {
    struct passed_call calls[CALLS_MAX]; /* the last ones */
    size_t calls_n;
    struct list parts, held;
    bool watches; /* whoever connects is met */
    unsigned made;
};

/* ---- whom a socket hears ---- */

static bool is_loopback(const char *address) {
    return str_starts(address, "127.") || str_eq(address, "::1");
}

static bool closes(const struct half *p, const struct cut_connection *c, int *ret_peer) {
    const struct part_order *o = &p->order;
    int peer = o->by_table ? -1 : part_order_peer(o, c->address);
    if (peer < 0 || part_order_keeps(o, c->address, c->ours, c->theirs) ||
        !(part_order_plane(o, c->ours, c->theirs) & o->planes))
        return false;
    *ret_peer = peer;
    return o->peers[peer].deaf || (c->begins && o->peers[peer].mute);
}

/* To everybody, or not at all, as it cannot tell its callers apart. */
static bool closes_listener(const struct half *p) {
    static const char nobody[] = "";
    return !p->order.by_table && p->order.listeners && part_order_peer(&p->order, nobody) >= 0;
}

/* The first partition that closes it; NULL: none does. */
static struct half *closer_of(const struct host_cut *k, const struct cut_connection *c,
                              int *ret_peer) {
    *ret_peer = -1;
    if (is_loopback(c->address))
        return NULL;
    list_each(it, &k->parts) {
        struct half *p = list_entry(it, struct half, link);
        if (c->listens ? closes_listener(p) : closes(p, c, ret_peer))
            return p;
    }
    return NULL;
}

/* ---- what is held ---- */

static bool is_held(const struct host_cut *k, uint64_t inode) {
    list_each(it,
              &k->held) if (list_entry(it, struct deaf_socket, link)->inode == inode) return true;
    return false;
}

/* Of one that does not tell it is not known that nothing has come. */
static struct tally tally_of(const struct deaf_socket *h) {
    int64_t now = socket_taken_in(h->fd);
    return (struct tally){socket_drops(h->fd) - h->before,
                          now < 0 || h->heard_by < 0 ? 1 : (uint64_t)(now - h->heard_by), 0, 0};
}

static void add(struct tally *sum, const struct tally *t) {
    sum->dropped += t->dropped;
    sum->passed += t->passed;
    sum->connections += t->connections;
}

static void let_go(struct deaf_socket *h) {
    socket_silence(h->fd, false);
    close(h->fd);
    list_remove(&h->link);
    free(h);
}

static void begin_counting(struct deaf_socket *h, struct half *p, int peer) {
    h->of = p;
    h->peer = peer;
    h->before = socket_drops(h->fd);
    h->heard_by = socket_taken_in(h->fd);
    if (peer >= 0)
        p->peers[peer].connections++;
}

/* Another partition closes it too: it stays deaf, and is that one's from now on. */
static void let_go_or_pass_on(struct host_cut *k, struct deaf_socket *h) {
    int peer;
    struct half *p = closer_of(k, &h->what, &peer);
    if (p)
        begin_counting(h, p, peer);
    else
        let_go(h);
}

/* It was closed meanwhile, or is nothing that packets come to: connect itself fails. */
static bool needs_no_cut(int code) {
    return code == -ESRCH || code == -EBADF || code == -ENOTSOCK || code == -EOPNOTSUPP ||
           code == -ENOPROTOOPT;
}

static int take(pid_t pid, int number, uint64_t *inode) {
    struct process p;
    struct stat st;
    int r = process_open(pid, &p, NULL);
    FILE_CLOSE int fd = r ? r : socket_take(p.pidfd, number);
    if (r == 0)
        process_close(&p);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) != 0 || (*inode && st.st_ino != *inode))
        return -EBADF; /* the number is another socket's by now */
    *inode = st.st_ino;
    return file_keep(&fd);
}

/* late: it should have been caught before it began, so all that it has heard has come through.
 * Returns 1 when it was silenced, 0 when there was nothing to do, or a -errno. */
static int hold(struct host_cut *k, const struct cut_connection *c, pid_t pid, int number,
                uint64_t inode, bool late) {
    int peer;
    struct half *p = closer_of(k, c, &peer);
    if (!p || (inode && is_held(k, inode)))
        return 0;
    FILE_CLOSE int fd = take(pid, number, &inode);
    int r = fd < 0 ? fd : is_held(k, inode) ? -EBADF : socket_silence(fd, true);
    if (r)
        return needs_no_cut(r) ? 0 : r;
    struct deaf_socket *h = mem_new(struct deaf_socket);
    *h = (struct deaf_socket){.what = *c, .fd = file_keep(&fd), .inode = inode};
    begin_counting(h, p, peer);
    if (late)
        h->heard_by = 0;
    p->late += late;
    list_append(&k->held, &h->link);
    return 1;
}

/* ---- all there are ---- */

static int hold_socket(struct host_cut *k, const struct own_socket *s, struct texts *missed,
                       bool late) {
    struct cut_connection c = {.ours = s->line.local_port,
                               .theirs = s->line.remote_port,
                               .listens = s->line.state == SOCKET_LISTENS};
    if (!c.listens && str_eq(s->line.local, s->line.remote))
        return 0;
    str_copy(c.address, sizeof(c.address), c.listens ? s->line.local : s->line.remote);
    int r = hold(k, &c, s->pid, s->fd, s->line.inode, late && !c.listens);
    if (r < 0 && missed)
        texts_add(missed, "a connection of process %d with %s: %s", (int)s->pid, s->line.remote,
                  strerror(-r));
    return r > 0;
}

/* Returns how many were silenced. */
static size_t sweep(struct host_cut *k, struct texts *missed, bool late) {
    struct own_sockets all;
    size_t caught = 0;
    own_sockets_take(&all, missed);
    for (size_t i = 0; i < all.n; i++)
        caught += (size_t)hold_socket(k, &all.v[i], missed, late);
    own_sockets_fini(&all);
    return caught;
}

static bool is_by_sockets(const struct host_cut *k) {
    list_each(it, &k->parts) if (!list_entry(it, struct half, link)->order.by_table) return true;
    return false;
}

/* ---- connections to come ---- */

static bool read_destination(const struct sockaddr_storage *to, char ret[PART_ADDRESS_MAX],
                             uint16_t *ret_port) {
    const struct sockaddr_in *four = (const void *)to;
    const struct sockaddr_in6 *six = (const void *)to;
    if (to->ss_family == AF_INET) {
        *ret_port = ntohs(four->sin_port);
        return inet_ntop(AF_INET, &four->sin_addr, ret, PART_ADDRESS_MAX) != NULL;
    }
    if (to->ss_family != AF_INET6)
        return false;
    *ret_port = ntohs(six->sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        return inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, ret, PART_ADDRESS_MAX) != NULL;
    return inet_ntop(AF_INET6, &six->sin6_addr, ret, PART_ADDRESS_MAX) != NULL;
}

static uint64_t inode_of(pid_t pid, int fd) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static void remember(struct host_cut *k, const struct cut_connection *c, pid_t pid, int fd) {
    k->calls[k->calls_n++ % CALLS_MAX] = (struct passed_call){*c, pid, fd, inode_of(pid, fd)};
}

/* It waits until it goes on with a deaf socket: there is no answer that it could hear. */
void host_cut_meet(struct host_cut *k, const struct watched_call *call) {
    struct cut_connection c = {.begins = true};
    int fd = (int)call->args[0];
    if (read_destination(&call->to, c.address, &c.theirs) &&
        hold(k, &c, call->pid, fd, 0, false) == 0)
        remember(k, &c, call->pid, fd);
}

/* Those that were let go on just before a cut, and have not begun yet. */
static size_t meet_passed(struct host_cut *k) {
    size_t caught = 0, n = k->calls_n < CALLS_MAX ? k->calls_n : CALLS_MAX;
    for (size_t i = 0; i < n; i++) {
        struct passed_call *p = &k->calls[i];
        if (p->inode && inode_of(p->pid, p->fd) == p->inode &&
            hold(k, &p->what, p->pid, p->fd, p->inode, false) == 1)
            caught++;
    }
    return caught;
}

void host_cut_watches(struct host_cut *k, bool watches) {
    k->watches = watches;
}

/* ---- counters ---- */

static void take_count(void *arg, uint32_t tag, uint64_t packets) {
    struct half *p = arg;
    size_t peer = part_rules_peer(tag);
    if (peer >= p->order.peers_n)
        return;
    if (part_rules_is_passed(tag))
        p->now[peer].passed += packets;
    else
        p->now[peer].dropped += packets;
    if (part_rules_is_said(tag) && !part_rules_is_passed(tag))
        p->now[peer].unsaid += packets;
}

/* Of each peer what was counted until now. */
static void count(struct host_cut *k, struct half *p) {
    memcpy(p->now, p->peers, p->order.peers_n * sizeof(*p->now));
    if (p->order.by_table)
        owned_table_count(&p->table, take_count, p, NULL);
    list_each(it, &k->held) {
        const struct deaf_socket *h = list_entry(it, struct deaf_socket, link);
        struct tally t = tally_of(h);
        if (h->of == p && h->peer >= 0)
            add(&p->now[h->peer], &t);
    }
}

static void put_peers(const struct half *p, struct json_writer *w) {
    json_array(w, "peers");
    for (size_t i = 0; i < p->order.peers_n; i++) {
        json_object(w, NULL);
        json_put_string(w, "name", p->order.peers[i].name);
        json_put_i64(w, "dropped", (int64_t)p->now[i].dropped);
        json_put_i64(w, "unsaid", (int64_t)p->now[i].unsaid);
        json_put_i64(w, "passed", (int64_t)p->now[i].passed);
        json_put_i64(w, "connections", (int64_t)p->now[i].connections);
        json_end_object(w);
    }
    json_end_array(w);
}

void host_cut_count(struct host_cut *k, struct json_writer *w) {
    if (is_by_sockets(k))
        sweep(k, NULL, true);
    json_array(w, "cuts");
    list_each(it, &k->parts) {
        struct half *p = list_entry(it, struct half, link);
        count(k, p);
        json_object(w, NULL);
        json_put_string(w, "name", p->order.name);
        json_put_string(w, "way", p->order.by_table ? "table" : "sockets");
        json_put_i64(w, "late", (int64_t)p->late);
        put_peers(p, w);
        json_end_object(w);
    }
    json_end_array(w);
}

/* ---- one partition ---- */

static struct half *find(const struct host_cut *k, const char *name) {
    list_each(it, &k->parts) {
        struct half *p = list_entry(it, struct half, link);
        if (str_eq(p->order.name, name))
            return p;
    }
    return NULL;
}

static void part_free(struct half *p) {
    owned_table_close(&p->table);
    part_order_fini(&p->order);
    free(p->peers);
    free(p->now);
    free(p);
}

static void end(struct host_cut *k, struct half *p) {
    list_remove(&p->link);
    list_each_safe(it, next, &k->held) {
        struct deaf_socket *h = list_entry(it, struct deaf_socket, link);
        if (h->of == p)
            let_go_or_pass_on(k, h);
    }
    part_free(p);
}

static int set_table(struct host_cut *k, struct half *p, struct err *err) {
    char name[32];
    size_t n;
    snprintf(name, sizeof(name), "rankquake-%d-%u", (int)getpid(), ++k->made);
    int r = owned_table_open(&p->table, name, err);
    if (r)
        return r;
    struct owned_rule *v = part_rules_make(&p->order, &n);
    r = owned_table_set(&p->table, v, n, err);
    free(v);
    return r;
}

/* A helper that is cut off from its harness would undo the cut by itself, and end. */
static int keep_control(struct part_order *o, struct err *err) {
    bool all = false, by_ssh = part_order_keep_ssh(o, getenv("SSH_CONNECTION"));
    for (size_t i = 0; i < o->peers_n; i++)
        all |= o->peers[i].all;
    if (!all || by_ssh || o->says_keep)
        return 0;
    return err_say(err, -EINVAL,
                   "part: by which way we are reached is not known here (no SSH_CONNECTION): say "
                   "what to keep before this host is cut off from everybody");
}

static int make(struct host_cut *k, const struct json *order, struct half **ret, struct err *err) {
    struct half *p = mem_new(struct half);
    p->table = OWNED_TABLE_NONE;
    int r = part_order_take(order, &p->order, err);
    p->peers = mem_array(struct tally, p->order.peers_n + 1);
    p->now = mem_array(struct tally, p->order.peers_n + 1);
    if (r == 0 && p->order.by_table && (r = keep_control(&p->order, err)) == 0)
        r = set_table(k, p, err);
    if (r) {
        part_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

/* What one of this name has counted goes on, peer by peer. */
static void succeed(struct host_cut *k, struct half *p, struct half *old) {
    count(k, old);
    for (size_t i = 0; i < old->order.peers_n; i++)
        for (size_t j = 0; j < p->order.peers_n; j++)
            if (str_eq(old->order.peers[i].name, p->order.peers[j].name))
                p->peers[j] = old->now[i];
    p->late = old->late;
}

int host_cut_part(struct host_cut *k, const struct json *order, struct json_writer *w,
                  struct err *err) {
    TEXTS_FINI struct texts missed = {0};
    struct half *p, *old;
    int r = make(k, order, &p, err);
    if (r)
        return r;
    if ((old = find(k, p->order.name)) != NULL)
        succeed(k, p, old);
    list_append(&k->parts, &p->link);
    if (old)
        end(k, old);
    size_t caught = p->order.by_table ? 0 : sweep(k, &missed, false) + meet_passed(k);
    if (!p->order.by_table && !k->watches)
        texts_add(&missed, "connections that the job opens from now on, as its calls are not "
                           "watched (`watch` of setup)");
    json_put_string(w, "way", p->order.by_table ? "table" : "sockets");
    json_put_i64(w, "caught", (int64_t)caught);
    json_put_strings(w, "missed", texts_list(&missed));
    return 0;
}

void host_cut_mend(struct host_cut *k, const char *name, struct json_writer *w) {
    struct half *p = find(k, name);
    if (!p)
        return;
    if (!p->order.by_table)
        sweep(k, NULL, true);
    count(k, p);
    json_put_i64(w, "late", (int64_t)p->late);
    put_peers(p, w);
    end(k, p);
}

void host_cut_mend_all(struct host_cut *k, bool silenced_too, struct texts *ret_names) {
    list_each_safe(it, next, &k->parts) {
        struct half *p = list_entry(it, struct half, link);
        if (p->order.listeners && !silenced_too)
            continue;
        texts_add(ret_names, "%s", p->order.name);
        end(k, p);
    }
}

/* ---- its life ---- */

struct host_cut *host_cut_new(void) {
    struct host_cut *k = mem_new(struct host_cut);
    list_init(&k->parts);
    list_init(&k->held);
    return k;
}

struct host_cut *host_cut_free(struct host_cut *k) {
    TEXTS_FINI struct texts names = {0};
    if (!k)
        return NULL;
    host_cut_mend_all(k, true, &names);
    free(k);
    return NULL;
}

/* ---- when the helper is gone ---- */

static void mend_socket(void *arg, pid_t pid, int fd, uint64_t inode) {
    FILE_CLOSE int copy = socket_take(*(const int *)arg, fd);
    if (copy >= 0)
        socket_mend(copy);
}

void host_cut_mend_descendants(void) {
    pid_t *pids;
    size_t n = process_list_descendants(getpid(), &pids);
    for (size_t i = 0; i < n; i++) {
        struct process p;
        if (process_open(pids[i], &p, NULL) != 0)
            continue;
        sockets_held(pids[i], mend_socket, &p.pidfd);
        process_close(&p);
    }
    free(pids);
}
