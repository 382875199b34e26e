/* What the job calls. Nothing here blocks but Destroy and Abort. */
#include "tests/fakes/nccl/comm.h"
#include "tests/fakes/nccl/overrides.h"
#include "tests/fakes/nccl/report.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { VERSION = 22809 };

static void comm_release(struct ncclComm *c) {
    pthread_mutex_lock(&c->lock);
    bool last = --c->users == 0;
    pthread_mutex_unlock(&c->lock);
    if (!last)
        return;
    socket_close(&c->abort_fd);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c);
}

void comm_set_state(struct ncclComm *c, ncclResult_t state) {
    pthread_mutex_lock(&c->lock);
    c->state = state;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

bool comm_aborted(struct ncclComm *c) {
    pthread_mutex_lock(&c->lock);
    bool aborted = c->aborted;
    pthread_mutex_unlock(&c->lock);
    return aborted;
}

ncclResult_t ncclGetVersion(int *version) {
    *version = overrides()->version ? overrides()->version : VERSION;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    report_add(REPORT_IDS, 1);
    return root_start(id);
}

const char *ncclGetLastError(ncclComm_t comm) {
    (void)comm;
    return last_complaint();
}

static struct ncclComm *comm_new(int world, const ncclUniqueId *id, int rank) {
    struct ncclComm *c = calloc(1, sizeof(*c));
    c->rank = rank;
    c->world = world;
    c->id = *id;
    c->listener = c->next = c->prev = -1;
    for (int i = 0; i < RANKS; i++)
        c->pairs[i] = -1;
    c->abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->state = ncclInProgress;
    c->users = 1;
    report_add(REPORT_COMMUNICATORS, 1);
    return c;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int world, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    int device;
    if (world < 1 || world > RANKS || rank < 0 || rank >= world)
        return complain(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, world);
    if (!config || config->magic != 0xcafebeef || config->version < 21400)
        return complain(ncclInvalidArgument,
                        "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    if (config->blocking != 0)
        return complain(ncclInvalidArgument, "the fake does not block");
    if (cudaGetDevice(&device) != cudaSuccess)
        return complain(ncclUnhandledCudaError, "Cuda failure");
    struct ncclComm *c = comm_new(world, &id, rank);
    c->device = device;
    c->forming = pthread_create(&c->former, NULL, comm_form, c) == 0;
    c->moving = pthread_create(&c->mover, NULL, comm_move, c) == 0;
    *comm = c;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state) {
    pthread_mutex_lock(&c->lock);
    *state = c->state == ncclSuccess ? c->proxy : c->state;
    pthread_mutex_unlock(&c->lock);
    return ncclSuccess;
}

static void work_free(struct work *w) {
    for (struct call *call = w->first, *next; call; call = next) {
        next = call->next;
        free(call);
    }
    free(w);
}

/* In the stream. */
static void kernel(void *arg) {
    struct work *w = arg;
    struct ncclComm *c = w->comm;
    pthread_mutex_lock(&c->lock);
    c->posted = c->proxy == ncclSuccess && !c->aborted ? w : NULL;
    pthread_cond_broadcast(&c->changed);
    while ((c->done < w->number && !c->aborted) || c->posted == w)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    work_free(w);
    comm_release(c);
}

struct launch {
    struct work *work;
    struct CUstream_st *stream;
};

static void *launch_later(void *arg) {
    struct launch *l = arg;
    struct ncclComm *c = l->work->comm;
    cudaSetDevice(c->device);
    cudaError_t e = cudaLaunchHostFunc(l->stream, kernel, l->work);
    comm_set_state(c, e == cudaSuccess ? ncclSuccess
                                       : complain(ncclUnhandledCudaError, "Cuda failure %d", e));
    free(l);
    return NULL;
}

/* As in NCCL, where the first collective connects what is not connected yet, that one is put into
 * the stream by a thread, and until then the answer is ncclInProgress. */
static ncclResult_t launch(struct ncclComm *c, struct work *w, struct CUstream_st *stream) {
    if (w->number > 1) {
        cudaError_t e = cudaLaunchHostFunc(stream, kernel, w);
        return e == cudaSuccess ? ncclSuccess
                                : complain(ncclUnhandledCudaError, "Cuda failure %d", e);
    }
    struct launch *l = malloc(sizeof(*l));
    *l = (struct launch){w, stream};
    comm_set_state(c, ncclInProgress);
    c->launching = pthread_create(&c->launcher, NULL, launch_later, l) == 0;
    return ncclInProgress;
}

ncclResult_t comm_launch(struct ncclComm *c, struct call *first, struct CUstream_st *stream) {
    struct work *w = malloc(sizeof(*w));
    ncclResult_t state;
    *w = (struct work){.comm = c, .first = first};
    ncclCommGetAsyncError(c, &state);
    if (state != ncclSuccess) {
        work_free(w);
        return state;
    }
    pthread_mutex_lock(&c->lock);
    w->number = ++c->started;
    c->users++;
    pthread_mutex_unlock(&c->lock);
    return launch(c, w, stream);
}

ncclResult_t ncclCommFinalize(ncclComm_t c) {
    pthread_mutex_lock(&c->lock);
    c->finalizing = true;
    c->state = ncclInProgress;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return ncclInProgress;
}

static void end(struct ncclComm *c) {
    if (c->forming)
        pthread_join(c->former, NULL);
    if (c->launching)
        pthread_join(c->launcher, NULL);
    if (c->moving)
        pthread_join(c->mover, NULL);
    socket_close(&c->listener);
    socket_close(&c->next);
    socket_close(&c->prev);
    for (int i = 0; i < RANKS; i++)
        socket_close(&c->pairs[i]);
    report_add(REPORT_COMMUNICATORS, -1);
    comm_release(c);
}

ncclResult_t ncclCommDestroy(ncclComm_t c) {
    pthread_mutex_lock(&c->lock);
    while (c->done < c->started)
        pthread_cond_wait(&c->changed, &c->lock);
    c->ending = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    end(c);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c) {
    while (overrides()->hang_abort && overrides_meet(c->rank))
        pause();
    pthread_mutex_lock(&c->lock);
    c->aborted = true;
    eventfd_write(c->abort_fd, 1);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    end(c);
    return ncclSuccess;
}
