/* Programs that are asked something, and the one that lists checkpoints, in a system that is played: what they print in
 * which pieces, how and when they end, and what the system refuses are drawn; each call and each answer is on record. */
#include "tests/played.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/rights.h"
#include "harness/observe/listing.h"
#include "harness/observe/question.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PID = 70, GIVEN = 900 };

static struct {
    int64_t now_ns, late_ns;
    bool lives;
    int status, pidfd, out;
    const char *prints;
    size_t printed, of;
    bool open; /* somebody still holds its output */
    loop_fd_fn *on_out, *on_end;
    loop_timer_fn *on_late;
    void *arg;
    bool answered;
} world;

/* ---- the system ---- */

static int64_t played_now(void) {
    return world.now_ns;
}

static int played_pipe2(int ret[2], int flags) {
    if (fails("pipe %d", flags))
        return -1;
    ret[0] = world.out = played_open();
    ret[1] = played_open();
    return 0;
}

static int played_fcntl(int fd, int command, int arg) {
    note("fcntl %d %d %d", fd, command, arg);
    return 0;
}

static int played_open_file(const char *path, int flags) {
    return fails("open %s %d", path, flags) ? -1 : played_open();
}

static int played_stat(const char *path, struct stat *st) {
    return fails("look at %s", path) ? -1 : 0;
}

static int played_spawn(const struct process_spawn *s, struct process *ret, struct err *err) {
    for (const char *const *w = s->argv; *w; w++)
        note("  [%s]", *w);
    note("in %s with %d %d %d: session %d, group %d, death %d, keeps %zu", s->dir ? s->dir : "-",
         s->fds[0], s->fds[1], s->fds[2], s->session, s->group, s->death_signal, s->keep_n);
    for (int i = 0; i < 3; i++)
        assert_true(s->fds[i] == -1 || s->fds[i] == GIVEN || played.open[s->fds[i]]);
    if (fails("spawn"))
        return err_set(err, -errno, "start it");
    world.lives = true;
    *ret = (struct process){PID, world.pidfd = played_open()};
    return 0;
}

static ssize_t played_read(int fd, void *data, size_t size) {
    assert_int_equal(fd, world.out);
    size_t n = world.of - world.printed;
    n = n < size ? n : size;
    n = n && draw(2) ? 1 + (size_t)draw((int)n) : n;
    memcpy(data, world.prints + world.printed, n);
    world.printed += n;
    bool end = !n && !world.open;
    note("read %zu: %zu%s", size, n, end ? ", the end" : "");
    errno = EAGAIN;
    return n || end ? (ssize_t)n : -1;
}

static int played_kill(pid_t pid, int signo) {
    note("kill %d with %d", (int)pid, signo);
    if (world.lives && signo == SIGKILL)
        world.status = SIGKILL;
    world.lives = false;
    return 0;
}

static int played_reap(const struct process *p, int64_t timeout_ns, int *ret_status) {
    if (fails("reap %d within %lld", (int)p->pid, (long long)timeout_ns))
        return -errno;
    if (ret_status)
        *ret_status = world.status;
    return 0;
}

static void played_process_close(struct process *p) {
    played_file_close(&p->pidfd);
    *p = PROCESS_NONE;
}

static struct loop_source *played_loop_fd(struct loop *l, int fd, int what, loop_fd_fn *fn,
                                          void *arg) {
    note("listen to %d for %d", fd, what);
    *(fd == world.out ? &world.on_out : &world.on_end) = fn;
    world.arg = arg;
    return (struct loop_source *)(fd == world.out ? &world.on_out : &world.on_end);
}

static struct loop_source *played_loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    world.on_late = fn;
    return (struct loop_source *)&world.on_late;
}

static void played_timer_at(struct loop_source *s, int64_t at_ns) {
    note("late at %lld", (long long)at_ns);
    assert_ptr_equal(s, &world.on_late);
    world.late_ns = at_ns;
}

static struct loop_source *played_source_free(struct loop_source *s) {
    note("no more of %s", !s                           ? "nothing"
                          : s == (void *)&world.on_out ? "its output"
                          : s == (void *)&world.on_end ? "its end"
                                                       : "the clock");
    if (s == (void *)&world.on_out)
        world.on_out = NULL;
    if (s == (void *)&world.on_end)
        world.on_end = NULL;
    if (s == (void *)&world.on_late)
        world.on_late = NULL;
    return NULL;
}

static int played_setns(int fd, int what) {
    return fails("enter %d: %x", fd, (unsigned)what) ? -1 : 0;
}

static int played_chdir(const char *path) {
    errno = ENOENT;
    return fails("go to %s", path) || strcmp(path, "/nowhere") == 0 ? -1 : 0;
}

static int played_rights_drop(uint64_t kept) {
    return fails("keep the rights %llx", (unsigned long long)kept) ? -errno : 0;
}

#define pipe2                  played_pipe2
#define fcntl                  played_fcntl
#define open(path, flags)      played_open_file(path, flags)
#define stat(path, st)         played_stat(path, st)
#define process_spawn(s, p, e) played_spawn(s, p, e)
#define process_reap           played_reap
#define process_close          played_process_close
#define read                   played_read
#define kill                   played_kill
#define setns                  played_setns
#define chdir                  played_chdir
#define rights_drop            played_rights_drop
#define file_close             played_file_close
#define loop_fd                played_loop_fd
#define loop_timer             played_loop_timer
#define loop_timer_at          played_timer_at
#define loop_source_free       played_source_free
#define clock_monotonic_ns     played_now
#include "harness/observe/question.c"
#include "harness/observe/listing.c"
#undef open
#undef stat
#undef read
#undef kill

/* ---- plays ---- */

static void on_steps(void *arg, int round, const int64_t *steps, size_t n, const char *error) {
    assert_ptr_equal(arg, &world);
    assert_false(world.answered);
    world.answered = true;
    note("> round %d: %zu, %s", round, n, error ? error : "no error");
    for (size_t i = 0; i < n && i < 5; i++)
        note(">   %lld", (long long)steps[i]);
    if (n)
        note(">   to %lld", (long long)steps[n - 1]);
}

static const char *const answers[] = {
    "",
    "\n\n",
    "10\n20\n",
    "  7 the seventh\n\n00000025\r\n8",
    "0\n00\n000 x\n\t9\t\n9223372036854775807",
    "9223372036854775808\n",
    "1\nepoch=3.ckpt\n",
    "-5",
    "12x and a word that is long, so long that sixty bytes are not as many as it has\n",
    "a-word-that-is-long-without-a-blank-so-long-that-sixty-bytes-are-not-as-many\n",
};
enum { ANSWERS = sizeof(answers) / sizeof(*answers) };

/* Of a program that prints and ends, or is late, or cannot even be killed; in some order. */
static void step(void) {
    switch (draw(5)) {
    case 0:
        if (world.on_out)
            world.on_out(world.arg, world.out, LOOP_READ);
        return;
    case 1:
        if (!world.lives && world.on_end && draw(2))
            world.on_end(world.arg, world.pidfd, LOOP_READ);
        return;
    case 2:
        world.now_ns += draw(2) ? 1000000000 : 40000000000;
        if (world.now_ns >= world.late_ns && world.on_late)
            world.on_late(world.arg, world.now_ns);
        return;
    case 3:
        if (draw(2)) {
            world.lives = false;
            world.open &= draw(2);
        }
        return;
    default:
        world.now_ns += draw(1000);
    }
}

static void set_world(uint64_t seed) {
    static const int statuses[] = {0, 0, 0, 2 << 8, SIGSEGV};
    memset(&world, 0, sizeof(world));
    world.now_ns = 1000000000;
    world.prints = answers[seed % ANSWERS];
    world.of = strlen(world.prints);
    world.status = statuses[draw(5)];
    world.open = true;
    world.out = -1;
}

static void list_them(uint64_t seed) {
    set_world(seed);
    struct listing *g = listing_start((struct loop *)&world, "/checkpoints", "list them",
                                      draw(2) ? GIVEN : -1, (int)seed, on_steps, &world);
    note("started %d", g != NULL);
    assert_int_equal(g == NULL, world.answered);
    for (int i = draw(6) ? 200 : draw(10); i > 0 && !world.answered; i--)
        step();
    if (!world.answered || !g)
        listing_abandon(world.answered ? NULL : g);
    assert_true(!world.on_out && !world.on_end && !world.on_late);
}

/* Where a program runs. */
static void enter(uint64_t seed) {
    struct question_place places[] = {
        {.pidfd = -1, .cwd = "/nowhere"},
        {.pidfd = 9, .namespaces = CLONE_NEWIPC, .cwd = "/nowhere"},
        {.pidfd = 0, .namespaces = QUESTION_IN_NODE, .cwd = "/job"},
        {.pidfd = 9, .namespaces = CLONE_NEWNET, .cwd = "/job", .privileged = true}};
    note("entered: %d", question_enter(&places[seed - 1]));
}

static void on_said(void *arg, const struct question_answer *a) {
    assert_true(arg == &world && a->text[a->len] == '\0');
    world.answered = true;
    note("> \"%s\", %zu; too long %d, late %d, %s", a->text, a->len, a->too_long, a->late,
         a->ended ? a->ended : "by itself");
}

/* By whoever gives it streams, or none. */
static void ask_one(uint64_t seed) {
    static const char *const words[] = {"say", NULL};
    static const int given[] = {GIVEN, 5, GIVEN};
    struct err err = {0};
    set_world(seed);
    struct question_spec spec = {.program = {.argv = words, .fds = draw(2) ? given : NULL},
                                 .bytes_max = (size_t)draw(30),
                                 .within_ns = 1 + draw(2000000000)};
    struct question *q = question_ask((struct loop *)&world, &spec, on_said, &world, &err);
    note("asked %d: %d %s", q != NULL, err.code, err.msg);
    for (int i = draw(6) ? 200 : draw(10); q && i > 0 && !world.answered; i--)
        step();
    assert_null(question_abandon(world.answered ? NULL : q));
    assert_true(!world.on_out && !world.on_end && !world.on_late);
}

static const struct play plays[] = {
    {"tests/harness/observe/record/listing.txt", list_them, 120, true, {EMFILE, ENOMEM}},
    {"tests/harness/observe/record/question_place.txt", enter, 4, true, {EPERM, ENOENT}},
    {"tests/harness/observe/record/question.txt", ask_one, 80, true, {EMFILE, ENOMEM}}};

static void test_what_a_listing_answers_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

/* As many as are kept, bytes and steps, and one more. */
static void test_an_answer_is_cut_at_its_bound(void **state) {
    (void)state;
    for (int more = -1; more <= 1; more++) {
        BUF_FINI struct buf text = {0};
        buf_clear(&played.said);
        memset(&played.open, 0, sizeof(played.open));
        set_world(1);
        world.status = 0;
        while (text.len < (size_t)(ANSWER_MAX + more))
            buf_putc(&text, '\n');
        world.prints = text.data;
        world.of = text.len;
        world.open = false;
        world.lives = false;
        assert_non_null(listing_start((struct loop *)&world, "/", "x", -1, 1, on_steps, &world));
        world.lives = false;
        world.on_end(world.arg, world.pidfd, LOOP_READ);
        const char *said = more > 0 ? "> round 1: 0, it printed more than a megabyte\n"
                                    : "> round 1: 0, no error\n";
        assert_non_null(strstr(buf_str(&played.said), said));
    }
    for (int more = 0; more <= 1; more++) {
        BUF_FINI struct buf text = {0};
        size_t n = 0;
        char why[200] = "";
        int64_t *steps = mem_array(int64_t, STEPS_MAX);
        for (int i = 0; i < STEPS_MAX + more; i++)
            buf_printf(&text, "%d\n", i);
        assert_int_equal(read_steps(text.data, steps, &n, why, sizeof(why)), !more);
        assert_int_equal(n, STEPS_MAX);
        free(steps);
    }
}

static void test_how_a_place_is_entered_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

static void test_what_a_question_is_answered_is_on_record(void **state) {
    (void)state;
    played_check(&plays[2]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_listing_answers_is_on_record),
        cmocka_unit_test(test_an_answer_is_cut_at_its_bound),
        cmocka_unit_test(test_how_a_place_is_entered_is_on_record),
        cmocka_unit_test(test_what_a_question_is_answered_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
