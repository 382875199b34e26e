#include "agent/store/limits/crowd.h"

#include "agent/store/limits/bounds.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/loop.h"

#include <arpa/inet.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
    OUTSIDERS_LEAST = 1024, /* strangers and guests, where that is not more than half of all */
    FILES_KEPT = 64,        /* open files that are not connections */
    CONNECTIONS_MAX = 16384,
    CONNECTIONS_LEAST = 16,
    AT_ONCE_MAX = 256, /* that are taken before any is looked at */
    FIRST_ASKED = 16,  /* requests that a guest is served as soon as anybody */
    ADDRESS_SIZE = 16,
};

static const int64_t SILENT_NS = 100000000, IDLE_NS = 1000000000, PAUSE_NS = 100000000;
static const int64_t TURN_NS = 20000000, STARVED_NS = 50000000;

/* An address, and who comes from it: of IPv6 a network of 64 bits. */
struct crowd_origin {
    struct list node;
    unsigned char address[ADDRESS_SIZE];
    struct list outsiders; /* who was silent longest first */
    size_t n_outsiders, n;
};

struct crowd_member {
    struct list node; /* arriving, among the outsiders of its origin, or the agents */
    struct crowd *all;
    struct bufferevent *b;
    struct evhttp_connection *connection; /* NULL: arriving */
    struct crowd_origin *origin;
    int fd;
    enum crowd_rank rank;
    int64_t asked_ns; /* or came */
    bool ending, lowered;
    int asked;                /* requests */
    crowd_close_fn *on_close; /* NULL: nothing is under way */
    void *arg;
};

struct crowd {
    struct loop *loop;
    struct bounds *bounds;
    struct crowd_watch watch;
    struct evconnlistener *listener;
    struct event *arrived;     /* due when somebody has come */
    struct loop_source *again; /* due when the listener was paused */
    bool paused;
    size_t max, n_arriving, n[CROWD_RANKS];
    struct list arriving, origins, agents;
    struct crowd_member **by_fd;
    size_t by_fd_size;
    size_t n_lowered;
    struct event *turn; /* of those who are lowered */
    bool turn_due;
    int64_t turn_ns; /* when it became due, or was */
    bool equal;      /* agents do not go first for now */
};

size_t crowd_default(void) {
    struct rlimit files = {0};
    size_t max = CONNECTIONS_MAX + FILES_KEPT;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < max)
        max = files.rlim_cur;
    return max > FILES_KEPT + CONNECTIONS_LEAST ? max - FILES_KEPT : CONNECTIONS_LEAST;
}

/* ---- whose a connection is ---- */

/* -1, of who has no socket, is more than any size. */
static struct crowd_member *find_at(const struct crowd *c, struct bufferevent *b) {
    size_t at = (size_t)bufferevent_getfd(b);
    return at < c->by_fd_size ? c->by_fd[at] : NULL;
}

static struct crowd_member *find(const struct crowd *c, struct evhttp_connection *connection) {
    struct crowd_member *m = find_at(c, evhttp_connection_get_bufferevent(connection));
    return m && m->connection == connection ? m : NULL;
}

static void remember(struct crowd *c, struct crowd_member *m) {
    size_t size = c->by_fd_size ? c->by_fd_size : 64;
    while (size <= (size_t)m->fd)
        size *= 2;
    if (size > c->by_fd_size) {
        c->by_fd = realloc(c->by_fd, size * sizeof(*c->by_fd));
        if (!c->by_fd)
            abort();
        memset(c->by_fd + c->by_fd_size, 0, (size - c->by_fd_size) * sizeof(*c->by_fd));
        c->by_fd_size = size;
    }
    c->by_fd[m->fd] = m;
}

static void read_address(int fd, unsigned char ret[ADDRESS_SIZE]) {
    struct sockaddr_storage peer = {0};
    socklen_t n = sizeof(peer);
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&peer;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&peer;
    memset(ret, 0, ADDRESS_SIZE);
    if (getpeername(fd, (struct sockaddr *)&peer, &n) < 0)
        return;
    if (peer.ss_family == AF_INET) {
        ret[10] = ret[11] = 0xff;
        memcpy(ret + 12, &v4->sin_addr, 4);
    } else if (peer.ss_family == AF_INET6) {
        memcpy(ret, &v6->sin6_addr, IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) ? ADDRESS_SIZE : 8);
    }
}

static struct crowd_origin *origin_of(struct crowd *c, int fd) {
    unsigned char address[ADDRESS_SIZE];
    read_address(fd, address);
    list_each(it, &c->origins) {
        struct crowd_origin *o = list_entry(it, struct crowd_origin, node);
        if (memcmp(o->address, address, sizeof(address)) == 0)
            return o;
    }
    struct crowd_origin *o = mem_new(struct crowd_origin);
    memcpy(o->address, address, sizeof(address));
    list_init(&o->outsiders);
    list_append(&c->origins, &o->node);
    return o;
}

static const char *origin_text(const struct crowd_origin *o) {
    static char text[INET6_ADDRSTRLEN];
    struct in6_addr a;
    memcpy(&a, o->address, sizeof(a));
    if (IN6_IS_ADDR_V4MAPPED(&a))
        inet_ntop(AF_INET, o->address + 12, text, sizeof(text));
    else
        inet_ntop(AF_INET6, &a, text, sizeof(text));
    return text;
}

/* ---- where it is counted ---- */

static void place(struct crowd_member *m) {
    struct crowd *c = m->all;
    bool agent = m->rank == CROWD_AGENT;
    c->n[m->rank]++;
    m->origin->n_outsiders += !agent;
    list_append(agent ? &c->agents : &m->origin->outsiders, &m->node);
}

static void displace(struct crowd_member *m) {
    m->all->n[m->rank]--;
    m->origin->n_outsiders -= m->rank != CROWD_AGENT;
    list_remove(&m->node);
}

static void leave(struct crowd_member *m) {
    if (!m->ending)
        displace(m);
    m->all->n_lowered -= m->lowered;
    if (--m->origin->n == 0) {
        list_remove(&m->origin->node);
        free(m->origin);
    }
    m->all->by_fd[m->fd] = NULL;
    free(m);
}

/* ---- who has to go ---- */

static bool has_unread(const struct crowd_member *m) {
    int n = 0;
    return ioctl(m->fd, FIONREAD, &n) == 0 && n > 0;
}

/* What it asks is being answered, or is not read yet: it is no longer silent. */
static bool is_heard(struct crowd_member *m) {
    if (!has_unread(m))
        return false;
    displace(m);
    m->asked_ns = clock_monotonic_ns();
    place(m);
    return true;
}

static struct crowd_member *find_outsider(struct crowd *c) {
    struct crowd_origin *most = NULL;
    list_each(it, &c->origins) {
        struct crowd_origin *o = list_entry(it, struct crowd_origin, node);
        if (o->n_outsiders && (!most || o->n_outsiders > most->n_outsiders))
            most = o;
    }
    return most ? list_entry(most->outsiders.next, struct crowd_member, node) : NULL;
}

static struct crowd_member *find_idle(struct crowd *c) {
    list_each(it, &c->agents) {
        struct crowd_member *m = list_entry(it, struct crowd_member, node);
        if (!m->on_close)
            return m;
    }
    return NULL;
}

static void end(struct crowd_member *m) {
    if (m->ending)
        return;
    displace(m);
    m->ending = true;
    shutdown(m->fd, SHUT_RDWR);
}

static size_t outsiders_max(const struct crowd *c) {
    size_t most = c->max / 2 < OUTSIDERS_LEAST ? c->max / 2 : OUTSIDERS_LEAST;
    return c->max / 4 > most ? c->max / 4 : most;
}

static bool is_over(const struct crowd *c) {
    size_t outsiders = c->n[CROWD_STRANGER] + c->n[CROWD_GUEST];
    return outsiders > outsiders_max(c) || outsiders + c->n[CROWD_AGENT] > c->max;
}

static void pause_until(struct crowd *c, int64_t at_ns) {
    c->paused = true;
    if (c->listener)
        evconnlistener_disable(c->listener);
    loop_timer_at(c->again, at_ns);
}

static void resume(struct crowd *c) {
    c->paused = false;
    loop_timer_off(c->again);
    if (c->listener)
        evconnlistener_enable(c->listener);
}

/* The outsider that was silent longest, or else an agent's idle connection. Returns when it may be
 * ended. */
static int64_t find_victim(struct crowd *c, struct crowd_member **ret) {
    struct crowd_member *m = find_outsider(c);
    *ret = m;
    if (m)
        return m->asked_ns + SILENT_NS;
    *ret = m = find_idle(c);
    return m ? m->asked_ns + IDLE_NS : INT64_MAX;
}

static void make_room(struct crowd *c) {
    int64_t now_ns = clock_monotonic_ns();
    while (is_over(c)) {
        struct crowd_member *m;
        int64_t free_ns = find_victim(c, &m);
        if (free_ns > now_ns) {
            pause_until(c, free_ns - now_ns < PAUSE_NS ? free_ns : now_ns + PAUSE_NS);
            return;
        }
        if (is_heard(m))
            continue;
        bounds_hit(c->bounds, BOUND_CONNECTIONS, origin_text(m->origin), now_ns);
        end(m);
    }
    resume(c);
}

static void on_again(void *arg, int64_t now_ns) {
    make_room(arg);
}

static void on_close(struct evhttp_connection *connection, void *arg) {
    struct crowd_member *m = arg;
    struct crowd *c = m->all;
    struct bufferevent *b = m->b;
    crowd_close_fn *fn = m->on_close;
    void *fn_arg = m->arg;
    leave(m);
    c->watch.gone(c->watch.arg, b);
    if (fn)
        fn(connection, fn_arg);
    if (c->paused && !is_over(c))
        resume(c);
}

/* ---- who is served first ---- */

/* Not while something of it is due: then the next time. */
static void set_last(struct crowd_member *m, bool last) {
    if (m->lowered == last || bufferevent_priority_set(m->b, last ? LOOP_LAST : LOOP_USUAL) < 0)
        return;
    m->lowered = last;
    m->all->n_lowered += last ? 1 : (size_t)-1;
}

static void set_equal(struct crowd *c, bool equal) {
    c->equal = equal;
    list_each(it, &c->agents) set_last(list_entry(it, struct crowd_member, node), equal);
}

static void on_turn(int fd, short what, void *arg) {
    struct crowd *c = arg;
    c->turn_due = false;
    c->turn_ns = clock_monotonic_ns();
    if (c->equal)
        set_equal(c, false);
}

/* Agents that leave no time at all, as a thousand may that meet, would keep others from ever coming
 * in: then they wait in one queue with them, until those had a turn. */
static void give_turn(struct crowd *c, int64_t now_ns) {
    if (!c->n_lowered)
        return;
    if (!c->turn_due && now_ns - c->turn_ns > TURN_NS) {
        c->turn_due = true;
        c->turn_ns = now_ns;
        event_active(c->turn, EV_TIMEOUT, 0);
    } else if (c->turn_due && !c->equal && now_ns - c->turn_ns > STARVED_NS) {
        set_equal(c, true);
    }
}

/* ---- who comes ---- */

/* evhttp's callbacks have its connection as their argument: there is no other way to it before a
 * request is whole (libevent 2.1). */
static struct evhttp_connection *connection_of(struct bufferevent *b) {
    void *arg = NULL;
    bufferevent_getcb(b, NULL, NULL, NULL, &arg);
    struct evhttp_connection *connection = arg;
    return connection && evhttp_connection_get_bufferevent(connection) == b ? connection : NULL;
}

static void settle(struct crowd_member *m) {
    struct crowd *c = m->all;
    m->connection = connection_of(m->b);
    m->fd = bufferevent_getfd(m->b);
    if (!m->connection || m->fd < 0)
        abort(); /* it is another libevent than the one that we were built for */
    m->origin = origin_of(c, m->fd);
    m->origin->n++;
    m->asked_ns = clock_monotonic_ns();
    remember(c, m);
    evhttp_connection_set_closecb(m->connection, on_close, m);
    place(m);
}

/* Before anything of them is read: of events of one priority the first that is due is the first,
 * and what can be read is due when the loop has looked again. */
static void on_arrived(int fd, short what, void *arg) {
    struct crowd *c = arg;
    while (!list_empty(&c->arriving)) {
        struct crowd_member *m = list_entry(c->arriving.next, struct crowd_member, node);
        list_remove(&m->node);
        settle(m);
    }
    c->n_arriving = 0;
    make_room(c);
}

void crowd_enter(struct crowd *c, struct bufferevent *b) {
    struct crowd_member *m = mem_new(struct crowd_member);
    *m = (struct crowd_member){.all = c, .b = b};
    list_append(&c->arriving, &m->node);
    event_active(c->arrived, EV_TIMEOUT, 0);
    if (++c->n_arriving >= AT_ONCE_MAX && c->listener)
        evconnlistener_disable(c->listener);
}

void crowd_asked(struct crowd *c, struct evhttp_connection *connection, enum crowd_rank rank) {
    struct crowd_member *m = find(c, connection);
    if (!m || m->ending)
        return;
    displace(m);
    m->rank = rank > m->rank ? rank : m->rank;
    m->asked_ns = clock_monotonic_ns();
    place(m);
    if (m->rank == CROWD_AGENT) {
        set_last(m, c->equal);
        give_turn(c, m->asked_ns);
    } else if (rank == CROWD_GUEST && ++m->asked > FIRST_ASKED) {
        set_last(m, true);
    }
    if (c->paused && !is_over(c))
        resume(c);
}

void crowd_lower(struct crowd *c, struct bufferevent *b) {
    struct crowd_member *m = find_at(c, b);
    if (m && m->b == b && m->rank != CROWD_AGENT)
        set_last(m, true);
}

enum crowd_rank crowd_rank_of(const struct crowd *c, struct evhttp_connection *connection) {
    const struct crowd_member *m = find(c, connection);
    return m ? m->rank : CROWD_STRANGER;
}

const char *crowd_address(const struct crowd *c, struct evhttp_connection *connection) {
    const struct crowd_member *m = find(c, connection);
    return m ? origin_text(m->origin) : NULL;
}

size_t crowd_count(const struct crowd *c, enum crowd_rank rank) {
    return c->n[rank];
}

void crowd_on_close(struct crowd *c, struct evhttp_connection *connection, crowd_close_fn *fn,
                    void *arg) {
    struct crowd_member *m = find(c, connection);
    if (!m)
        return;
    m->on_close = fn;
    m->arg = arg;
}

void crowd_end(struct crowd *c, struct evhttp_connection *connection) {
    struct crowd_member *m = find(c, connection);
    if (m)
        end(m);
}

/* ---- the whole ---- */

struct crowd *crowd_new(struct loop *l, struct bounds *bounds, const struct crowd_watch *watch) {
    struct crowd *c = mem_new(struct crowd);
    *c = (struct crowd){.loop = l, .bounds = bounds, .watch = *watch, .max = crowd_default()};
    list_init(&c->arriving);
    list_init(&c->origins);
    list_init(&c->agents);
    c->again = loop_timer(l, on_again, c);
    c->arrived = event_new(loop_base(l), -1, 0, on_arrived, c);
    c->turn = event_new(loop_base(l), -1, 0, on_turn, c);
    if (!c->arrived || !c->turn)
        abort();
    event_priority_set(c->turn, LOOP_LAST);
    return c;
}

struct crowd *crowd_free(struct crowd *c) {
    if (!c)
        return NULL;
    list_each_safe(it, next, &c->arriving) free(list_entry(it, struct crowd_member, node));
    event_free(c->arrived);
    event_free(c->turn);
    loop_source_free(c->again);
    free(c->by_fd);
    free(c);
    return NULL;
}

void crowd_limit(struct crowd *c, size_t connections_max) {
    c->max = connections_max;
    make_room(c);
}

void crowd_listen(struct crowd *c, struct evconnlistener *listener) {
    c->listener = listener;
}

/* There may be fewer files than we counted on. */
void crowd_wait(struct crowd *c) {
    struct crowd_member *m;
    int64_t now_ns = clock_monotonic_ns();
    if (find_victim(c, &m) <= now_ns && !is_heard(m)) {
        bounds_hit(c->bounds, BOUND_CONNECTIONS, origin_text(m->origin), now_ns);
        end(m);
    }
    pause_until(c, now_ns + PAUSE_NS);
}
