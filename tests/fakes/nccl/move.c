/* The progress thread: an all-reduce of int64 around the ring. In the first world - 1 turns each
 * rank adds the chunk that comes to its own and passes it on, in as many again the sums go round.
 */
#include "tests/fakes/nccl/comm.h"
#include "tests/fakes/nccl/overrides.h"

#include <stdlib.h>
#include <string.h>

struct chunk {
    int64_t *at;
    size_t n;
};

static struct chunk chunk_of(const struct call *w, int world, int number) {
    int i = (number % world + world) % world;
    size_t begin = w->count * (size_t)i / (size_t)world;
    return (struct chunk){w->receive + begin, w->count * (size_t)(i + 1) / (size_t)world - begin};
}

/* All ranks must be at the same collective: in front of each chunk stands which one it is. */
static ncclResult_t turn(struct ncclComm *c, const struct call *w, int step, int64_t *heard) {
    bool adding = step < c->world - 1;
    int shift = adding ? step : step - c->world;
    struct chunk out = chunk_of(w, c->world, c->rank - shift);
    struct chunk in = chunk_of(w, c->world, c->rank - shift - 1);
    uint64_t mine = w->number << 8 | (unsigned)step, theirs;
    ncclResult_t r = socket_exchange(c->next, &mine, sizeof(mine), c->prev, &theirs, sizeof(theirs),
                                     c->abort_fd);
    if (r == ncclSuccess && mine != theirs)
        return complain(ncclInternalError, "the ranks are not at the same collective");
    if (r == ncclSuccess)
        r = socket_exchange(c->next, out.at, out.n * sizeof(*out.at), c->prev,
                            adding ? heard : in.at, in.n * sizeof(*in.at), c->abort_fd);
    bool drop = overrides_meet(c->rank) && w->number == (uint64_t)overrides()->drop_collective;
    for (size_t i = 0; r == ncclSuccess && adding && !drop && i < in.n; i++)
        in.at[i] += heard[i];
    return r;
}

static ncclResult_t all_reduce(struct ncclComm *c, const struct call *w) {
    int64_t *heard = calloc(w->count / (size_t)c->world + 1, sizeof(*heard));
    ncclResult_t r = ncclSuccess;
    if (w->receive != w->send)
        memcpy(w->receive, w->send, w->count * sizeof(*w->send));
    for (int step = 0; step < 2 * (c->world - 1) && r == ncclSuccess; step++)
        r = turn(c, w, step, heard);
    free(heard);
    return r;
}

/* ncclInProgress: it hangs. */
static ncclResult_t run(struct ncclComm *c, const struct call *w) {
    const struct overrides *v = overrides();
    bool meant = overrides_meet(c->rank);
    if (meant && w->number == (uint64_t)v->hang_collective)
        return ncclInProgress;
    if (meant && w->number == (uint64_t)v->error_collective)
        return complain((ncclResult_t)v->error, "planted in collective %llu",
                        (unsigned long long)w->number);
    return all_reduce(c, w);
}

static void run_posted(struct ncclComm *c) {
    const struct call *w = c->posted;
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
