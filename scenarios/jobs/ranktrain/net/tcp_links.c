#include "scenarios/jobs/ranktrain/net/tcp_links.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int tcp_links_lost(const struct tcp_links *l, int rank, int code, struct err *err) {
    if (code == -ECONNRESET)
        return err_say(err, code, "rank %d at %s is gone: it closed its connection", rank,
                       l->names[rank]);
    return err_set(err, code, "connection with rank %d at %s", rank, l->names[rank]);
}

/* Returns a descriptor or an error. */
static int call(const struct tcp_links *l, const struct peer_group *g, int rank,
                enum door_purpose purpose, const struct link_wait *w, struct err *err) {
    struct door_hello h = {
        .magic = DOOR_MAGIC, .purpose = purpose, .rank = g->rank, .world = g->world};
    memcpy(h.session, g->session, sizeof(h.session));
    int fd = link_connect(&g->peers[rank], w), r = fd;
    if (fd >= 0)
        r = link_send(fd, &h, sizeof(h), w);
    if (r >= 0)
        return fd;
    link_close(&fd);
    return r == -ECANCELED ? r : err_set(err, r, "connect to rank %d at %s", rank, l->names[rank]);
}

/* The ranks that are still to call: the one before in the ring, and those above. */
static int missing(const struct tcp_links *l, const struct peer_group *g) {
    if (l->prev_fd < 0)
        return l->prev;
    for (int rank = g->rank + 1; g->pairs && rank < g->world; rank++)
        if (l->pairs[rank] < 0)
            return rank;
    return -1;
}

/* Where the caller belongs; NULL: it is none of ours. */
static int *place_of(struct tcp_links *l, const struct peer_group *g, const struct door_hello *h) {
    if (h->world != g->world || memcmp(h->session, g->session, sizeof(h->session)) != 0)
        return NULL;
    if (h->purpose == DOOR_RING && h->rank == l->prev && l->prev_fd < 0)
        return &l->prev_fd;
    if (h->purpose == DOOR_PAIR && g->pairs && h->rank > g->rank && h->rank < g->world &&
        l->pairs[h->rank] < 0)
        return &l->pairs[h->rank];
    return NULL;
}

static int admit(struct tcp_links *l, struct peer_group *g, const struct link_wait *w,
                 struct err *err) {
    for (int rank; (rank = missing(l, g)) >= 0;) {
        struct door_hello h;
        int gone, fd = door_wait(&g->door, w, &l->next_fd, 1, &h, &gone);
        if (fd == -ECANCELED)
            return fd;
        if (fd == -EPIPE)
            return tcp_links_lost(l, l->next, -ECONNRESET, err);
        if (fd < 0)
            return err_set(err, fd, "waiting for the connection of rank %d at %s", rank,
                           l->names[rank]);
        int *place = place_of(l, g, &h);
        if (place)
            *place = fd;
        else
            close(fd);
    }
    return 0;
}

int tcp_links_open(struct tcp_links *ret, struct peer_group *g, const struct link_wait *w,
                   struct err *err) {
    struct tcp_links *l = ret;
    *l = (struct tcp_links){.rank = g->rank,
                            .world = g->world,
                            .wake_fd = w->wake_fd,
                            .next = (g->rank + 1) % g->world,
                            .prev = (g->rank + g->world - 1) % g->world,
                            .next_fd = -1,
                            .prev_fd = -1};
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++)
        l->pairs[i] = -1;
    if (g->world == 1)
        return 0;
    for (int i = 0; i < g->world; i++)
        if (i != g->rank)
            link_name(&g->peers[i], l->names[i]);
    int r = l->next_fd = call(l, g, l->next, DOOR_RING, w, err);
    for (int i = 0; r >= 0 && g->pairs && i < g->rank; i++)
        r = l->pairs[i] = call(l, g, i, DOOR_PAIR, w, err);
    return r < 0 ? r : admit(l, g, w, err);
}

void tcp_links_close(struct tcp_links *l) {
    link_close(&l->next_fd);
    link_close(&l->prev_fd);
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++)
        link_close(&l->pairs[i]);
}

void tcp_links_shut(struct tcp_links *l) {
    shutdown(l->next_fd, SHUT_RDWR);
    shutdown(l->prev_fd, SHUT_RDWR);
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++)
        if (l->pairs[i] >= 0)
            shutdown(l->pairs[i], SHUT_RDWR);
    l->shut = true;
}
