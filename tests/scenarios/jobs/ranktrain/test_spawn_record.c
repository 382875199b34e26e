/* Who starts ranks, in a system that is played: processes that end as is drawn, alone or several at once, signals from outside,
 * time that passes, and a process that cannot be made. Whom it tells what, what it says and what comes of it is on record. */
#include "tests/played.h"
#include "tests/scenarios/jobs/ranktrain/heard.h"

#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "scenarios/jobs/ranktrain/spawn.h"

#include "base/mem.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { OWN = 100, FIRST = 200, PIDS = 64, WAITS_MAX = 500 };

static struct {
    int n, next, waits;
    int64_t now_ns;
    struct {
        bool lives, reaped, obeys;
        int status;
    } of[PIDS]; /* by the pid, from FIRST on */
    bool blocked, parent_gone;
    const char *environment;
} world;

/* ---- the system ---- */

static pid_t played_fork(void) {
    if (fails("fork"))
        return -1;
    assert_true(world.n < PIDS);
    world.of[world.n].lives = true;
    world.of[world.n].obeys = draw(4);
    return FIRST + world.n++;
}

static void end(int i, int status) {
    if (!world.of[i].lives)
        return;
    note("  %d ends with %d", FIRST + i, status);
    world.of[i].lives = false;
    world.of[i].status = status;
}

static int played_kill(pid_t pid, int signo) {
    note("kill %d with %d", pid, signo);
    int i = pid - FIRST;
    assert_true(i >= 0 && i < world.n && !world.of[i].reaped);
    if (signo == SIGKILL)
        end(i, SIGKILL);
    else if (world.of[i].obeys && draw(2))
        end(i, draw(4) ? signo : 5 << 8);
    return 0;
}

static pid_t played_waitpid(pid_t pid, int *ret_status, int options) {
    int i = pid - FIRST;
    assert_true(i >= 0 && i < world.n && options == WNOHANG && !world.of[i].reaped);
    if (world.of[i].lives)
        return 0;
    world.of[i].reaped = true;
    *ret_status = world.of[i].status;
    return pid;
}

/* Some end, or somebody asks, or nothing happens until then. */
static int played_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *t) {
    static const int statuses[] = {0, 0, 0, 1 << 8, 255 << 8, SIGKILL, SIGTERM, SIGABRT};
    assert_true(sigismember(set, SIGTERM) && sigismember(set, SIGINT) && sigismember(set, SIGCHLD));
    assert_true(!sigismember(set, SIGHUP) && !info && world.blocked);
    assert_true(++world.waits < WAITS_MAX);
    note("wait %lld.%09ld", (long long)t->tv_sec, t->tv_nsec);
    int what = draw(world.waits < 40 ? 12 : 2);
    if (what == 11)
        return draw(2) ? SIGTERM : SIGINT;
    errno = EINTR;
    if (what == 10)
        return -1;
    if (what >= 8) {
        world.now_ns += (int64_t)t->tv_sec * 1000000000;
        errno = EAGAIN;
        return -1;
    }
    for (int i = 0; i < world.n; i++)
        if (draw(3) == 0)
            end(i, statuses[draw(8)]);
    return SIGCHLD;
}

static int played_sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    note("signals: %s %d %d %d", how == SIG_BLOCK ? "block" : "set", sigismember(set, SIGTERM),
         sigismember(set, SIGINT), sigismember(set, SIGCHLD));
    if (old)
        sigemptyset(old);
    world.blocked = how == SIG_BLOCK;
    return 0;
}

static pid_t played_getppid(void) {
    return world.parent_gone ? 1 : OWN;
}

static int played_prctl(int what, int value) {
    note("prctl %d %d", what, value);
    return 0;
}

static int played_setenv(const char *name, const char *value, int over) {
    note("set %s=%s%s", name, value, over ? "" : ", unless it is");
    return 0;
}

static jmp_buf gone;

static int played_execv(const char *path, char *const *argv) {
    note("exec %s", path);
    for (; *argv; argv++)
        note("  [%s]", *argv);
    if (fails("  so far"))
        return -1;
    longjmp(gone, 1000);
}

static _Noreturn void played_exit(int code) {
    longjmp(gone, 1 + code);
}

static int left_ms(int64_t deadline_ns) {
    int64_t left = deadline_ns - world.now_ns;
    return left > 0 ? (int)(left / 1000000) : 0;
}

#define fork               played_fork
#define kill               played_kill
#define waitpid            played_waitpid
#define sigtimedwait       played_sigtimedwait
#define sigprocmask        played_sigprocmask
#define getppid            played_getppid
#define getpid()           OWN
#define prctl(what, value) played_prctl(what, value)
#define setenv             played_setenv
#define execv              played_execv
#define _exit              played_exit
#define deadline_in_ns(ns) (world.now_ns + (ns))
#define deadline_left_ms   left_ms
#include "scenarios/jobs/ranktrain/spawn.c"
#undef kill
#undef _exit

/* ---- plays ---- */

static void spawn(uint64_t seed) {
    static char *argv[] = {(char *)(uintptr_t) "job", NULL};
    struct err err = {0};
    (void)seed;
    memset(&world, 0, sizeof(world));
    world.now_ns = 5;
    const struct ranktrain_options o = {.spawn = 1 + draw(4),
                                        .recover = draw(2) ? "in-process" : "restart",
                                        .grace_ns = INT64_C(1000000000) * draw(30),
                                        .backup_workers = draw(3)};
    note("%lld ranks, %s, grace %lld, %lld to spare", (long long)o.spawn, o.recover,
         (long long)o.grace_ns, (long long)o.backup_workers);
    heard_begin();
    int r = spawn_ranks(&o, argv, &err);
    heard_end();
    note("spawn: %d, %d \"%s\"", r, err.code, err.msg);
    for (int i = 0; i < world.n; i++)
        assert_true(!world.of[i].lives && world.of[i].reaped);
}

/* In the child. */
static void become(uint64_t seed) {
    static char *argv[] = {(char *)(uintptr_t) "job", (char *)(uintptr_t) "--steps=3", NULL};
    memset(&world, 0, sizeof(world));
    world.parent_gone = seed == 1;
    const struct spawn s = {.n = 5};
    heard_begin();
    int code = setjmp(gone);
    if (code == 0)
        become_rank(&s, (int)seed, OWN, argv);
    heard_end();
    note("it %s %d", code == 1000 ? "is another program," : "ends with", code - 1);
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/spawn.txt", spawn, 400, true, {EAGAIN, ENOMEM}},
    {"tests/scenarios/jobs/ranktrain/record/become.txt", become, 3, true, {EACCES, ENOENT}},
};

static void test_how_ranks_are_started_and_ended_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_ranks_are_started_and_ended_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
