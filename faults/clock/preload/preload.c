/* rankquake_clock.so: the wall clock of a program, as the harness has set it for its node.
 *
 * Put into the environment of a job's programs (LD_PRELOAD) where a scenario moves a clock. It
 * stands before the C library's functions that read CLOCK_REALTIME, and before those that wait for
 * a time of it: such a time is turned back into the kernel's, so that nobody waits too long or
 * spins. CLOCK_MONOTONIC and all others pass as they are. */
#include "faults/mechanism/clock_page.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { SECOND_NS = 1000000000 };

/* Of threads that ask again and again one moment in a thousandth of a second is noted. */
static const int64_t note_every_ns = 1000000;

static const struct clock_setting *setting; /* NULL: the clock is the kernel's */
static struct clock_readers *readers;       /* NULL: nothing can be noted */

/* ---- the kernel's clock ---- */

static int (*next_gettime)(clockid_t, struct timespec *); /* from the constructor on */

static int kernel_gettime(clockid_t id, struct timespec *ret) {
    return next_gettime ? next_gettime(id, ret) : (int)syscall(SYS_clock_gettime, id, ret);
}

static int64_t ns_of(const struct timespec *t) {
    return (int64_t)t->tv_sec * SECOND_NS + t->tv_nsec;
}

static struct timespec timespec_of(int64_t ns) {
    struct timespec t = {ns / SECOND_NS, ns % SECOND_NS};
    if (t.tv_nsec < 0) {
        t.tv_nsec += SECOND_NS;
        t.tv_sec--;
    }
    return t;
}

/* ---- what the harness has set ---- */

/* 0: never. Who is interrupted while he reads the page reads it again. */
static uint32_t read_setting(struct clock_shift *ret) {
    uint32_t before, generation;
    do {
        while ((before = __atomic_load_n(&setting->seq, __ATOMIC_ACQUIRE)) % 2)
            ;
        *ret = setting->shift;
        generation = setting->generation;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(&setting->seq, __ATOMIC_RELAXED) != before);
    return generation;
}

/* ---- what was told ---- */

static char program[CLOCK_PROGRAM_MAX]; /* as the kernel knows it: some hide their own words */
static struct clock_reader *own;
static uint32_t own_generation;

static void forget_own(void) {
    own = NULL;
    own_generation = 0;
}

static void take_own(uint32_t generation) {
    uint32_t i = __atomic_fetch_add(&readers->taken, 1, __ATOMIC_RELAXED);
    own_generation = generation;
    own = i < CLOCK_READERS_MAX ? &readers->v[i] : NULL;
    if (!own)
        return;
    __atomic_store_n(&own->generation, 0, __ATOMIC_RELEASE);
    own->busy = 0;
    own->pid = getpid();
    memcpy(own->program, program, sizeof(own->program));
}

static int64_t ahead(const struct clock_reading *r) {
    return r->said_ns - r->real_ns;
}

static bool is_news(const struct clock_reader *r, uint32_t generation,
                    const struct clock_reading *now) {
    int64_t since = now->real_ns - r->last.real_ns, change = ahead(now) - ahead(&r->last);
    return r->generation != generation || since < 0 || since >= note_every_ns ||
           llabs(change) >= note_every_ns;
}

static void write_reader(struct clock_reader *r, uint32_t generation,
                         const struct clock_reading *now) {
    __atomic_store_n(&r->seq, r->seq | 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    if (r->generation != generation)
        r->first = r->least = r->most = *now;
    r->generation = generation;
    r->last = *now;
    if (ahead(now) < ahead(&r->least))
        r->least = *now;
    if (ahead(now) > ahead(&r->most))
        r->most = *now;
    __atomic_store_n(&r->seq, r->seq + 1, __ATOMIC_RELEASE);
}

/* Where another thread is at it, what this one was told is left out. */
static void note(uint32_t generation, int64_t real_ns, int64_t said_ns) {
    const struct clock_reading now = {real_ns, said_ns};
    if (!readers)
        return;
    if (own_generation != generation)
        take_own(generation);
    struct clock_reader *r = own;
    if (!r || !is_news(r, generation, &now) || __atomic_exchange_n(&r->busy, 1, __ATOMIC_ACQUIRE))
        return;
    write_reader(r, generation, &now);
    __atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE);
}

/* ---- reading the clock ---- */

static bool is_wall(clockid_t id) {
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI;
}

static int64_t say(int64_t real_ns) {
    struct clock_shift s;
    uint32_t generation = setting ? read_setting(&s) : 0;
    if (!generation || clock_shift_is_none(&s))
        return real_ns;
    int64_t said_ns = real_ns + clock_shift_at(&s, real_ns);
    note(generation, real_ns, said_ns);
    return said_ns;
}

static struct timespec wall(clockid_t id) {
    struct timespec t = {0};
    kernel_gettime(id, &t);
    return timespec_of(say(ns_of(&t)));
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ret) {
    int r = kernel_gettime(id, ret);
    if (r == 0 && is_wall(id))
        *ret = timespec_of(say(ns_of(ret)));
    return r;
}

EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone) {
    struct timespec t = wall(CLOCK_REALTIME);
    *ret = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    if (zone)
        *(struct timezone *)zone = (struct timezone){0};
    return 0;
}

EXPORT time_t time(time_t *ret) {
    struct timespec t = wall(CLOCK_REALTIME);
    if (ret)
        *ret = t.tv_sec;
    return t.tv_sec;
}

EXPORT int timespec_get(struct timespec *ret, int base) {
    if (base != TIME_UTC)
        return 0;
    *ret = wall(CLOCK_REALTIME);
    return base;
}

/* ---- waiting for a time of it ---- */

/* Most waits do not say of which clock they speak: what is less than 31 years is time since the
 * machine was switched on, what is more is the wall's. */
static bool is_wall_time(const struct timespec *t) {
    return t->tv_sec >= 1000000000;
}

/* When the kernel's clock will say it, as long as the setting stays: *t itself, or in *room. */
static const struct timespec *kernel_time(const struct timespec *t, struct timespec *room) {
    static const int64_t longest_s = 10LL * 365 * 86400;
    struct clock_shift s;
    struct timespec now;
    if (!t || !setting || !is_wall_time(t) || !read_setting(&s) || clock_shift_is_none(&s) ||
        t->tv_nsec < 0 || t->tv_nsec >= SECOND_NS || kernel_gettime(CLOCK_REALTIME, &now) != 0)
        return t;
    int64_t real_ns = ns_of(&now);
    struct timespec said = timespec_of(real_ns + clock_shift_at(&s, real_ns));
    if (t->tv_sec - said.tv_sec > longest_s) /* for ever */
        return t;
    __int128 left = (__int128)(t->tv_sec - said.tv_sec) * SECOND_NS + t->tv_nsec - said.tv_nsec;
    left = left * SECOND_NS / (SECOND_NS + s.drift_ppb);
    *room = timespec_of(real_ns + (int64_t)left);
    return room;
}

/* Some exist in two versions, of which a plain dlsym may give the older. */
static void *next_of(const char *name) {
    void *f = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return f ? f : dlsym(RTLD_NEXT, name);
}

/* A function of the same arguments that is called with the time in place of `t`; `refused`: what it
 * returns where the C library has none. */
#define WAITS(name, refused, params, ...)                                                          \
    EXPORT int name params {                                                                       \
        static int(*next) params;                                                                  \
        struct timespec room;                                                                      \
        if (!next)                                                                                 \
            *(void **)&next = next_of(#name);                                                      \
        return next ? next(__VA_ARGS__) : (refused);                                               \
    }
#define UNTIL      kernel_time(t, &room)
#define UNTIL_OF() (id == CLOCK_REALTIME ? UNTIL : t)

typedef const struct timespec *restrict until;

WAITS(pthread_cond_timedwait, ENOSYS,
      (pthread_cond_t *restrict c, pthread_mutex_t *restrict m, until t), c, m, UNTIL)
WAITS(pthread_cond_clockwait, ENOSYS,
      (pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t id, until t), c, m, id,
      UNTIL_OF())
WAITS(pthread_mutex_timedlock, ENOSYS, (pthread_mutex_t *restrict m, until t), m, UNTIL)
WAITS(pthread_mutex_clocklock, ENOSYS, (pthread_mutex_t *restrict m, clockid_t id, until t), m, id,
      UNTIL_OF())
WAITS(pthread_rwlock_timedrdlock, ENOSYS, (pthread_rwlock_t *restrict l, until t), l, UNTIL)
WAITS(pthread_rwlock_timedwrlock, ENOSYS, (pthread_rwlock_t *restrict l, until t), l, UNTIL)
WAITS(pthread_rwlock_clockrdlock, ENOSYS, (pthread_rwlock_t *restrict l, clockid_t id, until t), l,
      id, UNTIL_OF())
WAITS(pthread_rwlock_clockwrlock, ENOSYS, (pthread_rwlock_t *restrict l, clockid_t id, until t), l,
      id, UNTIL_OF())
WAITS(pthread_timedjoin_np, ENOSYS, (pthread_t who, void **ret, const struct timespec *t), who, ret,
      UNTIL)
WAITS(pthread_clockjoin_np, ENOSYS,
      (pthread_t who, void **ret, clockid_t id, const struct timespec *t), who, ret, id, UNTIL_OF())
WAITS(cnd_timedwait, thrd_error, (cnd_t *restrict c, mtx_t *restrict m, until t), c, m, UNTIL)
WAITS(mtx_timedlock, thrd_error, (mtx_t *restrict m, until t), m, UNTIL)
WAITS(sem_timedwait, (errno = ENOSYS, -1), (sem_t *restrict s, until t), s, UNTIL)
WAITS(sem_clockwait, (errno = ENOSYS, -1), (sem_t *restrict s, clockid_t id, until t), s, id,
      UNTIL_OF())
WAITS(mq_timedsend, (errno = ENOSYS, -1),
      (mqd_t q, const char *data, size_t n, unsigned urgency, const struct timespec *t), q, data, n,
      urgency, UNTIL)
WAITS(clock_nanosleep, ENOSYS,
      (clockid_t id, int flags, const struct timespec *t, struct timespec *left), id, flags,
      is_wall(id) && flags & TIMER_ABSTIME ? UNTIL : t, left)

EXPORT ssize_t mq_timedreceive(mqd_t q, char *restrict to, size_t n, unsigned *restrict ret_urgency,
                               until t) {
    static ssize_t (*next)(mqd_t, char *, size_t, unsigned *, const struct timespec *);
    struct timespec room;
    if (!next)
        *(void **)&next = next_of("mq_timedreceive");
    return next ? next(q, to, n, ret_urgency, UNTIL) : (errno = ENOSYS, -1);
}

static const struct itimerspec *kernel_timer(bool absolute, const struct itimerspec *t,
                                             struct itimerspec *room) {
    if (!absolute || !t)
        return t;
    *room = *t;
    room->it_value = *kernel_time(&t->it_value, &room->it_value);
    return room;
}

EXPORT int timer_settime(timer_t id, int flags, const struct itimerspec *restrict t,
                         struct itimerspec *restrict before) {
    static int (*next)(timer_t, int, const struct itimerspec *, struct itimerspec *);
    struct itimerspec room;
    if (!next)
        *(void **)&next = next_of("timer_settime");
    return next ? next(id, flags, kernel_timer(flags & TIMER_ABSTIME, t, &room), before)
                : (errno = ENOSYS, -1);
}

EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *t,
                           struct itimerspec *before) {
    static int (*next)(int, int, const struct itimerspec *, struct itimerspec *);
    struct itimerspec room;
    if (!next)
        *(void **)&next = next_of("timerfd_settime");
    return next ? next(fd, flags, kernel_timer(flags & TFD_TIMER_ABSTIME, t, &room), before)
                : (errno = ENOSYS, -1);
}

/* ---- the beginning ---- */

static void *map(int fd, int protection, size_t n, off_t at) {
    void *at_address = mmap(NULL, n, protection, MAP_SHARED, fd, at);
    return at_address == MAP_FAILED ? NULL : at_address;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv(CLOCK_PAGE_VARIABLE);
    *(void **)&next_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (!path)
        return;
    prctl(PR_GET_NAME, program);
    int before = errno, fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    bool notes = fd >= 0;
    if (fd < 0)
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    const struct clock_setting *found =
        fd < 0 || lseek(fd, 0, SEEK_END) < CLOCK_READERS_AT + (off_t)sizeof(struct clock_readers)
            ? NULL
            : map(fd, PROT_READ, sizeof(struct clock_setting), 0);
    if (found && found->version == CLOCK_PAGE_VERSION)
        setting = found;
    if (setting && notes)
        readers = map(fd, PROT_READ | PROT_WRITE, sizeof(struct clock_readers), CLOCK_READERS_AT);
    if (readers)
        __atomic_fetch_add(&readers->loaded, 1, __ATOMIC_RELAXED);
    pthread_atfork(NULL, NULL, forget_own);
    if (fd >= 0)
        close(fd);
    errno = before;
}
