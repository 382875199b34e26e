/* A program with the clock of a node: it sets the page as the harness does, and asks as a job does.
 * usage: spawn_clock EXPERIMENT, with LD_PRELOAD and RANKQUAKE_CLOCK. Prints ok, or what was wrong. */
#include "faults/mechanism/clock_page.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000, HOUR_S = 3600 };
static const int64_t hour = INT64_C(3600) * SECOND, wait_ns = 60000000;
static int page;

#define NEED(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("line %d: not %s\n", __LINE__, #what);                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int64_t ns_of(const struct timespec *t) {
    return (int64_t)t->tv_sec * SECOND + t->tv_nsec;
}

static int64_t real(clockid_t id) {
    struct timespec t = {0};
    syscall(SYS_clock_gettime, id, &t);
    return ns_of(&t);
}

static int64_t told(clockid_t id) {
    struct timespec t = {0};
    NEED(clock_gettime(id, &t) == 0);
    return ns_of(&t);
}

static void set(int64_t by, int64_t period, int64_t drift) {
    const struct clock_shift s = {real(CLOCK_REALTIME), by, period, drift};
    NEED(clock_page_set(page, NULL, NULL) == 0);
    NEED(clock_page_set(page, &s, NULL) == 0);
}

/* By so much the clock differs; it was read between two looks at the kernel's. */
static bool is_ahead(clockid_t id, int64_t by) {
    int64_t before = real(id), said = told(id), after = real(id);
    return said - by >= before && said - by <= after;
}

static bool seconds_are(time_t said, int64_t by) {
    int64_t off = (int64_t)said - real(CLOCK_REALTIME) / SECOND - by / SECOND;
    return off >= -2 && off <= 0;
}

static void ask_all(int64_t by) {
    struct timeval v;
    struct timespec t;
    NEED(is_ahead(CLOCK_REALTIME, by));
    NEED(is_ahead(CLOCK_REALTIME_COARSE, by));
    NEED(is_ahead(CLOCK_TAI, by));
    NEED(is_ahead(CLOCK_MONOTONIC, 0));
    NEED(is_ahead(CLOCK_MONOTONIC_RAW, 0));
    NEED(is_ahead(CLOCK_BOOTTIME, 0));
    NEED(gettimeofday(&v, NULL) == 0 && seconds_are(v.tv_sec, by));
    NEED(seconds_are(time(NULL), by));
    NEED(timespec_get(&t, TIME_UTC) == TIME_UTC && seconds_are(t.tv_sec, by));
    errno = 0;
    NEED(clock_gettime(12345, &t) == -1 && errno == EINVAL);
}

static void experiment_functions(void) {
    ask_all(0);
    set(-hour, 0, 0);
    ask_all(-hour);
    set(hour, 0, 0);
    ask_all(hour);
    NEED(clock_page_set(page, NULL, NULL) == 0);
    ask_all(0);
}

/* ---- waits ---- */

static pthread_cond_t by_wall = PTHREAD_COND_INITIALIZER, by_uptime;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, locked = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static sem_t none;

static struct timespec in_a_while(clockid_t id) {
    int64_t ns = told(id) + wait_ns;
    return (struct timespec){ns / SECOND, ns % SECOND};
}

static int wait_cond(void) {
    struct timespec t = in_a_while(CLOCK_REALTIME);
    return pthread_cond_timedwait(&by_wall, &held, &t) == ETIMEDOUT;
}
static int wait_cond_by_uptime(void) {
    struct timespec t = in_a_while(CLOCK_MONOTONIC);
    return pthread_cond_timedwait(&by_uptime, &held, &t) == ETIMEDOUT;
}
static int wait_mutex(void) {
    struct timespec t = in_a_while(CLOCK_REALTIME);
    return pthread_mutex_timedlock(&locked, &t) == ETIMEDOUT;
}
static int wait_rwlock(void) {
    struct timespec t = in_a_while(CLOCK_REALTIME);
    return pthread_rwlock_timedwrlock(&written, &t) == ETIMEDOUT;
}
static int wait_semaphore(void) {
    struct timespec t = in_a_while(CLOCK_REALTIME);
    return sem_timedwait(&none, &t) == -1 && errno == ETIMEDOUT;
}
static int wait_asleep(void) {
    struct timespec t = in_a_while(CLOCK_REALTIME);
    return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == 0;
}
static int wait_timer(clockid_t id) {
    struct itimerspec t = {.it_value = in_a_while(id)};
    int fd = timerfd_create(id, TFD_CLOEXEC);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool good = timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL) == 0 && poll(&p, 1, -1) == 1;
    close(fd);
    return good;
}
static int wait_timer_of_wall(void) {
    return wait_timer(CLOCK_REALTIME);
}
static int wait_timer_of_uptime(void) {
    return wait_timer(CLOCK_MONOTONIC);
}

/* Who does not turn the time back waits for an hour, or not at all. */
static void wait_all(void) {
    static int (*const waits[])(void) = {wait_cond,          wait_cond_by_uptime, wait_mutex,
                                         wait_rwlock,        wait_semaphore,      wait_asleep,
                                         wait_timer_of_wall, wait_timer_of_uptime};
    for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
        int64_t before = real(CLOCK_MONOTONIC);
        if (!waits[i]() || real(CLOCK_MONOTONIC) - before < wait_ns / 2) {
            printf("wait %zu did not wait\n", i);
            exit(1);
        }
    }
}

static void *hold(void *arg) {
    pthread_mutex_lock(&locked);
    pthread_rwlock_rdlock(&written);
    sem_post(arg);
    pause();
    return NULL;
}

static void experiment_waits(void) {
    pthread_condattr_t a;
    pthread_t holder;
    sem_t holds;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&by_uptime, &a);
    sem_init(&none, 0, 0);
    sem_init(&holds, 0, 0);
    pthread_create(&holder, NULL, hold, &holds);
    sem_wait(&holds);
    pthread_mutex_lock(&held);
    wait_all();
    set(hour, 0, 0);
    wait_all();
    set(-hour, 0, 0);
    wait_all();
    set(0, 0, SECOND / 2); /* one and a half times as fast */
    wait_all();
}

/* ---- what else a clock does ---- */

static void experiment_drift(void) {
    static const int64_t faster[] = {SECOND, -SECOND / 2};
    for (size_t i = 0; i < 2; i++) {
        set(0, 0, faster[i]);
        int64_t outer = real(CLOCK_REALTIME), said = told(CLOCK_REALTIME),
                inner = real(CLOCK_REALTIME);
        poll(NULL, 0, 50);
        inner = real(CLOCK_REALTIME) - inner;
        said = told(CLOCK_REALTIME) - said;
        outer = real(CLOCK_REALTIME) - outer;
        double rate = 1 + (double)faster[i] / SECOND;
        NEED((double)said >= rate * (double)inner - 2 && (double)said <= rate * (double)outer + 2);
    }
}

static void experiment_strobe(void) {
    bool right = false, wrong = false;
    set(hour, 20000000, 0);
    while (!right || !wrong) {
        right |= is_ahead(CLOCK_REALTIME, 0);
        wrong |= is_ahead(CLOCK_REALTIME, hour);
    }
    static struct clock_witness w;
    NEED(clock_page_witness(page, &w) == 0 && w.n == 1);
    NEED(w.v[0].least.said_ns == w.v[0].least.real_ns);
    NEED(w.v[0].most.said_ns == w.v[0].most.real_ns + hour);
}

/* ---- what is noted of it ---- */

static const struct clock_reader *noted(pid_t pid) {
    static struct clock_witness w;
    NEED(clock_page_witness(page, &w) == 0);
    for (size_t i = 0; i < w.n; i++)
        if (w.v[i].pid == pid)
            return &w.v[i];
    return NULL;
}

static void experiment_noted(void) {
    NEED(!noted(getpid()));
    told(CLOCK_REALTIME); /* while it is right nothing is worth it */
    NEED(!noted(getpid()));
    set(hour, 0, 0);
    NEED(!noted(getpid()));
    told(CLOCK_MONOTONIC);
    NEED(!noted(getpid()));
    int64_t from = real(CLOCK_REALTIME), said = told(CLOCK_REALTIME);
    const struct clock_reader *r = noted(getpid());
    NEED(r && r->first.said_ns == said && r->first.real_ns >= from);
    NEED(strcmp(r->program, "spawn_clock") == 0);
    pid_t child = fork();
    if (child == 0) {
        time(NULL);
        _exit(0);
    }
    int status;
    NEED(waitpid(child, &status, 0) == child && status == 0);
    NEED(noted(child) && noted(child)->first.real_ns >= r->first.real_ns);
    NEED(clock_page_set(page, NULL, NULL) == 0);
    told(CLOCK_REALTIME);
    NEED(!noted(getpid()));
}

static volatile bool over;

static void *ask(void *arg) {
    while (!over) {
        int64_t before = real(CLOCK_REALTIME), said = told(CLOCK_REALTIME),
                after = real(CLOCK_REALTIME);
        bool whole = false;
        for (int64_t by = -hour; by <= hour; by += hour)
            whole |= said - by >= before && said - by <= after;
        *(int *)arg += !whole;
    }
    return NULL;
}

static void experiment_threads(void) {
    enum { N = 3 };
    pthread_t t[N];
    int torn[N] = {0};
    for (int i = 0; i < N; i++)
        NEED(pthread_create(&t[i], NULL, ask, &torn[i]) == 0);
    for (int i = 0; i < 200; i++)
        set(i % 2 ? hour : -hour, 0, 0);
    over = true;
    for (int i = 0; i < N; i++)
        NEED(pthread_join(t[i], NULL) == 0 && torn[i] == 0);
}

static void experiment_page(void) {
    const struct clock_shift s = {.by_ns = 1};
    static struct clock_witness w;
    struct err err;
    NEED(clock_page_set(page, &s, &err) == 0 && clock_page_set(page, &s, &err) == -EBUSY);
    NEED(clock_page_witness(page, &w) == 0 && w.loaded == 1 && w.n == 0);
    NEED(ftruncate(page, 3) == 0); /* as a job may; nobody here touches it any more */
    NEED(clock_page_set(page, NULL, &err) == -EIO && clock_page_witness(page, &w) == -EIO);
    _exit((puts("ok"), fflush(stdout)));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*play)(void);
    } all[] = {{"functions", experiment_functions},
               {"waits", experiment_waits},
               {"drift", experiment_drift},
               {"strobe", experiment_strobe},
               {"noted", experiment_noted},
               {"threads", experiment_threads},
               {"page", experiment_page}};
    alarm(60);
    page = open(getenv(CLOCK_PAGE_VARIABLE), O_RDWR | O_CLOEXEC);
    NEED(page >= 0 && argc == 2);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strcmp(argv[1], all[i].name) == 0) {
            all[i].play();
            puts("ok");
            return 0;
        }
    return 64;
}
