#include "scenarios/jobs/ranktrain/net/bootstrap.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { RETRY_NS = 20 * 1000 * 1000 };

enum bootstrap_answer_code {
    ACCEPTED = 1,
    REFUSED_RUN,   /* another job listens there */
    REFUSED_OLDER, /* the caller's round is over */
    REFUSED_NEWER, /* the listener's round is over; its successor may come */
    REFUSED_WORLD,
    REFUSED_JOB,
    REFUSED_RANK
};

struct bootstrap_answer {
    uint64_t magic;
    uint32_t code;
    int32_t world;
    int64_t round;
};

static void digest(const char *text, unsigned char ret[DOOR_DIGEST]) {
    char hex[65];
    sha256_of(text, strlen(text), hex);
    memcpy(ret, hex, DOOR_DIGEST);
}

static enum bootstrap_answer_code judge(const struct bootstrap *b, const struct door_hello *h) {
    unsigned char run[DOOR_DIGEST];
    digest(b->request.run_id, run);
    if (h->purpose != DOOR_JOIN || memcmp(h->run, run, sizeof(run)) != 0)
        return REFUSED_RUN;
    if (h->round != b->request.round)
        return h->round < b->request.round ? REFUSED_OLDER : REFUSED_NEWER;
    if (h->world != b->request.world)
        return REFUSED_WORLD;
    if (memcmp(h->job, b->request.job, sizeof(h->job)) != 0)
        return REFUSED_JOB;
    if (h->rank < 1 || h->rank >= h->world || b->group.links[h->rank] >= 0)
        return REFUSED_RANK;
    return ACCEPTED;
}

/* Small enough to fit into the socket's buffer: never waits. */
static void answer(const struct bootstrap *b, int fd, enum bootstrap_answer_code code) {
    struct bootstrap_answer a = {
        .magic = DOOR_MAGIC, .code = code, .world = b->request.world, .round = b->request.round};
    struct link_wait now = {.deadline_ns = deadline_now_ns(), .wake_fd = -1};
    (void)link_send(fd, &a, sizeof(a), &now);
}

static void missing(const struct bootstrap *b, char *ret, size_t size) {
    size_t n = 0;
    ret[0] = 0;
    for (int r = 1; r < b->request.world && n < size; r++)
        if (b->group.links[r] < 0)
            n += (size_t)snprintf(ret + n, size - n, "%s%d", n ? ", " : "", r);
}

static int gather_failed(const struct bootstrap *b, int r, int gone, struct err *err) {
    char who[128], name[LINK_NAME];
    if (r == -EPIPE)
        return err_say(err, -ECONNRESET, "rank %d at %s left while the group was forming", gone,
                       link_name(&b->group.peers[gone], name));
    missing(b, who, sizeof(who));
    return r == -ECANCELED
               ? r
               : err_set(err, r, "waiting on port %d for rank %s", b->request.master_port, who);
}

/* Rank 0: waits until all others have called. */
static int gather(struct bootstrap *b, struct err *err) {
    int r = door_open(&b->master, b->request.master_port, err);
    if (r == -EADDRINUSE)
        return err_say(err, r,
                       "MASTER_PORT %d is in use: another job, or torchrun's own store "
                       "(then set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1)",
                       b->request.master_port);
    if (r >= 0)
        r = door_open(&b->group.door, 0, err);
    for (int joined = 1; r >= 0 && joined < b->request.world;) {
        struct door_hello h;
        int watched[BOOTSTRAP_MEMBERS], ranks[BOOTSTRAP_MEMBERS] = {0}, n = 0, gone = 0;
        for (int i = 1; i < b->request.world; i++)
            if (b->group.links[i] >= 0) {
                ranks[n] = i;
                watched[n++] = b->group.links[i];
            }
        int fd = r = door_wait(&b->master, &b->request.wait, watched, n, &h, &gone);
        if (r < 0)
            return gather_failed(b, r, ranks[gone], err);
        enum bootstrap_answer_code code = judge(b, &h);
        answer(b, fd, code);
        if (code != ACCEPTED) {
            close(fd);
            continue;
        }
        b->group.links[h.rank] = fd;
        link_peer(fd, &b->group.peers[h.rank]);
        link_set_port(&b->group.peers[h.rank], h.port);
        joined++;
    }
    return r < 0 ? r : 0;
}

static int refused(const struct bootstrap *b, const struct bootstrap_answer *a, const char *name,
                   struct err *err) {
    int mine = b->request.rank;
    switch (a->code) {
    case REFUSED_OLDER:
        return err_say(err, -ESTALE, "round %lld is over: rank 0 at %s is of round %lld",
                       (long long)b->request.round, name, (long long)a->round);
    case REFUSED_JOB:
        return err_say(err, -EINVAL,
                       "rank 0 at %s refused rank %d: it has other options, another build or "
                       "another device or OpenBLAS kernel; all ranks must compute alike",
                       name, mine);
    case REFUSED_RANK:
        return err_say(err, -EEXIST, "rank 0 at %s refused rank %d: it has that rank already", name,
                       mine);
    case REFUSED_NEWER:
        return err_say(err, -EAGAIN, "rank 0 at %s is still of round %lld", name,
                       (long long)a->round);
    case REFUSED_WORLD:
        return err_say(err, -EAGAIN, "rank 0 at %s has a world of %d", name, a->world);
    default:
        return err_say(err, -EAGAIN, "at %s listens another job", name);
    }
}

/* One attempt to join. -EAGAIN: another may succeed. An attempt that is cut off by the deadline
 * leaves standing what the one before it has learnt. */
static int call(struct bootstrap *b, const struct link_address *master, struct err *why) {
    const struct bootstrap_request *q = &b->request;
    struct door_hello h = {.magic = DOOR_MAGIC,
                           .purpose = DOOR_JOIN,
                           .rank = q->rank,
                           .world = q->world,
                           .port = link_port(b->group.door.listener),
                           .round = q->round};
    struct bootstrap_answer a = {0};
    char name[LINK_NAME];
    digest(q->run_id, h.run);
    memcpy(h.job, q->job, sizeof(h.job));
    link_name(master, name);
    int fd = link_connect(master, &q->wait);
    int r = fd < 0 ? fd : link_send(fd, &h, sizeof(h), &q->wait);
    if (r == 0)
        r = link_receive(fd, &a, sizeof(a), &q->wait);
    if (r == 0 && a.magic == DOOR_MAGIC && a.code == ACCEPTED) {
        b->group.links[0] = fd;
        return 0;
    }
    if (r == 0)
        r = a.magic == DOOR_MAGIC ? refused(b, &a, name, why)
                                  : err_say(why, -EAGAIN, "at %s listens something else", name);
    else if (r != -ECANCELED && !(r == -ETIMEDOUT && why->code))
        err_set(why, r, "rank 0 at %s does not answer", name);
    link_close(&fd);
    return r == -ECANCELED || r == -ESTALE || r == -EINVAL || r == -EEXIST ? r : -EAGAIN;
}

/* The other ranks. Nobody can announce that a port is about to be opened, so it is tried until it
 * is. */
static int join(struct bootstrap *b, struct err *err) {
    const struct bootstrap_request *q = &b->request;
    struct link_address master;
    struct err why = {0};
    int r = door_open(&b->group.door, 0, &why);
    while (r == 0 || r == -EAGAIN) {
        struct link_wait pause = {.deadline_ns = deadline_in_ns(RETRY_NS),
                                  .wake_fd = q->wait.wake_fd};
        r = link_resolve(q->master_addr, q->master_port, &master, &why);
        if (r == 0)
            r = call(b, &master, &why);
        if (r == 0) {
            b->group.peers[0] = master;
            return 0;
        }
        if (r == -EAGAIN && deadline_now_ns() >= q->wait.deadline_ns) {
            err_wrap(&why, "no group within the deadline: ");
            r = -ETIMEDOUT;
        } else if (r == -EAGAIN && link_ready(-1, 0, &pause) == -ECANCELED)
            r = -ECANCELED;
    }
    if (err && r != -ECANCELED)
        *err = why;
    return r;
}

/* Rank 0 knows the others by the addresses they called from. One that called over loopback is on
 * rank 0's host: the rest reach it where they reached rank 0. */
static int share_table(struct bootstrap *b, struct err *err) {
    struct peer_group *g = &b->group;
    struct {
        unsigned char session[DOOR_SESSION];
        int32_t ring_port; /* of rank 0 */
        struct link_address peers[BOOTSTRAP_MEMBERS];
    } table = {.ring_port = link_port(g->door.listener)};
    if (g->rank == 0 && getrandom(table.session, sizeof(table.session), 0) < 0)
        return err_set(err, -errno, "getrandom");
    if (g->rank == 0)
        memcpy(table.peers, g->peers, sizeof(g->peers));
    int r = bootstrap_share(b, &table, sizeof(table), err);
    if (r < 0)
        return r;
    memcpy(g->session, table.session, sizeof(g->session));
    if (g->rank == 0)
        return 0;
    struct link_address master = g->peers[0];
    memcpy(g->peers, table.peers, sizeof(g->peers));
    link_set_port(&master, table.ring_port);
    g->peers[0] = master;
    for (int i = 1; i < g->world; i++)
        if (link_is_loopback(&g->peers[i])) {
            int port = link_port_of(&g->peers[i]);
            g->peers[i] = master;
            link_set_port(&g->peers[i], port);
        }
    return 0;
}

int bootstrap_join(struct bootstrap *ret, const struct bootstrap_request *request,
                   struct err *err) {
    *ret = (struct bootstrap){.request = *request,
                              .group = {.rank = request->rank, .world = request->world}};
    ret->group.door.listener = ret->master.listener = -1;
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++)
        ret->group.links[i] = -1;
    if (request->world == 1)
        return 0;
    int r = request->rank == 0 ? gather(ret, err) : join(ret, err);
    return r < 0 ? r : share_table(ret, err);
}

static int lost_while_forming(const struct bootstrap *b, int r, int rank, struct err *err) {
    char name[LINK_NAME];
    if (r == 0 || r == -ECANCELED)
        return r;
    return err_set(err, r, "rank %d at %s, while the group was forming", rank,
                   link_name(&b->group.peers[rank], name));
}

/* Rank 0 to all but one (-1: to all). */
static int send_to_others(struct bootstrap *b, int but, const void *data, size_t n,
                          struct err *err) {
    int r = 0;
    for (int rank = 1; r == 0 && rank < b->request.world; rank++)
        if (rank != but)
            r = lost_while_forming(b, link_send(b->group.links[rank], data, n, &b->request.wait),
                                   rank, err);
    return r;
}

int bootstrap_share_from(struct bootstrap *b, int rank, void *data, size_t n, struct err *err) {
    const struct bootstrap_request *q = &b->request;
    int r = 0;
    if (q->rank == 0 && rank != 0)
        r = lost_while_forming(b, link_receive(b->group.links[rank], data, n, &q->wait), rank, err);
    if (q->rank == 0)
        return r < 0 ? r : send_to_others(b, rank, data, n, err);
    r = q->rank == rank ? link_send(b->group.links[0], data, n, &q->wait)
                        : link_receive(b->group.links[0], data, n, &q->wait);
    return lost_while_forming(b, r, 0, err);
}

int bootstrap_share(struct bootstrap *b, void *data, size_t n, struct err *err) {
    return bootstrap_share_from(b, 0, data, n, err);
}

int bootstrap_exchange(struct bootstrap *b, const void *mine, size_t n, void *ret,
                       struct err *err) {
    const struct bootstrap_request *q = &b->request;
    char *all = ret;
    int r = 0;
    if (q->rank != 0)
        r = lost_while_forming(b, link_send(b->group.links[0], mine, n, &q->wait), 0, err);
    else
        memcpy(all, mine, n);
    for (int rank = 1; r == 0 && q->rank == 0 && rank < q->world; rank++)
        r = lost_while_forming(
            b, link_receive(b->group.links[rank], all + (size_t)rank * n, n, &q->wait), rank, err);
    return r < 0 ? r : bootstrap_share(b, all, (size_t)q->world * n, err);
}

int bootstrap_meet(struct bootstrap *b, struct err *err) {
    char here = 1, all[BOOTSTRAP_MEMBERS];
    return bootstrap_exchange(b, &here, 1, all, err);
}

void bootstrap_end(struct bootstrap *b) {
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++)
        link_close(&b->group.links[i]);
    door_close(&b->group.door);
    door_close(&b->master);
}
