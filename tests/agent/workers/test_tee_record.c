/* What is shown of files that are followed, with threads, files and a console that are played: the thread of the tee
 * takes its turns where the test lets it; what is written when, what the kernel refuses and how slow the console is are
 * drawn. Each call is on record; whatever was written into a file that has ended is shown, in its order. */
#include "tests/played.h"

#include "agent/workers/console.h"
#include "agent/workers/tee.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/texts.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 60, FILES = 6, TURNS = 3, TEXT_MAX = 400 };

struct played_file {
    char path[40];
    int fd, filtered;
    char text[TEXT_MAX];
    size_t len, at;
    bool ended; /* nobody writes into it any more */
};

static struct {
    int64_t now_ns;
    struct tee *t;
    struct played_file v[FILES];
    int files; /* that were followed */
    void *(*live)(void *arg);
    void *arg;
    int turns;     /* that the thread has before it is not run */
    bool runs;     /* it is run now */
    bool returned; /* it has ended */
    bool never;    /* it hangs in a write from now on */
    int locked;
    int wake, inotify;
    jmp_buf out;
} world;

static struct played_file *file_of(int fd) {
    for (int i = world.files; i-- > 0;) /* an earlier one of that number is closed */
        if (world.v[i].fd == fd)
            return &world.v[i];
    fail_msg("%d is no file's", fd);
    return NULL;
}

/* ---- files ---- */

static int played_open_file(const char *path, int flags, mode_t mode) {
    bool filtered = str_ends(path, "filtered");
    if (fails("open %s %d %o", path, flags, mode))
        return -1;
    int fd = played_open();
    for (int i = 0; i < world.files && !filtered; i++)
        if (str_eq(world.v[i].path, path))
            world.v[i].fd = fd;
    return fd;
}

static ssize_t played_read(int fd, void *data, size_t size) {
    if (fd == world.wake || fd == world.inotify) {
        note("read %d: %zu", fd, size);
        errno = EAGAIN;
        return fd == world.inotify && draw(2) ? 16 : -1;
    }
    struct played_file *f = file_of(fd);
    size_t n = f->len - f->at;
    assert_true(world.locked == 0 && size > TEXT_MAX);
    n = n > 1 && draw(3) == 0 ? 1 + (size_t)draw((int)n) : n;
    memcpy(data, f->text + f->at, n);
    f->at += n;
    note("read %d: %zu", fd, n);
    return (ssize_t)n;
}

static ssize_t played_write(int fd, const void *data, size_t size) {
    uint64_t one = 0;
    assert_int_equal(size, sizeof(one));
    memcpy(&one, data, size);
    note("wake %d by %d", fd, (int)one);
    assert_int_equal(fd, world.wake);
    return (ssize_t)size;
}

static int played_write_all(int fd, const void *data, size_t len, struct err *err) {
    assert_int_equal(world.locked, 0);
    note("show %d: %.*s.", fd, (int)len, (const char *)data);
    assert_true(fd == 1 || fd == 2 || played.open[fd]);
    return 0;
}

static int played_eventfd(unsigned count, int flags) {
    return world.wake = fails("eventfd %u %d", count, flags) ? -1 : played_open();
}

static int played_inotify(int flags) {
    return world.inotify = fails("inotify %d", flags) ? -1 : played_open();
}

static int played_watch(int fd, const char *path, uint32_t mask) {
    assert_int_equal(fd, world.inotify);
    return fails("watch %s for %x", path, mask) ? -1 : world.files + 10;
}

static int played_unwatch(int fd, int watch) {
    note("watch %d no more", watch);
    assert_int_equal(fd, world.inotify);
    return 0;
}

/* ---- the thread ---- */

/* It waits: whoever runs it goes on when it has had its turns. */
static int played_poll(struct pollfd *fds, nfds_t n, int timeout) {
    assert_true(fds[0].fd == world.wake && fds[1].fd == world.inotify && timeout == -1 && n == 2);
    assert_true(fds[0].events == POLLIN && fds[1].events == POLLIN);
    if (world.turns-- == 0)
        longjmp(world.out, 1);
    fds[0].revents = draw(2) ? POLLIN : 0;
    fds[1].revents = draw(2) ? POLLIN : 0;
    errno = EINTR;
    return draw(10) ? 1 : -1;
}

/* From its beginning, as it holds nothing between two turns. */
static void run_thread(int turns) {
    if (world.returned || world.runs || world.never)
        return;
    world.turns = turns;
    world.runs = true;
    if (setjmp(world.out) == 0) {
        assert_null(world.live(world.arg));
        world.returned = true;
        note("the thread has ended");
    }
    world.runs = false;
}

static int played_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg),
                         void *arg) {
    if (fails("a thread"))
        return errno;
    world.live = fn;
    world.arg = arg;
    *ret = (pthread_t)77;
    return 0;
}

static int played_join(pthread_t t, void **ret) {
    note("join");
    assert_true(t == (pthread_t)77 && world.returned);
    return 0;
}

static int played_detach(pthread_t t) {
    note("detach");
    assert_true(t == (pthread_t)77);
    return 0;
}

static int played_mask(int how, const sigset_t *set, sigset_t *before) {
    note("mask %d", how);
    if (before)
        sigemptyset(before);
    assert_int_equal(sigismember(set, SIGTERM), before != NULL);
    return 0;
}

static int played_lock(pthread_mutex_t *m) {
    assert_int_equal(world.locked++, 0);
    return 0;
}

static int played_unlock(pthread_mutex_t *m) {
    assert_int_equal(--world.locked, 0);
    return 0;
}

static int played_destroy(pthread_mutex_t *m) {
    note("no lock any more");
    assert_int_equal(world.locked, 0);
    return 0;
}

static int played_signal(pthread_cond_t *c) {
    note("tell");
    assert_int_equal(world.locked, 1);
    return 0;
}

/* Meanwhile the thread has a turn, or the time is up. */
static int played_wait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until) {
    int64_t until_ns = until->tv_sec * INT64_C(1000000000) + until->tv_nsec;
    assert_true(until->tv_nsec >= 0 && until->tv_nsec < 1000000000);
    note("wait until %lld", (long long)until_ns);
    assert_int_equal(world.locked--, 1);
    world.never |= draw(6) == 0;
    if (world.never)
        world.now_ns = until_ns;
    else
        run_thread(1);
    world.locked++;
    return world.never ? ETIMEDOUT : 0;
}

static int played_gettime(clockid_t clock, struct timespec *ret) {
    assert_int_equal(clock, CLOCK_MONOTONIC);
    *ret = (struct timespec){world.now_ns / 1000000000, world.now_ns % 1000000000};
    return 0;
}

static int played_clock_of(pthread_condattr_t *a, clockid_t clock) {
    note("by clock %d", (int)clock);
    return 0;
}

#define open(path, flags, mode)   played_open_file(path, flags, mode)
#define read                      played_read
#define write                     played_write
#define file_write_all            played_write_all
#define file_close                played_file_close
#define eventfd(count, flags)     played_eventfd(count, flags)
#define inotify_init1             played_inotify
#define inotify_add_watch         played_watch
#define inotify_rm_watch          played_unwatch
#define poll                      played_poll
#define pthread_create            played_create
#define pthread_join              played_join
#define pthread_detach            played_detach
#define pthread_sigmask           played_mask
#define pthread_mutex_lock        played_lock
#define pthread_mutex_unlock      played_unlock
#define pthread_mutex_destroy     played_destroy
#define pthread_cond_signal       played_signal
#define pthread_cond_timedwait    played_wait
#define pthread_condattr_setclock played_clock_of
#define clock_gettime             played_gettime
#include "agent/workers/tee.c"
#undef open
#undef read
#undef write
#undef poll

/* ---- what comes next ---- */

static void follow(void) {
    static const char *const loss[] = {"loss", "NaN", NULL}, *const none[] = {NULL};
    static const char *const *const needles[] = {NULL, loss, none};
    struct err err = {0};
    if (world.files == FILES)
        return;
    struct played_file *f = &world.v[world.files++];
    char filtered[60];
    snprintf(f->path, sizeof(f->path), "/logs/%d", world.files);
    snprintf(filtered, sizeof(filtered), "%s/filtered", f->path);
    f->fd = -1;
    int code = tee_follow(world.t,
                          &(struct tee_stream){.path = f->path,
                                               .fd = 1 + draw(2),
                                               .header = draw(2) ? "[a]:" : "",
                                               .needles = needles[draw(3)],
                                               .filtered_path = filtered},
                          &err);
    note("follows %s: %d %s", f->path, code, err.msg);
    f->fd = code ? -1 : f->fd;
}

static void write_some(void) {
    static const char *const texts[] = {"one\n",      "two",        "loss 3\n", "\r\n",
                                        "10%\r20%\r", "is NaN\n\n", "x\r",      "\n"};
    if (!world.files)
        return;
    struct played_file *f = &world.v[draw(world.files)];
    const char *text = texts[draw(8)];
    if (!f->ended && f->len + strlen(text) < TEXT_MAX) {
        memcpy(f->text + f->len, text, strlen(text));
        f->len += strlen(text);
    }
}

static void end_round(void) {
    for (int i = 0; i < world.files; i++)
        world.v[i].ended = true;
    tee_end(world.t);
}

static void step(void) {
    switch (draw(8)) {
    case 0:
        follow();
        return;
    case 1:
        if (draw(3) == 0)
            end_round();
        return;
    case 2:
    case 3:
        run_thread(1 + draw(TURNS));
        return;
    default:
        write_some();
    }
}

/* What a thread that hangs has left: it goes on when the console does. */
static void go_on_alone(void) {
    note("it goes on");
    world.never = false;
    run_thread(2);
    assert_true(world.returned);
}

static void show(uint64_t seed) {
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    world.now_ns = 7999999999;
    world.wake = world.inotify = -1;
    if (seed % 2)
        played.open[0] = true;
    world.t = tee_new(&err);
    note("shows %d: %s", world.t != NULL, world.t ? "" : err.msg);
    for (int i = 0; world.t && i < STEPS; i++)
        step();
    bool over = tee_free(world.t, 2500000000);
    note("over: %d", over);
    if (!over)
        go_on_alone();
    played.open[0] &= seed % 2 == 0;
    for (int i = 0; world.t && i < world.files && world.returned; i++)
        if (world.v[i].at != world.v[i].len && world.v[i].fd != -1)
            fail_msg("%s is shown to %zu of %zu by:\n%s", world.v[i].path, world.v[i].at,
                     world.v[i].len, buf_str(&played.said));
}

static const struct play plays[] = {
    {"tests/agent/workers/record/tee.txt", show, 120, true, {EMFILE, ENOSPC}}};

static void test_what_is_shown_of_files_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_shown_of_files_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
