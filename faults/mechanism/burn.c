#include "faults/mechanism/burn.h"

#include "base/mem.h"
#include "base/sys/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What a keeper has begun, until it ends it; both in the keeper's own thread. */
struct burner {
    const struct keeper_of *of;
    int cpu;
    pthread_t thread;
    atomic_bool over;
};
static _Thread_local struct burner *burners;
static _Thread_local size_t burners_n;

static void go_first(void) {
    struct sched_param first = {.sched_priority = 1};
    enum { BEST = -20 };
    if (pthread_setschedparam(pthread_self(), SCHED_RR, &first) != 0)
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), BEST);
}

static void *burn(void *arg) {
    struct burner *b = arg;
    struct timespec stop = {b->of->stop_ns / 1000000000, b->of->stop_ns % 1000000000};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(b->cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
    go_first();
    while (!b->over) {
        int64_t until_ns = clock_monotonic_ns() + b->of->run_ns;
        while (!b->over && clock_monotonic_ns() < until_ns)
            ;
        nanosleep(&stop, NULL);
    }
    return NULL;
}

static void end(struct keeper *k) {
    for (size_t i = 0; i < burners_n; i++)
        burners[i].over = true;
    for (size_t i = 0; i < burners_n; i++)
        pthread_join(burners[i].thread, NULL);
    free(burners);
    burners = NULL;
    burners_n = 0;
}

static int begin(struct keeper *k, struct err *err) {
    const struct keeper_of *of = keeper_whom(k);
    cpu_set_t may;
    if (sched_getaffinity(of->pid, sizeof(may), &may) != 0)
        return err_set(err, -errno, "ask for the processors of process %d", (int)of->pid);
    burners = mem_array(struct burner, (size_t)CPU_COUNT(&may) + 1);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &may))
            continue;
        struct burner *b = &burners[burners_n];
        b->of = of;
        b->cpu = cpu;
        int r = pthread_create(&b->thread, NULL, burn, b);
        if (r) {
            end(k);
            return err_set(err, -r, "start a thread");
        }
        burners_n++;
    }
    return 0;
}

const struct keeper_work keeper_burn = {.begin = begin, .end = end};
