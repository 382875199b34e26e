#include "faults/mechanism/keeper.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { KEEPERS_MAX = 64 };
static const int64_t begin_wait_ns = 5000000000;

struct keeper {
    const struct keeper_work *work;
    struct keeper_of of;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool begun, given_up; /* begun: `code` says how; given up: nobody waits for it any more */
    bool finished;        /* the process has ended, and the thread is about to */
    int code;
    int release; /* an eventfd */
    void *memory;
    struct err err;
};

static struct keeper *keepers[KEEPERS_MAX]; /* of the thread that starts and stops them */

const struct keeper_of *keeper_whom(const struct keeper *k) {
    return &k->of;
}

void **keeper_memory(struct keeper *k) {
    return &k->memory;
}

bool keeper_wait(struct keeper *k, int64_t ns) {
    struct pollfd p[2] = {{.fd = k->release, .events = POLLIN},
                          {.fd = k->of.pidfd, .events = POLLIN}};
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    return ppoll(p, 2, ns < 0 ? NULL : &t, NULL) != 0; /* signals are blocked: no EINTR */
}

static struct keeper *keeper_free(struct keeper *k) {
    file_close(&k->of.pidfd);
    file_close(&k->release);
    pthread_cond_destroy(&k->changed);
    pthread_mutex_destroy(&k->lock);
    free(k->memory);
    free(k);
    return NULL;
}

static void *run(void *arg) {
    struct keeper *k = arg;
    int code = k->work->begin(k, &k->err);
    pthread_mutex_lock(&k->lock);
    k->begun = true;
    k->code = code;
    bool alone = k->given_up;
    pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->lock);
    if (code == 0 && !alone && k->work->go_on)
        k->work->go_on(k);
    else if (code == 0 && !alone)
        keeper_wait(k, -1);
    if (code == 0)
        k->work->end(k);
    pthread_mutex_lock(&k->lock);
    k->finished = true;
    pthread_mutex_unlock(&k->lock);
    return alone ? keeper_free(k) : NULL;
}

static bool is_finished(struct keeper *k) {
    pthread_mutex_lock(&k->lock);
    bool finished = k->finished;
    pthread_mutex_unlock(&k->lock);
    return finished;
}

/* Whose process has ended is asked for by nobody: its number is not known any more. */
static void sweep(void) {
    for (size_t i = 0; i < KEEPERS_MAX; i++)
        if (keepers[i] && is_finished(keepers[i])) {
            pthread_join(keepers[i]->thread, NULL);
            keepers[i] = keeper_free(keepers[i]);
        }
}

static struct keeper **place_of(const struct keeper_work *work, pid_t pid) {
    for (size_t i = 0; i < KEEPERS_MAX; i++)
        if (work ? keepers[i] && keepers[i]->work == work && keepers[i]->of.pid == pid
                 : !keepers[i])
            return &keepers[i];
    return NULL;
}

static struct keeper *keeper_new(const struct keeper_work *work, const struct keeper_of *of) {
    struct keeper *k = mem_new(struct keeper);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, &clock);
    pthread_condattr_destroy(&clock);
    k->work = work;
    k->of = *of;
    k->of.pidfd = fcntl(of->pidfd, F_DUPFD_CLOEXEC, 3);
    k->release = eventfd(0, EFD_CLOEXEC);
    return k;
}

static int begin_thread(struct keeper *k) {
    sigset_t all, before;
    if (k->of.pidfd < 0 || k->release < 0)
        return -EMFILE;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&k->thread, NULL, run, k);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

/* False: it takes too long, and nobody will wait for it any more. */
static bool await_begin(struct keeper *k) {
    int64_t until_ns = clock_monotonic_ns() + begin_wait_ns;
    struct timespec t = {until_ns / 1000000000, until_ns % 1000000000};
    pthread_mutex_lock(&k->lock);
    while (!k->begun && pthread_cond_timedwait(&k->changed, &k->lock, &t) == 0)
        ;
    bool begun = k->begun;
    k->given_up = !begun;
    pthread_mutex_unlock(&k->lock);
    return begun;
}

int keeper_start(const struct keeper_work *work, const struct keeper_of *of, struct err *err) {
    sweep();
    if (place_of(work, of->pid))
        return err_say(err, -EBUSY, "process %d has such a fault already", (int)of->pid);
    struct keeper **place = place_of(NULL, 0);
    if (!place)
        return err_say(err, -ENOSPC, "%d such faults are in force, and no more can be",
                       KEEPERS_MAX);
    struct keeper *k = keeper_new(work, of);
    int r = begin_thread(k);
    if (r) {
        keeper_free(k);
        return err_set(err, r, "start a thread");
    }
    pthread_t thread = k->thread;
    if (!await_begin(k)) {
        pthread_detach(thread); /* which frees k, should it ever return */
        return err_say(err, -ETIME, "process %d has not answered for 5 s: it hangs in the kernel",
                       (int)of->pid);
    }
    if (k->code == 0) {
        *place = k;
        return 0;
    }
    pthread_join(k->thread, NULL);
    r = k->code;
    if (err)
        *err = k->err;
    keeper_free(k);
    return r;
}

int keeper_stop(const struct keeper_work *work, pid_t pid, struct err *err) {
    struct keeper **place = place_of(work, pid), *k = place ? *place : NULL;
    if (!k)
        return 0;
    if (eventfd_write(k->release, 1) != 0)
        return err_set(err, -errno, "release a keeper");
    pthread_join(k->thread, NULL);
    *place = keeper_free(k);
    return 0;
}
