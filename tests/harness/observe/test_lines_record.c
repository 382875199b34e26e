/* Files that are followed, with a kernel that is played: who writes how much and when, what is told of it and what is
 * lost, and what cannot be read are drawn; each call is on record, and each line in a sum. Whoever is drained has told
 * every byte, or counted it. */
#include "tests/played.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/observe/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 90, FILES = 4, PATTERN = 997 };

struct played_file {
    struct lines_file *f;
    int fd, watch;
    int64_t size;
    uint64_t phase; /* of the pattern that it holds */
    bool closed;
};

static struct {
    int64_t now_ns;
    struct lines *l;
    struct played_file v[FILES];
    char pattern[PATTERN];
    int inotify;
    loop_fd_fn *on_changes;
    loop_timer_fn *on_again;
    void *on_changes_arg, *on_again_arg;
    int64_t again_ns; /* 0: it is off */
    bool deaf;
    struct inotify_event events[16];
    int events_n;
    uint64_t sum;
    size_t lines;
} world;

static int64_t played_now(void) {
    return world.now_ns;
}

static struct played_file *file_of(int fd) {
    for (int i = 0; i < FILES; i++)
        if (world.v[i].fd == fd)
            return &world.v[i];
    fail_msg("%d is no file's", fd);
    return NULL;
}

/* ---- the kernel ---- */

static int played_fstat(int fd, struct stat *st) {
    *st = (struct stat){.st_size = file_of(fd)->size};
    return fails("look at %d: %lld", fd, (long long)st->st_size) ? -1 : 0;
}

static ssize_t played_pread(int fd, void *data, size_t size, off_t from) {
    const struct played_file *f = file_of(fd);
    size_t n = from < f->size ? (size_t)(f->size - from) : 0;
    if (fails("read %d: %zu from %lld", fd, size, (long long)from))
        return -1;
    n = n < size ? n : size;
    for (size_t i = 0; i < n; i++)
        ((char *)data)[i] = world.pattern[(f->phase + (uint64_t)from + i) % PATTERN];
    return (ssize_t)n;
}

static int played_fallocate(int fd, int mode, off_t from, off_t size) {
    return fails("give back %d, %d: %lld from %lld", fd, mode, (long long)size, (long long)from)
               ? -1
               : 0;
}

static int played_inotify(int flags) {
    return world.inotify = fails("inotify %d", flags) ? -1 : played_open();
}

static int played_watch(int fd, const char *path, uint32_t mask) {
    static int next;
    int of = -1;
    assert_int_equal(fd, world.inotify);
    if (fails("watch %s for %x", path, mask))
        return -1;
    assert_int_equal(sscanf(path, "/proc/self/fd/%d", &of), 1);
    next = of + 40;
    return file_of(of)->watch = next;
}

static int played_unwatch(int fd, int watch) {
    note("watch %d no more", watch);
    assert_int_equal(fd, world.inotify);
    return 0;
}

/* As many as were written; one may bring a name. */
static ssize_t played_read(int fd, void *data, size_t size) {
    char *at = data;
    assert_int_equal(fd, world.inotify);
    for (int i = 0; i < world.events_n; i++) {
        size_t len = i % 3 == 1 ? 16 : 0;
        assert_true(at + sizeof(*world.events) + len <= (char *)data + size);
        world.events[i].len = (uint32_t)len;
        memcpy(at, &world.events[i], sizeof(*world.events));
        memset(at + sizeof(*world.events), 0, len);
        at += sizeof(*world.events) + len;
    }
    note("changes: %d", world.events_n);
    world.events_n = 0;
    errno = EAGAIN;
    return at == (char *)data ? -1 : at - (char *)data;
}

/* ---- the loop ---- */

static struct loop_source *played_loop_fd(struct loop *l, int fd, int what, loop_fd_fn *fn,
                                          void *arg) {
    note("listen to %d for %d", fd, what);
    world.on_changes = fn;
    world.on_changes_arg = arg;
    return (struct loop_source *)&world.on_changes;
}

static void played_loop_fd_set(struct loop_source *s, int what) {
    assert_ptr_equal(s, &world.on_changes);
    note("listen for %d now", what);
    world.deaf = !what;
}

static struct loop_source *played_loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    world.on_again = fn;
    world.on_again_arg = arg;
    return (struct loop_source *)&world.on_again;
}

static void played_timer_at(struct loop_source *s, int64_t at_ns) {
    assert_ptr_equal(s, &world.on_again);
    note("again at %lld", (long long)at_ns);
    world.again_ns = at_ns;
}

static struct loop_source *played_source_free(struct loop_source *s) {
    if (s == (void *)&world.on_again)
        world.on_again = NULL;
    else if (s == (void *)&world.on_changes)
        world.on_changes = NULL;
    note("no more of one source");
    return NULL;
}

#define fstat(fd, st)      played_fstat(fd, st)
#define pread              played_pread
#define fallocate          played_fallocate
#define inotify_init1      played_inotify
#define inotify_add_watch  played_watch
#define inotify_rm_watch   played_unwatch
#define read               played_read
#define file_close         played_file_close
#define loop_fd            played_loop_fd
#define loop_fd_set        played_loop_fd_set
#define loop_timer         played_loop_timer
#define loop_timer_at      played_timer_at
#define loop_source_free   played_source_free
#define clock_monotonic_ns played_now
#include "harness/observe/lines.c"
#undef fstat
#undef read

/* ---- what comes next ---- */

static void on_line(void *arg, void *who, const char *line) {
    struct played_file *f = who;
    assert_ptr_equal(arg, &world);
    assert_true(strlen(line) <= LINE_LENGTH_MAX);
    world.lines++;
    world.sum = on_record_sum(world.sum, line, strlen(line));
    world.sum = (world.sum ^ (uint64_t)(f - world.v)) * UINT64_C(1099511628211);
    if (draw(500) == 0)
        lines_drain(f->f); /* from within: it is being read */
}

static void note_counts(const struct played_file *f) {
    struct lines_count c = lines_counted(f->f);
    note("%zu lines, %016llx; of %td: %llu, %llu skipped, %llu cut, %llu portions", world.lines,
         (unsigned long long)world.sum, f - world.v, (unsigned long long)c.lines,
         (unsigned long long)c.skipped_bytes, (unsigned long long)c.cut_lines,
         (unsigned long long)c.portions);
}

static void follow(void) {
    struct err err = {0};
    struct played_file *f = NULL;
    for (int i = 0; i < FILES && !f; i++)
        f = world.v[i].f || world.v[i].closed ? NULL : &world.v[i];
    if (!f)
        return;
    *f = (struct played_file){.fd = played_open(), .size = draw(2) ? 0 : draw(5000)};
    f->phase = (uint64_t)draw(PATTERN);
    f->f = lines_follow(world.l, f->fd, f, &err);
    note("follows %d: %s", f->f != NULL, f->f ? "" : err.msg);
    if (!f->f)
        *f = (struct played_file){.fd = -1, .closed = true};
}

static void change(struct played_file *f, uint32_t mask) {
    if (world.events_n < 16)
        world.events[world.events_n++] =
            (struct inotify_event){.wd = mask == IN_Q_OVERFLOW ? -1 : f->watch, .mask = mask};
}

static void write_some(struct played_file *f) {
    static const int amounts[] = {1, 30, PORTION - 1, PORTION, PORTION + 1, 300000, 1 << 20};
    if (draw(12) == 0)
        f->size = draw(3) ? 0 : f->size / 2; /* it is emptied */
    else if (draw(25) == 0)
        f->size += BACKLOG_MAX + draw(3) - 1;
    else
        f->size += amounts[draw(7)];
    change(f, draw(10) ? IN_MODIFY : IN_Q_OVERFLOW);
}

static void step(void) {
    struct played_file *f = &world.v[draw(FILES)];
    switch (draw(8)) {
    case 0:
        follow();
        return;
    case 1:
    case 2:
        if (f->f && !f->closed)
            write_some(f);
        return;
    case 3:
        if (!world.deaf)
            world.on_changes(world.on_changes_arg, world.inotify, LOOP_READ);
        return;
    case 4:
        world.now_ns += draw(3) ? draw(1000000) : draw(150000000);
        return;
    case 5:
    case 6:
        if (world.again_ns && world.again_ns <= world.now_ns) {
            world.again_ns = 0;
            world.on_again(world.on_again_arg, world.now_ns);
        }
        return;
    default:
        if (!f->f)
            return;
        if (draw(6) == 0) {
            lines_close(f->f);
            f->closed = true;
            f->fd = -1;
        } else if (draw(3) == 0) {
            lines_drain(f->f);
        }
        note_counts(f);
    }
}

static void draw_pattern(void) {
    static const char letters[] = "abcdefg hij\n\n\r\033[1;m\x7f\x01\xff(K~@";
    for (int i = 0; i < PATTERN; i++)
        world.pattern[i] = letters[draw(sizeof(letters) - 1)];
    if (draw(3) == 0) /* lines that are longer than there is room */
        for (int i = 0; i < PATTERN; i++)
            world.pattern[i] =
                world.pattern[i] == '\n' || world.pattern[i] == '\r' ? 'x' : world.pattern[i];
}

static void observe_for(uint64_t seed, int steps) {
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    world.now_ns = 1000000000;
    world.inotify = -1;
    for (int i = 0; i < FILES; i++)
        world.v[i].fd = -1;
    draw_pattern();
    world.l = lines_new((struct loop *)&world, on_line, &world, &err);
    note("watches %d: %s", world.l != NULL, world.l ? "" : err.msg);
    for (int i = 0; world.l && i < steps; i++)
        step();
    for (int i = 0; i < FILES; i++)
        if (world.v[i].f)
            note_counts(&world.v[i]);
    assert_null(lines_free(world.l));
    assert_true(!world.on_changes && !world.on_again);
}

static void observe(uint64_t seed) {
    observe_for(seed, STEPS);
}

static void observe_briefly(uint64_t seed) {
    observe_for(seed + 100, STEPS / 3);
}

static const struct play plays[] = {
    {"tests/harness/observe/record/lines.txt", observe, 20, false, {0, 0}},
    {"tests/harness/observe/record/lines_refused.txt", observe_briefly, 6, true, {EMFILE, EIO}}};

static void test_how_files_are_followed_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_what_is_done_as_each_call_fails_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_files_are_followed_is_on_record),
        cmocka_unit_test(test_what_is_done_as_each_call_fails_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
