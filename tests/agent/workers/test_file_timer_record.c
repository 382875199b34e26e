/* What workers ask of their timers, with clocks and a FIFO that are played: requests, rubbish and how it is cut into
 * pieces are drawn; each call and each timer that expires is on record. */
#include "tests/played.h"

#include "agent/workers/file_timer.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 120 };

static struct {
    int64_t now_ns, due_ns; /* due 0: it is off */
    struct file_timer *t;
    struct buf written;
    int fd;
    bool slow; /* it is read in small pieces */
    loop_fd_fn *on_readable;
    loop_timer_fn *on_due;
    void *arg;
} world;

static int64_t played_monotonic(void) {
    return world.now_ns;
}

static int64_t played_realtime(void) {
    return world.now_ns + INT64_C(1700000000000000000);
}

static int played_lstat(const char *path, struct stat *st) {
    static const mode_t modes[] = {S_IFIFO, S_IFREG, S_IFLNK};
    *st = (struct stat){.st_mode = modes[draw(8) ? 0 : draw(3)]};
    return fails("look at %s: %o", path, (unsigned)st->st_mode) ? -1 : 0;
}

static int played_unlink(const char *path) {
    note("remove %s", path);
    return 0;
}

static int played_mkfifo(const char *path, mode_t mode) {
    return fails("make %s %o", path, (unsigned)mode) ? -1 : 0;
}

static int played_open_file(const char *path, int flags) {
    return world.fd = fails("open %s %d", path, flags) ? -1 : played_open();
}

static ssize_t played_read(int fd, void *data, size_t size) {
    size_t n = world.written.len < size ? world.written.len : size;
    assert_int_equal(fd, world.fd);
    n = n > 1 && draw(2) ? 1 + (size_t)draw((int)n) : n;
    n = world.slow && n > 20 ? 1 + (size_t)draw(20) : n;
    if (n)
        memcpy(data, world.written.data, n);
    buf_consume(&world.written, n);
    note("read %zu of %zu", n, size);
    errno = EAGAIN;
    return n ? (ssize_t)n : -1;
}

static struct loop_source *played_loop_fd(struct loop *l, int fd, int what, loop_fd_fn *fn,
                                          void *arg) {
    note("listen to %d for %d", fd, what);
    world.on_readable = fn;
    world.arg = arg;
    return (struct loop_source *)&world.on_readable;
}

static struct loop_source *played_loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    world.on_due = fn;
    return (struct loop_source *)&world.on_due;
}

static void played_timer_at(struct loop_source *s, int64_t at_ns) {
    assert_ptr_equal(s, &world.on_due);
    note("due at %lld", (long long)at_ns);
    world.due_ns = at_ns;
}

static void played_timer_off(struct loop_source *s) {
    assert_ptr_equal(s, &world.on_due);
    note("due never");
    world.due_ns = 0;
}

static struct loop_source *played_source_free(struct loop_source *s) {
    note("no more of %s", !s ? "nothing" : s == (void *)&world.on_due ? "the timer" : "the FIFO");
    if (s == (void *)&world.on_due)
        world.on_due = NULL;
    else if (s)
        world.on_readable = NULL;
    return NULL;
}

#define clock_monotonic_ns played_monotonic
#define clock_realtime_ns  played_realtime
#define lstat(path, st)    played_lstat(path, st)
#define unlink             played_unlink
#define mkfifo             played_mkfifo
#define open(path, flags)  played_open_file(path, flags)
#define read               played_read
#define file_close         played_file_close
#define loop_fd            played_loop_fd
#define loop_timer         played_loop_timer
#define loop_timer_at      played_timer_at
#define loop_timer_off     played_timer_off
#define loop_source_free   played_source_free
#include "agent/workers/file_timer.c"
#undef lstat
#undef unlink
#undef open
#undef read

static void on_expired(void *arg, pid_t pid, int signo, const char *scope, int64_t late_ns) {
    assert_ptr_equal(arg, &world);
    note("> %d is due: %d for %s, late %lld", (int)pid, signo, scope, (long long)late_ns);
}

static void on_odd(void *arg, const char *what) {
    assert_ptr_equal(arg, &world);
    note("> odd: %s", what);
}

static const struct file_timer_events told = {on_expired, on_odd};

/* ---- what is asked ---- */

static void ask(void) {
    static const char *const scopes[] = {"a", "b", "a scope of its own",
                                         "one that is longer than there is room for, so that it is "
                                         "cut where it is told but not where it is compared, as it "
                                         "must be: x",
                                         "one that is longer than there is room for, so that it is "
                                         "cut where it is told but not where it is compared, as it "
                                         "must be: y"};
    static const char *const signals[] = {"9", "0", "-1", "64", "65", "15", "\"9\"", "63"};
    static const char *const pids[] = {"17", "18", "19", "0", "-3", "2147483647", "2147483648"};
    char at[40];
    double seconds = (double)played_realtime() / 1e9 + (double)(draw(4000) - 1000) / 1000;
    snprintf(at, sizeof(at), "%.9f", seconds);
    static const char *const odd_times[] = {"-1", "0", "-0.5", "1e300", "\"soon\"", "1e9", "17"};
    const char *time = draw(3) ? at : odd_times[draw(7)];
    buf_printf(&world.written,
               "{\"version\":%d,\"pid\":%s,\"scope_id\":\"%s\",\"expiration_time\":%s%s%s}\n",
               draw(15) ? 1 : 2, pids[draw(3) ? draw(3) : draw(7)], scopes[draw(5)], time,
               draw(8) ? ",\"signal\":" : ",\"sign\":", signals[draw(3) ? 0 : draw(8)]);
}

static void write_rubbish(void) {
    static const char *const rubbish[] = {"\n",
                                          "{}\n",
                                          "[1]\n",
                                          "not JSON\n",
                                          "{\"version\":1,\"pid\":17,\"expiration_time\":1}\n",
                                          "{\"version\":1,\"pid\":17,\"scope_id\":\"a\"}\n"};
    size_t n = (size_t)(PIPE_BUF * (1 + 2 * (draw(3) == 0)) + draw(3) - 1);
    if (draw(3)) {
        buf_puts(&world.written, rubbish[draw(6)]);
        return;
    }
    while (n-- > 0)
        buf_putc(&world.written, 'x');
    buf_putc(&world.written, '\n');
}

static void step(void) {
    switch (draw(10)) {
    case 0:
    case 1:
    case 2:
        ask();
        return;
    case 3:
        if (draw(4) == 0)
            write_rubbish();
        return;
    case 4:
    case 5:
    case 6:
        world.on_readable(world.arg, world.fd, LOOP_READ);
        return;
    case 7:
        world.now_ns += draw(900000000);
        return;
    case 8:
        if (world.due_ns && world.due_ns <= world.now_ns)
            world.on_due(world.arg, world.now_ns);
        return;
    default:
        world.slow = draw(2);
        if (draw(8) == 0)
            file_timer_clear(world.t);
        else
            file_timer_forget(world.t, 17 + draw(3));
    }
}

static void keep_time(uint64_t seed) {
    char path[PATH_MAX + 1];
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    world.now_ns = 3000000000;
    memset(path, 'p', sizeof(path));
    snprintf(path, sizeof(path), "/fifo");
    if (seed <= 2) /* as long as it may be, and a letter more */
        path[5] = 'o';
    path[seed == 1 ? PATH_MAX - 1 : PATH_MAX] = '\0';
    world.t = file_timer_new((struct loop *)&world, path, &told, &world, &err);
    note("is there %d: %d %s", world.t != NULL, err.code, err.msg);
    for (int i = 0; world.t && i < STEPS; i++)
        step();
    assert_null(file_timer_free(world.t));
    assert_true(!world.on_readable && !world.on_due);
    buf_fini(&world.written);
}

static const struct play plays[] = {
    {"tests/agent/workers/record/file_timer.txt", keep_time, 120, true, {EACCES, ENFILE}}};

static void test_what_becomes_of_timers_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

/* The last that is kept, and one more. */
static void test_so_many_timers_are_kept_and_no_more(void **state) {
    (void)state;
    struct file_timer t = {.ev = &told, .arg = &world};
    buf_clear(&played.said);
    for (int i = 0; i <= FILE_TIMER_MAX; i++) {
        assert_string_equal(buf_str(&played.said), "");
        set(&t, &(struct file_timer_limit){.pid = 1 + i, .scope_hash = 7});
    }
    assert_string_equal(buf_str(&played.said), "> odd: more timers than can be kept are set\n");
    assert_int_equal(t.n, FILE_TIMER_MAX);
    set(&t, &(struct file_timer_limit){.pid = FILE_TIMER_MAX, .scope_hash = 7, .at_ns = 9});
    assert_int_equal(limit_find(&t, FILE_TIMER_MAX, 7)->at_ns, 9);
    free(t.limits);
    buf_fini(&played.said);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_becomes_of_timers_is_on_record),
        cmocka_unit_test(test_so_many_timers_are_kept_and_no_more),
    };
    return played_main(argc, argv, plays, tests);
}
