/* How workers end, in a host that is played: who ends when, who reaps it, what the kernel tells of it, in which order
 * and what it loses are drawn; each call and each record is on record. Whoever was watched and has ended is recorded
 * once. */
#include "tests/harness/observe/noted.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/process.h"
#include "harness/carrier/host_process.h"
#include "harness/observe/pidfds.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 150, PIDS = 6, TOLD_MAX = 400, FAR = 1 };

struct played_worker {
    pid_t pid;
    int pidfd; /* -1: nobody watches it */
    bool ended, reaped;
    int status;
    bool far; /* on another host */
    loop_fd_fn *fn;
    void *arg;
};

static struct {
    int64_t now_ns;
    struct played_worker v[PIDS];
    struct pidfds *p;
    bool info_works;
    int events; /* -1: they are not open */
    loop_fd_fn *on_events;
    loop_timer_fn *on_late;
    void *on_events_arg, *on_late_arg;
    struct proc_exit told[TOLD_MAX];
    int codes[TOLD_MAX]; /* 1, or the error in its place */
    int first, last;
    int watched, recorded;
} world;

static int64_t played_now(void) {
    return world.now_ns += 3;
}

static struct played_worker *worker_of(int pidfd) {
    for (int i = 0; i < PIDS; i++)
        if (world.v[i].pidfd == pidfd)
            return &world.v[i];
    fail_msg("%d is nobody's pidfd", pidfd);
    return NULL;
}

/* ---- where a status comes from ---- */

static int zombie(pid_t pid, int *ret_status) {
    for (int i = 0; i < PIDS; i++)
        if (world.v[i].pid == pid && world.v[i].ended && !world.v[i].reaped && draw(2)) {
            *ret_status = world.v[i].status;
            note("%d is a zombie: %d", (int)pid, *ret_status);
            return 0;
        }
    note("%d is no zombie", (int)pid);
    return draw(4) ? -ESRCH : -EAGAIN;
}

static int info(int pidfd, int *ret_status) {
    const struct played_worker *w = worker_of(pidfd);
    int code = w->reaped ? 0 : draw(2) ? -EAGAIN : -ESRCH;
    *ret_status = w->status;
    note("info of %d: %d", pidfd, code);
    return code;
}

static bool info_works(void) {
    return world.info_works;
}

static int events_open(struct err *err) {
    assert_null(err);
    return world.events = fails("open events") ? -EPERM : played_open();
}

static int events_read(int fd, struct proc_exit *ret) {
    assert_int_equal(fd, world.events);
    int code = world.first < world.last ? world.codes[world.first] : 0;
    if (code == 1)
        *ret = world.told[world.first];
    world.first += code != 0;
    note("read events: %d, of %d", code, code == 1 ? (int)ret->pid : 0);
    return code;
}

static void events_close(int fd) {
    note("close events");
    played_shut(fd);
    world.events = -1;
}

static const struct exit_sources played_sources = {.zombie = zombie,
                                                   .info = info,
                                                   .info_works = info_works,
                                                   .events_open = events_open,
                                                   .events_read = events_read,
                                                   .events_close = events_close};

/* ---- the system ---- */

/* Whoever waits is told in that time, or not. */
static int played_poll(struct pollfd *fds, nfds_t n, int timeout) {
    assert_int_equal(n, 1);
    if (timeout)
        note("poll %d for %d, %d", fds->fd, fds->events, timeout);
    world.now_ns += timeout * INT64_C(1000000);
    if (fds->fd < 0) /* events are heard no more: it only waits */
        return 0;
    assert_true(played.open[fds->fd]);
    if (fds->fd == world.events)
        return world.first < world.last;
    struct played_worker *w = worker_of(fds->fd);
    if (fds->events == 0) /* to be reaped */
        return w->reaped |= draw(3) != 0;
    return w->ended;
}

static struct loop_source *played_loop_fd(struct loop *l, int fd, int what, loop_fd_fn *fn,
                                          void *arg) {
    note("listen to %d for %d", fd, what);
    if (fd == world.events) {
        world.on_events = fn;
        world.on_events_arg = arg;
        return (struct loop_source *)&world.on_events;
    }
    struct played_worker *w = worker_of(fd);
    w->fn = fn;
    w->arg = arg;
    return (struct loop_source *)w;
}

static struct loop_source *played_loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    note("a timer");
    world.on_late = fn;
    world.on_late_arg = arg;
    return (struct loop_source *)&world.on_late;
}

static void played_timer_at(struct loop_source *s, int64_t at_ns) {
    assert_ptr_equal(s, &world.on_late);
    note("late at %lld", (long long)at_ns);
}

static struct loop_source *played_source_free(struct loop_source *s) {
    if (s == (void *)&world.on_events)
        world.on_events = NULL;
    else if (s == (void *)&world.on_late)
        world.on_late = NULL;
    else if (s)
        ((struct played_worker *)s)->fn = NULL;
    note("listen to %s no more", s ? "it" : "nothing");
    return NULL;
}

static int played_close_pidfd(int fd) {
    for (int i = 0; i < PIDS; i++)
        if (world.v[i].pidfd == fd) {
            world.v[i].pidfd = -1;
            world.v[i].fn = NULL;
        }
    return played_close(fd);
}

static bool played_is_far(pid_t pid) {
    return pid >= 100 + PIDS - FAR;
}

static bool played_far_end(pid_t pid, struct clock_stamp *ret) {
    *ret = (struct clock_stamp){.t_ns = 12, .bound_ns = 3, .there_ns = 4};
    note("the end of %d there", (int)pid);
    return true;
}

static int played_far_status(pid_t pid, int *ret_status) {
    *ret_status = 5 << 8;
    int code = draw(2) ? 0 : -ENODATA;
    note("the status of %d there: %d", (int)pid, code);
    return code;
}

#define poll                played_poll
#define close               played_close_pidfd
#define loop_fd             played_loop_fd
#define loop_timer          played_loop_timer
#define loop_timer_at       played_timer_at
#define loop_source_free    played_source_free
#define clock_monotonic_ns  played_now
#define host_process_is     played_is_far
#define host_process_end    played_far_end
#define host_process_status played_far_status
#include "harness/observe/pidfds.c"
#undef poll
#undef close

/* ---- what comes next ---- */

static void on_told(const struct record *r, struct event_client *from) {
    assert_true(record_is(r, "worker-exit") && !from);
    world.recorded++;
    if (draw(8) == 0)
        pidfds_drain(world.p); /* as a listener may */
}

static void on_ended(void *arg, pid_t pid) {
    note("%d has ended; it is watched by %d", (int)pid, pidfds_find(world.p, pid));
}

static void tell(int code, struct proc_exit e) {
    if (world.last == TOLD_MAX)
        return;
    world.codes[world.last] = code;
    world.told[world.last++] = e;
}

/* Statuses are few, so that some are alike. */
static int draw_status(void) {
    static const int statuses[] = {0, 3 << 8, SIGKILL};
    return statuses[draw(3)];
}

static void tell_something(void) {
    struct played_worker *w = &world.v[draw(PIDS)];
    if (draw(12) == 0) {
        tell(draw(6) ? -ENOBUFS : -EIO, (struct proc_exit){.pid = 0});
        return;
    }
    tell(1, (struct proc_exit){.pid = w->pid,
                               .thread = draw(3) ? w->pid : w->pid + 500,
                               .status = draw(2) ? w->status : draw_status(),
                               .t_ns = world.now_ns - draw(3000)});
}

static void watch(void) {
    struct played_worker *w = &world.v[draw(PIDS)];
    int64_t since_ns = world.now_ns - draw(2000);
    if (w->pidfd >= 0) { /* once more */
        if (pidfds_find(world.p, w->pid) >= 0)
            pidfds_watch(world.p, "n9", w->pid, played_open(), since_ns);
        return;
    }
    w->pidfd = played_open();
    w->ended = draw(10) == 0;
    w->reaped = false;
    w->status = draw_status();
    world.watched++;
    pidfds_watch(world.p, draw(2) ? "n0" : "n1", w->pid, w->pidfd, since_ns);
}

static void step(void) {
    struct played_worker *w = &world.v[draw(PIDS)];
    switch (draw(10)) {
    case 0:
    case 1:
        watch();
        return;
    case 2:
        w->ended |= w->pidfd >= 0;
        return;
    case 3:
        w->reaped |= w->ended;
        return;
    case 4:
        if (w->ended && w->fn)
            w->fn(w->arg, w->pidfd, LOOP_READ);
        return;
    case 5:
    case 6:
        tell_something();
        return;
    case 7:
        if (world.on_events && world.first < world.last)
            world.on_events(world.on_events_arg, world.events, LOOP_READ);
        return;
    case 8:
        world.now_ns += draw(150000000);
        if (world.on_late)
            world.on_late(world.on_late_arg, world.now_ns);
        return;
    default:
        if (draw(4) == 0)
            pidfds_drain(world.p);
        note("%d is watched by %d, %s", (int)w->pid, pidfds_find(world.p, w->pid),
             pidfds_way(world.p));
    }
}

/* More ends of others than are kept, of which the oldest are forgotten. */
static void tell_many(void) {
    for (int i = 0; i < RECENT_MAX + 3; i++) {
        world.first = world.last = 0;
        tell(1, (struct proc_exit){.pid = 100 + i % (RECENT_MAX + 2),
                                   .thread = 100,
                                   .t_ns = world.now_ns + 1000000000,
                                   .status = 7 << 8});
        if (world.on_events)
            world.on_events(world.on_events_arg, world.events, LOOP_READ);
    }
}

static void observe(uint64_t seed) {
    memset(&world, 0, sizeof(world));
    world.now_ns = 1000000000;
    world.events = -1;
    world.info_works = seed % 4 == 0;
    for (int i = 0; i < PIDS; i++)
        world.v[i] = (struct played_worker){.pid = 100 + i, .pidfd = -1};
    noted_begin(on_told);
    world.p = pidfds_new((struct loop *)&world, &noted.rec, &played_sources, on_ended, &world);
    if (seed == 1 && !played.fails_at)
        tell_many();
    for (int i = 0; i < STEPS; i++)
        step();
    pidfds_drain(world.p);
    int living = 0;
    for (int i = 0; i < PIDS; i++) {
        assert_false(world.v[i].pidfd >= 0 && world.v[i].ended);
        living += world.v[i].pidfd >= 0;
    }
    assert_int_equal(world.watched, world.recorded + living);
    assert_null(pidfds_free(world.p));
    assert_true(!world.on_events && !world.on_late);
    noted_end();
}

static const struct play plays[] = {
    {"tests/harness/observe/record/pidfds.txt", observe, 200, true, {EPERM, EPERM}}};

static void test_how_workers_end_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_workers_end_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
