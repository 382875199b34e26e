/* A worker between its start and its exec, with a kernel that is played: each system call of the child in its order and with all
 * it was given, as each of them fails, is on record. Nothing is called behind one that must not fail, and what is reported is
 * what the exit code says. */
#include "tests/played.h"

#include "agent/workers/system_call.h"
#include "agent/workers/vfork_spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PARENT = 50, OWN = 60 };

static struct {
    const struct vfork_spawn *t;
    int (*child)(void *);
    void *arg;
    char stack[VFORK_SPAWN_STACK];
    struct process_failure told;
    int execs, writes;
    bool dies; /* its parent has gone */
} world;

static void put_texts(const char *const *v) {
    for (; *v; v++)
        buf_printf(&played.said, " [%s]", *v);
    buf_putc(&played.said, '\n');
}

static long played_exec(const char *file, const char *const *argv, const char *const *envp) {
    static const int codes[] = {ENOENT,    EACCES,  ENOTDIR, ENODEV, ESTALE,
                                ETIMEDOUT, ENOEXEC, ELOOP,   ENOMEM, E2BIG};
    note("execute %s", file);
    put_texts(argv);
    put_texts(envp);
    assert_true(world.execs++ < 40);
    assert_int_equal(world.writes, 0);
    return -codes[draw(10)];
}

static long played_write(int fd, const void *data, size_t size) {
    assert_int_equal(size, sizeof(world.told));
    memcpy(&world.told, data, size);
    world.writes++;
    note("tell %d: %u %d", fd, world.told.tag, world.told.code);
    return (long)size;
}

static bool is_zero(const void *data, size_t size) {
    const char *p = data;
    for (size_t i = 0; i < size; i++)
        if (p[i])
            return false;
    return true;
}

static long played_open_file(int at, const char *file, int flags, int mode) {
    if (fails("open %d %s %o %o", at, file, (unsigned)flags, (unsigned)mode))
        return -errno;
    return draw(3) ? 7 + draw(3) : draw(4);
}

static long played_call(long n, long a, long b, long c, long d) {
    switch (n) {
    case SYS_prctl:
        return fails("prctl %ld %ld %ld %ld", a, b, c, d) ? -errno : 0;
    case SYS_getppid:
        world.dies = draw(6) == 0;
        note("parent %ld %ld %ld %ld", a, b, c, d);
        return world.dies ? 1 : PARENT;
    case SYS_getpid:
        note("own %ld %ld %ld %ld", a, b, c, d);
        return OWN;
    case SYS_kill:
        note("kill %ld %ld %ld %ld", a, b, c, d);
        assert_true(world.dies && a == OWN && b == SIGKILL);
        return 0;
    case SYS_fcntl:
        return fails("fcntl %ld %ld %ld %ld", a, b, c, d) ? -errno : 0;
    case SYS_close_range:
        note("close %ld to %lu %ld %ld", a, (unsigned long)b, c, d);
        return 0;
    case SYS_setsid:
        return fails("setsid %ld %ld %ld %ld", a, b, c, d) ? -errno : OWN;
    case SYS_rt_sigaction:
        note("action of %ld %ld %ld", a, c, d);
        assert_true(is_zero((const void *)b, 4 * sizeof(long)));
        return 0;
    case SYS_rt_sigprocmask:
        note("mask %ld %ld %ld", a, c, d);
        assert_true(is_zero((const void *)b, (size_t)d));
        return 0;
    case SYS_openat:
        return played_open_file((int)a, (const char *)b, (int)c, (int)d);
    case SYS_dup3:
        return fails("dup %ld to %ld %ld %ld", a, b, c, d) ? -errno : b;
    case SYS_execve:
        assert_int_equal(d, 0);
        return played_exec((const char *)a, (const char *const *)b, (const char *const *)c);
    case SYS_write:
        assert_int_equal(d, 0);
        return played_write((int)a, (const void *)b, (size_t)c);
    default:
        fail_msg("system call %ld", n);
        return -ENOSYS;
    }
}

/* The child runs when the caller has returned. */
static int played_clone(int (*fn)(void *), void *stack, int flags, void *arg, int *pidfd, void *tls,
                        void *tid) {
    assert_ptr_equal(stack, world.stack + VFORK_SPAWN_STACK);
    assert_ptr_equal(arg, world.t);
    assert_true(!tls && !tid);
    if (fails("clone %x", (unsigned)flags & ~(unsigned)CLONE_VM))
        return -1;
    world.child = fn;
    world.arg = arg;
    *pidfd = 11;
    return OWN;
}

#define system_call played_call
#define clone       played_clone
#include "agent/workers/vfork_spawn.c"

static void start(const char *const *files, const char **argv) {
    static const char *const envp[] = {"A=b", "C=", NULL};
    static const char *const outputs[] = {"", "/logs/out", "/logs/err"};
    struct process p = {1, 2};
    struct vfork_spawn t = {.files = files,
                            .argv = argv,
                            .envp = envp,
                            .outputs = {outputs[draw(3)], outputs[draw(3)]},
                            .keep = draw(3) ? draw(9) + (draw(2) ? 3 : 300) : draw(2),
                            .report = draw(2) ? 2 + draw(9) : 200 + draw(2),
                            .tag = (uint32_t)draw(9),
                            .parent = PARENT};
    world.t = &t;
    world.child = NULL;
    world.execs = world.writes = 0;
    world.told = (struct process_failure){77, 77};
    int code = vfork_spawn_begin(&t, world.stack, &p);
    note("begins: %d, %d %d", code, (int)p.pid, p.pidfd);
    assert_true(!world.child == (code != 0));
    if (code)
        return;
    int status = world.child(world.arg);
    note("ends with %d", status);
    assert_int_equal(world.writes, 1);
    assert_int_equal(world.told.tag, t.tag);
    assert_int_equal(status, world.told.code == -ENOENT ? 127 : 126);
    assert_true(world.told.code < 0);
}

static void live(uint64_t seed) {
    static const char *const files[] = {"/a/x", "x", "b/x", "/c/x", "d/x", NULL};
    memset(&world, 0, sizeof(world));
    for (int i = 0; i < 12; i++) {
        const char *argv[] = {"the word before", "x", "1", NULL};
        errno = 0;
        start(files + draw(5), argv + 1);
        note("words [%s] [%s] [%s]", argv[0], argv[1], argv[2]);
    }
}

static const struct play plays[] = {
    {"tests/agent/workers/record/vfork_spawn.txt", live, 20, true, {ENOMEM, EBADF}}};

static void test_what_a_worker_does_before_its_exec_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

/* Whose signals and descriptors are the child's own is said by flags of clone(2): it may share its memory, and nothing else. */
static void test_a_child_shares_the_memory_alone(void **state) {
    (void)state;
    struct process p;
    struct vfork_spawn t = {.tag = 1};
    memset(&played.open, 0, sizeof(played.open));
    buf_clear(&played.said);
    played.fails_at = played.calls = 0;
    world.t = &t;
    char wanted[32];
    snprintf(wanted, sizeof(wanted), "clone %x\n", (unsigned)(CLONE_PIDFD | SIGCHLD));
    assert_int_equal(vfork_spawn_begin(&t, world.stack, &p), 0);
    assert_string_equal(buf_str(&played.said), wanted);
    buf_fini(&played.said);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_worker_does_before_its_exec_is_on_record),
        cmocka_unit_test(test_a_child_shares_the_memory_alone),
    };
    return played_main(argc, argv, plays, tests);
}
