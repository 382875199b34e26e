/* How a rank gets into the ring: it calls the root, waits to be called by it - for ever, when the
 * root is gone -, compares the devices, connects to the next rank and lets the one before in; every two ranks have a connection of their own besides. */
#include "tests/fakes/nccl/form.h"
#include "tests/fakes/nccl/overrides.h"

#include <cuda_runtime_api.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NCCL_HOSTID, or the host's name and the boot's id: who has both in common shares devices. */
static void describe(struct rank_place *p, int device) {
    const char *given = getenv("NCCL_HOSTID");
    char boot[64] = "", name[48] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f && fgets(boot, sizeof(boot), f))
        boot[strcspn(boot, "\n")] = 0;
    if (f)
        fclose(f);
    gethostname(name, sizeof(name) - 1);
    if (given && *given)
        snprintf(p->host, sizeof(p->host), "%s", given);
    else
        snprintf(p->host, sizeof(p->host), "%s %s", name, boot);
    cudaDeviceGetPCIBusId(p->bus, sizeof(p->bus), device);
}

static ncclResult_t call_root(struct ncclComm *c, const struct rank_place *place, int called_at,
                              struct rank_place ret[RANKS]) {
    struct id id;
    struct hello h;
    int fd = -1;
    memcpy(&id, &c->id, sizeof(id));
    memset(&h, 0, sizeof(h));
    h.magic = id.magic;
    h.world = c->world;
    h.place = *place;
    ncclResult_t r = socket_connect(&id.root, c->abort_fd, &fd);
    if (r == ncclSuccess)
        r = socket_send(fd, &h, sizeof(h), c->abort_fd);
    socket_close(&fd);
    if (r == ncclSuccess)
        r = socket_accept(called_at, c->abort_fd, &fd);
    if (r == ncclSuccess)
        r = socket_receive(fd, ret, RANKS * sizeof(*ret), c->abort_fd);
    socket_close(&fd);
    return r;
}

static ncclResult_t compare(const struct ncclComm *c, const struct rank_place *p) {
    for (int i = 0; i < c->world; i++)
        if (i != c->rank && strcmp(p[i].host, p[c->rank].host) == 0 &&
            strcmp(p[i].bus, p[c->rank].bus) == 0)
            return complain(ncclInvalidUsage,
                            "Duplicate GPU detected : rank %d and rank %d both on CUDA device %s",
                            c->rank, i, p[i].bus);
    return ncclSuccess;
}

/* What a rank says first to another. */
struct greeting {
    uint64_t magic;
    int rank, of_ring; /* or of the pair */
};

static ncclResult_t greet(struct ncclComm *c, const struct rank_place *to, uint64_t magic,
                          int of_ring, int *ret) {
    struct greeting g;
    memset(&g, 0, sizeof(g));
    g = (struct greeting){magic, c->rank, of_ring};
    ncclResult_t r = socket_connect(&to->ring, c->abort_fd, ret);
    return r == ncclSuccess ? socket_send(*ret, &g, sizeof(g), c->abort_fd) : r;
}

static bool all_are_in(const struct ncclComm *c) {
    for (int i = c->rank + 1; i < c->world; i++)
        if (c->pairs[i] < 0)
            return false;
    return c->prev >= 0;
}

/* A stray caller is sent away. */
static ncclResult_t let_in(struct ncclComm *c, uint64_t magic) {
    while (!all_are_in(c)) {
        struct greeting g = {0};
        int fd = -1;
        ncclResult_t r = socket_accept(c->listener, c->abort_fd, &fd);
        if (r != ncclSuccess)
            return r;
        if (socket_receive(fd, &g, sizeof(g), c->abort_fd) == ncclSuccess && g.magic == magic &&
            g.rank >= 0 && g.rank < c->world)
            *(g.of_ring ? &c->prev : &c->pairs[g.rank]) = fd;
        else
            socket_close(&fd);
        if (comm_aborted(c))
            return ncclInternalError;
    }
    return ncclSuccess;
}

static ncclResult_t close_ring(struct ncclComm *c, const struct rank_place *p) {
    uint64_t magic, lap = 0, heard;
    memcpy(&magic, &c->id, sizeof(magic));
    ncclResult_t r = greet(c, &p[(c->rank + 1) % c->world], magic, 1, &c->next);
    for (int i = 0; i < c->rank && r == ncclSuccess; i++)
        r = greet(c, &p[i], magic, 0, &c->pairs[i]);
    if (r == ncclSuccess)
        r = let_in(c, magic);
    /* As often as it takes for everybody to have heard of everybody. */
    for (int i = 1; i < c->world && r == ncclSuccess; i++)
        r = socket_exchange(c->next, &lap, sizeof(lap), c->prev, &heard, sizeof(heard),
                            c->abort_fd);
    return r;
}

static void hang(struct ncclComm *c) {
    struct pollfd p = {.fd = c->abort_fd, .events = POLLIN};
    while (poll(&p, 1, -1) <= 0)
        continue;
}

static ncclResult_t form(struct ncclComm *c) {
    struct rank_place *places = calloc(RANKS, sizeof(*places)), place;
    int called_at = -1;
    memset(&place, 0, sizeof(place));
    place.rank = c->rank;
    describe(&place, c->device);
    ncclResult_t r = socket_place(&place.root);
    place.ring = place.root;
    if (r == ncclSuccess)
        r = socket_listen(&place.root, &called_at);
    if (r == ncclSuccess)
        r = socket_listen(&place.ring, &c->listener);
    if (r == ncclSuccess)
        r = call_root(c, &place, called_at, places);
    socket_close(&called_at);
    if (r == ncclSuccess)
        r = compare(c, places);
    if (r == ncclSuccess && c->world > 1)
        r = close_ring(c, places);
    socket_close(&c->listener);
    free(places);
    return r;
}

void *comm_form(void *arg) {
    struct ncclComm *c = arg;
    cudaSetDevice(c->device);
    if (overrides()->kill_init && overrides_meet(c->rank))
        raise(SIGKILL);
    if (overrides()->hang_init && overrides_meet(c->rank))
        hang(c);
    comm_set_state(c, form(c));
    return NULL;
}
