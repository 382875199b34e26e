#include "base/sys/lookup.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Freed by whoever lets go of it last, the loop or the thread: one in getaddrinfo cannot be called
 * off. */
struct lookup {
    atomic_int holders;
    int wake; /* eventfd: the thread has written the rest */
    struct tcp_endpoint to;
    struct tcp_address found[LOOKUP_MAX];
    int n;
    struct err err;
    struct loop_source *answer; /* from here on the loop's own */
    lookup_fn *fn;
    void *arg;
};

static void let_go(struct lookup *k) {
    if (atomic_fetch_sub(&k->holders, 1) > 1)
        return;
    file_close(&k->wake);
    free(k);
}

static void *look_up(void *arg) {
    struct lookup *k = arg;
    const uint64_t one = 1;
    k->n = tcp_resolve(&k->to, k->found, LOOKUP_MAX, &k->err);
    (void)!write(k->wake, &one, sizeof(one));
    let_go(k);
    return NULL;
}

static int start_thread(struct lookup *k) {
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = -pthread_create(&thread, &attr, look_up, k);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return code;
}

static void on_answer(void *arg, int fd, int what) {
    struct lookup *k = arg;
    uint64_t n;
    if (read(fd, &n, sizeof(n)) != sizeof(n))
        return;
    k->answer = loop_source_free(k->answer);
    k->fn(k->arg, k->found, k->n > 0 ? k->n : 0, k->err.msg);
    let_go(k);
}

struct lookup *lookup_begin(struct loop *l, const struct tcp_endpoint *to, lookup_fn *fn, void *arg,
                            struct err *err) {
    struct lookup *k = mem_new(struct lookup);
    *k = (struct lookup){
        .to = *to, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .fn = fn, .arg = arg};
    atomic_init(&k->holders, 2);
    int code = k->wake < 0 ? -errno : start_thread(k);
    if (code < 0) {
        atomic_store(&k->holders, 1);
        let_go(k);
        err_set(err, code, "look up host '%s': start a thread", to->host);
        return NULL;
    }
    k->answer = loop_fd(l, k->wake, LOOP_READ, on_answer, k);
    return k;
}

struct lookup *lookup_cancel(struct lookup *k) {
    if (!k)
        return NULL;
    k->answer = loop_source_free(k->answer);
    let_go(k);
    return NULL;
}
