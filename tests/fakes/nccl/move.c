/* The progress thread. Sums of int64 go around the ring: in the first world - 1 turns each rank adds
 * the chunk that comes to its own and passes it on, in as many again the sums go round. What one
 * rank has is handed on around the ring, and what is sent to one rank goes over the connection of
 * the two. The calls of a group are worked off one after another. */
#include "tests/fakes/nccl/comm.h"
#include "tests/fakes/nccl/overrides.h"

#include <stdlib.h>
#include <string.h>

struct chunk {
    int64_t *at;
    size_t n;
};

/* A sum that is under way. */
struct sum {
    int64_t *data, *heard;
    size_t count;
    bool drops;
};

static struct chunk chunk_of(const struct sum *s, int world, int number) {
    int i = (number % world + world) % world;
    size_t begin = s->count * (size_t)i / (size_t)world;
    return (struct chunk){s->data + begin, s->count * (size_t)(i + 1) / (size_t)world - begin};
}

/* All ranks must be at the same collective: in front of all that goes round stands which it is. */
static ncclResult_t agree(struct ncclComm *c, int step) {
    uint64_t mine = c->rounds << 8 | (unsigned)step, theirs;
    ncclResult_t r = socket_exchange(c->next, &mine, sizeof(mine), c->prev, &theirs, sizeof(theirs),
                                     c->abort_fd);
    if (r == ncclSuccess && mine != theirs)
        return complain(ncclInternalError, "the ranks are not at the same collective");
    return r;
}

static ncclResult_t turn(struct ncclComm *c, const struct sum *s, int step) {
    bool adding = step < c->world - 1;
    int shift = adding ? step : step - c->world;
    struct chunk out = chunk_of(s, c->world, c->rank - shift);
    struct chunk in = chunk_of(s, c->world, c->rank - shift - 1);
    ncclResult_t r = agree(c, step);
    if (r == ncclSuccess)
        r = socket_exchange(c->next, out.at, out.n * sizeof(*out.at), c->prev,
                            adding ? s->heard : in.at, in.n * sizeof(*in.at), c->abort_fd);
    for (size_t i = 0; r == ncclSuccess && adding && !s->drops && i < in.n; i++)
        in.at[i] += s->heard[i];
    return r;
}

/* The sums of n numbers over all ranks; ret has room for all of them. */
static ncclResult_t add_up(struct ncclComm *c, const void *data, size_t n, bool drops,
                           int64_t *ret) {
    struct sum s = {ret, calloc(n / (size_t)c->world + 1, sizeof(*ret)), n, drops};
    ncclResult_t r = ncclSuccess;
    if (ret != data)
        memcpy(ret, data, n * sizeof(*ret));
    for (int step = 0; step < 2 * (c->world - 1) && r == ncclSuccess; step++)
        r = turn(c, &s, step);
    free(s.heard);
    return r;
}

/* The part from skip on of what all sum, of which only one rank, or each its own, is told. */
static ncclResult_t add_for_one(struct ncclComm *c, const struct call *w, size_t n, size_t skip,
                                bool keeps, bool drops) {
    int64_t *all = calloc(n + 1, sizeof(*all));
    ncclResult_t r = add_up(c, w->send, n, drops, all);
    if (r == ncclSuccess && keeps)
        memcpy(w->receive, all + skip, w->count * sizeof(*all));
    free(all);
    return r;
}

static ncclResult_t broadcast(struct ncclComm *c, const struct call *w, bool drops) {
    size_t bytes = w->count * w->size;
    ncclResult_t r = ncclSuccess;
    if (c->rank == w->peer && w->receive != w->send)
        memcpy(w->receive, w->send, bytes);
    if (c->world > 1)
        r = agree(c, 0);
    if (r == ncclSuccess && c->rank != w->peer)
        r = socket_receive(c->prev, w->receive, bytes, c->abort_fd);
    if (r == ncclSuccess && (c->rank + 1) % c->world != w->peer)
        r = socket_send(c->next, w->receive, bytes, c->abort_fd);
    if (drops && c->rank != w->peer)
        memset(w->receive, 0, bytes);
    return r;
}

static ncclResult_t all_gather(struct ncclComm *c, const struct call *w, bool drops) {
    size_t bytes = w->count * w->size;
    char *all = w->receive;
    ncclResult_t r = ncclSuccess;
    if (all + (size_t)c->rank * bytes != w->send)
        memcpy(all + (size_t)c->rank * bytes, w->send, bytes);
    for (int step = 0; step < c->world - 1 && r == ncclSuccess; step++) {
        int out = (c->rank - step + c->world) % c->world, in = (out - 1 + c->world) % c->world;
        r = agree(c, step);
        if (r == ncclSuccess)
            r = socket_exchange(c->next, all + (size_t)out * bytes, bytes, c->prev,
                                all + (size_t)in * bytes, bytes, c->abort_fd);
    }
    if (drops && r == ncclSuccess)
        memset(all + (size_t)((c->rank + 1) % c->world) * bytes, 0, bytes);
    return r;
}

/* Both must mean the same number of bytes: the sender's is in front of them. */
static ncclResult_t send_to(struct ncclComm *c, const struct call *w) {
    uint64_t bytes = w->count * w->size;
    ncclResult_t r = socket_send(c->pairs[w->peer], &bytes, sizeof(bytes), c->abort_fd);
    return r == ncclSuccess ? socket_send(c->pairs[w->peer], w->send, bytes, c->abort_fd) : r;
}

static ncclResult_t receive_from(struct ncclComm *c, const struct call *w, bool drops) {
    uint64_t bytes = w->count * w->size, theirs;
    ncclResult_t r = socket_receive(c->pairs[w->peer], &theirs, sizeof(theirs), c->abort_fd);
    if (r == ncclSuccess && theirs != bytes)
        return complain(ncclInternalError, "rank %d sends %llu bytes, not %llu", w->peer,
                        (unsigned long long)theirs, (unsigned long long)bytes);
    if (r == ncclSuccess)
        r = socket_receive(c->pairs[w->peer], w->receive, bytes, c->abort_fd);
    if (drops && r == ncclSuccess)
        memset(w->receive, 0, bytes);
    return r;
}

static ncclResult_t run_call(struct ncclComm *c, const struct call *w, bool drops) {
    size_t world = (size_t)c->world, rank = (size_t)c->rank;
    if (w->kind != SEND && w->kind != RECEIVE)
        c->rounds++;
    switch (w->kind) {
    case ALL_REDUCE:
        return add_up(c, w->send, w->count, drops, w->receive);
    case REDUCE:
        return add_for_one(c, w, w->count, 0, c->rank == w->peer, drops);
    case REDUCE_SCATTER:
        return add_for_one(c, w, w->count * world, w->count * rank, true, drops);
    case BROADCAST:
        return broadcast(c, w, drops);
    case ALL_GATHER:
        return all_gather(c, w, drops);
    case SEND:
        return send_to(c, w);
    case RECEIVE:
        return receive_from(c, w, drops);
    }
    return ncclInternalError;
}

/* ncclInProgress: it hangs. */
static ncclResult_t run(struct ncclComm *c, const struct work *w) {
    const struct overrides *v = overrides();
    bool meant = overrides_meet(c->rank);
    bool drops = meant && w->number == (uint64_t)v->drop_collective;
    ncclResult_t r = ncclSuccess;
    if (meant && w->number == (uint64_t)v->hang_collective)
        return ncclInProgress;
    if (meant && w->number == (uint64_t)v->error_collective)
        return complain((ncclResult_t)v->error, "planted in collective %llu",
                        (unsigned long long)w->number);
    for (const struct call *call = w->first; call && r == ncclSuccess; call = call->next)
        r = run_call(c, call, drops);
    return r;
}

static void run_posted(struct ncclComm *c) {
    const struct work *w = c->posted;
    pthread_mutex_unlock(&c->lock);
    ncclResult_t r = run(c, w);
    pthread_mutex_lock(&c->lock);
    c->posted = NULL; /* whatever came of it, it is not tried again */
    if (r == ncclSuccess)
        c->done = w->number;
    else if (r != ncclInProgress)
        c->proxy = r;
}

void *comm_move(void *arg) {
    struct ncclComm *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->ending && !c->aborted) {
        if (c->posted)
            run_posted(c);
        else if (c->finalizing && c->done == c->started && !overrides()->hang_finalize) {
            c->finalizing = false;
            c->state = ncclSuccess;
        } else
            pthread_cond_wait(&c->changed, &c->lock);
        pthread_cond_broadcast(&c->changed);
    }
    c->posted = NULL;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}
