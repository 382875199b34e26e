#include "scenarios/jobs/ranktrain/gpu/device.h"
#include "scenarios/jobs/ranktrain/gpu/failure.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Both sides hold the lock only to look at these. */
struct device_thread {
    struct device_request request;
    pthread_t id;
    pthread_mutex_t turn; /* of those who ask; held until the call is back */
    pthread_mutex_t lock;
    pthread_cond_t posted;
    device_call *call; /* NULL: nothing to do */
    void *arg;
    bool end;

    int done_fd; /* counts the calls that are back */
    int result;
    struct err err;
    bool left;  /* a call did not come back in time */
    bool final; /* the context is spoilt */
};

static const int64_t grace_ns = INT64_C(1000000000);
static struct device *in_use, *left; /* left: behind */

struct device *device_in_use(void) {
    return in_use;
}

bool device_lost(const struct device *d) {
    return d->t->left || d->t->final;
}

static void name_of(const struct device *d, char *ret, size_t size) {
    snprintf(ret, size, "GPU %d (%s)", d->index, *d->name ? d->name : "not yet known");
}

int device_fail(struct device *d, cudaError_t e, const char *doing, struct err *err) {
    char who[DEVICE_NAME + 16];
    size_t unused, total;
    name_of(d, who, sizeof(who));
    if (failure_is_final(e))
        d->t->final = true;
    if (e == cudaErrorMemoryAllocation && cudaMemGetInfo(&unused, &total) == cudaSuccess)
        return err_say(err, -ENOMEM,
                       "%s is full: %s failed with %zu of %zu MiB free; nvidia-smi shows who has "
                       "the rest",
                       who, doing, unused >> 20, total >> 20);
    return err_say(err, e == cudaErrorMemoryAllocation ? -ENOMEM : -EIO, "%s: %s: %s (%d): %s%s",
                   who, doing, cudaGetErrorName(e), (int)e, cudaGetErrorString(e),
                   d->t->final ? "; the GPU is of no more use to this process" : "");
}

static void *serve(void *arg) {
    struct device *d = arg;
    struct device_thread *t = d->t;
    pthread_mutex_lock(&t->lock);
    while (!t->end) {
        if (!t->call) {
            pthread_cond_wait(&t->posted, &t->lock);
            continue;
        }
        device_call *call = t->call;
        pthread_mutex_unlock(&t->lock);
        struct err err = {0};
        int r = call(d, t->arg, &err);
        pthread_mutex_lock(&t->lock);
        t->call = NULL;
        t->result = r;
        t->err = err;
        eventfd_write(t->done_fd, 1);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Waits until the call is back. Returns 0, -ETIMEDOUT or -ECANCELED. Who is asked to end gives the
 * device a moment more: an ordinary call takes much less, and then all is in order. */
static int await(struct device_thread *t, int64_t limit_ns) {
    int64_t deadline_ns = deadline_in_ns(limit_ns);
    bool woken = false;
    for (;;) {
        struct pollfd fds[2] = {{.fd = t->done_fd, .events = POLLIN},
                                {.fd = woken ? -1 : t->request.wake_fd, .events = POLLIN}};
        int n = poll(fds, 2, deadline_left_ms(deadline_ns));
        if (fds[0].revents && n > 0)
            return 0;
        if (n == 0)
            return woken ? -ECANCELED : -ETIMEDOUT;
        if (n > 0 && fds[1].revents) {
            int64_t moment_ns = deadline_in_ns(grace_ns);
            deadline_ns = moment_ns < deadline_ns ? moment_ns : deadline_ns;
            woken = true;
        }
    }
}

static int say_left(const struct device *d, int r, int64_t limit_ns, struct err *err) {
    char who[DEVICE_NAME + 16];
    name_of(d, who, sizeof(who));
    if (r == -ECANCELED)
        return err_say(err, r, "%s: asked to end while the GPU did not answer", who);
    return err_say(err, r, "%s: has not answered within %.10g s; the GPU is given up", who,
                   (double)limit_ns / 1e9);
}

static int ask(struct device *d, int64_t limit_ns, device_call *call, void *arg, struct err *err) {
    struct device_thread *t = d->t;
    eventfd_t count;
    if (t->left)
        return err_say(err, -EIO, "GPU %d has been given up", d->index);
    if (t->final)
        return err_say(err, -EIO, "GPU %d is of no more use to this process", d->index);
    pthread_mutex_lock(&t->lock);
    assert(!t->call);
    t->call = call;
    t->arg = arg;
    pthread_cond_signal(&t->posted);
    pthread_mutex_unlock(&t->lock);
    int r = await(t, limit_ns);
    if (r < 0) {
        t->left = true;
        return say_left(d, r, limit_ns, err);
    }
    eventfd_read(t->done_fd, &count);
    pthread_mutex_lock(&t->lock);
    r = t->result;
    if (r < 0 && err)
        *err = t->err;
    pthread_mutex_unlock(&t->lock);
    return r;
}

int device_do_within(struct device *d, int64_t limit_ns, device_call *call, void *arg,
                     struct err *err) {
    pthread_mutex_lock(&d->t->turn);
    int r = ask(d, limit_ns, call, arg, err);
    pthread_mutex_unlock(&d->t->turn);
    return r;
}

int device_do(struct device *d, device_call *call, void *arg, struct err *err) {
    return device_do_within(d, d->t->request.limit_ns, call, arg, err);
}

static void describe(struct device *d) {
    struct cudaDeviceProp p;
    memset(&p, 0, sizeof(p));
    if (cudaGetDeviceProperties(&p, d->index) != cudaSuccess)
        return;
    const unsigned char *u = (const unsigned char *)p.uuid.bytes;
    snprintf(d->name, sizeof(d->name), "%.*s", DEVICE_NAME - 1, p.name);
    snprintf(d->uuid, sizeof(d->uuid),
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    if (cudaDeviceGetPCIBusId(d->pci, sizeof(d->pci), d->index) != cudaSuccess)
        *d->pci = 0;
}

/* In the device's thread, as everything that calls CUDA. */
static int choose(struct device *d, void *arg, struct err *err) {
    int count = 0;
    cudaDriverGetVersion(&d->driver);
    cudaRuntimeGetVersion(&d->runtime);
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaSuccess && count < 1)
        e = cudaErrorNoDevice;
    if (e != cudaSuccess)
        return failure_to_find(e, d->driver, d->runtime, getenv("CUDA_VISIBLE_DEVICES"), err);
    d->index = d->t->request.local_rank % count;
    describe(d);
    return 0;
}

static int take(struct device *d, void *arg, struct err *err) {
    char who[DEVICE_NAME + 16];
    int mode = -1;
    name_of(d, who, sizeof(who));
    cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, d->index);
    cudaError_t e = cudaSetDevice(d->index);
    if (e == cudaSuccess) /* who waits sleeps, and does not spin on one of the job's cores */
        e = cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
    if (e == cudaSuccess)
        e = cudaFree(NULL); /* the context is there from here on */
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking);
    if (failure_is_final(e))
        d->t->final = true;
    return e == cudaSuccess ? 0 : failure_to_take(e, who, mode, err);
}

static int give_back(struct device *d, void *arg, struct err *err) {
    cudaError_t e = d->stream ? cudaStreamDestroy(d->stream) : cudaSuccess;
    d->stream = NULL;
    return e == cudaSuccess ? 0 : device_fail(d, e, "ending", err);
}

/* Signals are the main thread's. */
static int start(struct device *d, struct err *err) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&d->t->id, NULL, serve, d);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r ? err_set(err, -r, "a thread for the GPU") : 0;
}

static struct device *device_new(const struct device_request *q) {
    struct device *d = mem_new(struct device);
    struct device_thread *t = mem_new(struct device_thread);
    pthread_mutex_init(&t->turn, NULL);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->posted, NULL);
    t->request = *q;
    t->done_fd = eventfd(0, EFD_CLOEXEC);
    d->t = t;
    return d;
}

static void device_free(struct device *d) {
    close(d->t->done_fd);
    pthread_cond_destroy(&d->t->posted);
    pthread_mutex_destroy(&d->t->lock);
    pthread_mutex_destroy(&d->t->turn);
    free(d->t);
    free(d);
}

int device_open(const struct device_request *q, struct device **ret, struct err *err) {
    struct device *d = device_new(q);
    int r = d->t->done_fd < 0 ? err_set(err, -errno, "eventfd") : start(d, err);
    if (r < 0) {
        device_free(d);
        return r;
    }
    in_use = in_use ? in_use : d;
    r = device_do(d, choose, NULL, err);
    if (r == 0)
        r = device_do(d, take, NULL, err);
    if (r < 0) {
        device_close(d, NULL);
        return r;
    }
    *ret = d;
    return 0;
}

int device_close(struct device *d, struct err *err) {
    struct err ignored;
    if (d && !device_lost(d))
        device_do(d, give_back, NULL, &ignored);
    if (d && d->t->left) /* its thread still uses everything */
        left = d;
    if (in_use == d)
        in_use = NULL;
    if (left)
        return err_say(err, -ETIMEDOUT, "GPU %d does not answer: it is left as it is", left->index);
    if (!d)
        return 0;
    pthread_mutex_lock(&d->t->lock);
    d->t->end = true;
    pthread_cond_signal(&d->t->posted);
    pthread_mutex_unlock(&d->t->lock);
    pthread_join(d->t->id, NULL);
    device_free(d);
    return 0;
}
