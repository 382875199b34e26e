/* The guard's own life, in a world that is played: what the agent orders, which workers end and when, what the kernel
 * refuses and how late it is are drawn; each call that the guard makes then is on record. Whatever is drawn, nothing is
 * started behind the fence, each end is told once, "reaped" comes when nothing lives, and no descriptor stays open. */
#include "tests/agent/workers/guard_world.h"

#define getsockopt                 played_getsockopt
#define fcntl                      played_fcntl
#define mmap                       played_mmap
#define munmap                     played_munmap
#define process_close_from         played_close_from
#define process_close              played_process_close
#define process_report_pipe        played_report_pipe
#define process_signal_descendants played_signal_descendants
#define sigprocmask                played_mask
#define signal                     played_signal
#define signalfd                   played_signalfd
#define timerfd_create             played_timerfd
#define timerfd_settime            played_arm
#define timer_create               played_create
#define timer_settime              played_hard
#define timer_delete               played_delete
#define prctl                      played_prctl
#define poll                       played_poll
#define read                       played_read
#define close                      played_close
#define file_close                 played_file_close
#define file_remove_tree           played_remove
#define waitpid                    played_waitpid
#define kill                       played_kill
#define getpid()                   GUARD
#define vfork_spawn_begin          played_spawn
#define order_send                 played_send
#define order_receive              played_receive
#define launch_read                played_launch_read
#define confinement_divide         played_divide
#define clock_boottime_ns          played_boottime
#define clock_realtime_ns          played_realtime
#define _exit                      played_exit
#include "agent/workers/group.c"
#include "agent/workers/guard_process.c"
#undef fcntl
#undef signal
#undef read
#undef close
#undef kill
#undef _exit

/* ---- what comes next ---- */

static void order(struct order o, bool brings) {
    assert_true(world.last < ORDERS_MAX);
    world.orders[world.last] = o;
    world.brings[world.last++] = brings;
}

/* An agent starts a group when it was told that the last is gone. */
static void order_start(void) {
    if (world.groups > world.reaped)
        return;
    world.groups++;
    world.required = draw(2);
    world.workers = 1 + draw(4);
    if (draw(2))
        order((struct order){.kind = ORDER_LIFELINE}, true);
    if (draw(4))
        order((struct order){.kind = ORDER_DEADLINE,
                             .fence_ns = world.boot_ns + draw(2000000000),
                             .hard_ns = world.boot_ns + 2000000000 + draw(2000000000)},
              false);
    order((struct order){.kind = ORDER_START}, true);
}

static void order_something(void) {
    int64_t later_ns = world.boot_ns + (int64_t)draw(2000000000) - 300000000;
    switch (draw(6)) {
    case 0:
    case 1:
        order_start();
        return;
    case 2:
        order((struct order){.kind = ORDER_DEADLINE,
                             .fence_ns = later_ns,
                             .hard_ns = later_ns + draw(2000000000)},
              false);
        return;
    case 3:
        order((struct order){.kind = ORDER_STOP,
                             .signo = draw(2) ? SIGTERM : SIGINT,
                             .grace_ms = draw(1500)},
              false);
        return;
    case 4:
        order((struct order){.kind = draw(6) ? ORDER_SIGNAL : ORDER_KILL, .signo = SIGUSR1}, false);
        return;
    default:
        order((struct order){.kind = ORDER_LIFELINE}, true);
    }
}

/* A worker is executed, cannot be, leaves somebody behind, or ends. */
static void work(void) {
    struct played_process *p = find_living(draw(4) != 0);
    if (!p)
        return;
    switch (draw(4)) {
    case 0:
        world.holders -= world.holders > 0;
        return;
    case 1:
        if (p->tag >= 0 && world.failures_n < 64 && world.holders > 0)
            world.failures[world.failures_n++] =
                (struct process_failure){(uint32_t)p->tag, draw(2) ? -ENOENT : -EACCES};
        return;
    case 2:
        add_process(draw(2) ? p->group : 0, -1);
        return;
    default:
        end_process(p, draw(2) ? 0 : draw(2) ? SIGSEGV : draw(256) << 8);
    }
}

static void step(void) {
    switch (draw(6)) {
    case 0:
    case 1:
        order_something();
        return;
    case 2:
    case 3:
        work();
        return;
    case 4:
        world.boot_ns += draw(3) ? draw(1000000) : draw(1500000000);
        return;
    default:
        world.deaf = draw(4);
        world.deaf_code = draw(3) == 0 ? -EPIPE : draw(2) ? -EAGAIN : -ENOMEM;
    }
}

/* When the agent has gone all that is left ends, some of it late. */
static int played_poll(struct pollfd *fds, nfds_t n, int timeout) {
    assert_int_equal(world.due_ns, world.hard_ns);
    for (nfds_t i = 0; i < n; i++)
        buf_printf(&played.said, "%s%d/%d", i ? " " : "poll ", fds[i].fd, (int)fds[i].events);
    note(" for %d", timeout);
    if (world.steps-- > 0) {
        for (int i = 1 + draw(3); i > 0; i--)
            step();
    } else if (!world.gone) {
        world.gone = true;
        world.deaf = 0;
    } else {
        assert_true(world.steps > -1000); /* it never ends */
        for (int i = 0; i < world.n; i++)
            if (draw(2))
                end_process(&world.v[i], SIGKILL);
        world.boot_ns += 100000000;
    }
    errno = EINTR;
    return draw(20) ? 1 : -1;
}

/* ---- plays ---- */

static char command_line[] = "python3\0-m\0rankrun\0--nnodes\0two";

static void set_up_world(uint64_t seed, int steps) {
    static char *const environment[] = {"PATH=/a:/b", "RANK=77", "RANKS=3", "KEPT=", "X=y", NULL};
    static char *line[] = {command_line, NULL, NULL};
    environ = (char **)(uintptr_t)environment;
    memset(&world, 0, sizeof(world));
    world.boot_ns = 5000000000;
    world.steps = steps;
    world.type = SOCK_SEQPACKET;
    world.timer_fd = world.signals_fd = world.failures_fd = -1;
    played.open[AGENT_FD] = played.open[DUE_FD] = true;
    world.standard = seed % 2; /* or the guard's own lie there */
    for (int fd = 0; fd < 3; fd++)
        played.open[fd] = world.standard;
    played.open[7] = true; /* is the agent's */
    memcpy(command_line, "python3\0-m\0rankrun\0--nnodes\0two", sizeof(command_line));
    line[1] = command_line + sizeof(command_line) - 4;
    assert_false(guard_is_me(line));
}

static void tear_down_world(void) {
    for (int fd = 0; fd < 3 && world.standard; fd++)
        played.open[fd] = false;
    played.open[AGENT_FD] = false;
    buf_put(&played.said, command_line, sizeof(command_line));
    note(": the name");
}

/* A guard from its beginning to its end. */
static void live(uint64_t seed) {
    set_up_world(seed, STEPS);
    int code = guard_main();
    note("returns %d", code);
    assert_int_equal(code, 0);
    assert_int_equal(world.due_ns, 0);
    for (int i = 0; i < world.n; i++)
        assert_true(world.v[i].reaped);
    assert_true(world.ends <= world.starts && world.reaped <= world.groups);
    tear_down_world();
}

/* One in which a call fails; it may exit in the middle, and the system gives back all it had. */
static void live_with_failures(uint64_t seed) {
    static struct life life;
    set_up_world(seed, STEPS / 2);
    world.may_exit = true;
    memset(&life, 0, sizeof(life));
    if (setjmp(world.out) == 0) {
        int code = begin(&life);
        note("begins: %d", code);
        while (!code && (life.agent >= 0 || life.group.phase != GROUP_NONE))
            turn(&life);
        if (!code)
            give_back(&life);
        if (!code) {
            tear_down_world();
            arena_fini(&world.arena);
            return;
        }
    }
    free(life.queue);
    free(life.group.pids);
    arena_fini(&life.group.memory);
    arena_fini(&world.arena);
    free(world.stacks);
    memset(played.open, 0, sizeof(played.open));
}

static const struct play plays[] = {
    {"tests/agent/workers/record/guard_process.txt", live, 400, false, {0, 0}},
    {"tests/agent/workers/record/guard_refused.txt",
     live_with_failures,
     24,
     true,
     {ENOMEM, EMFILE}}};

static void test_what_a_guard_does_in_drawn_worlds_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_what_it_does_as_each_call_fails_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

/* Whoever starts it by hand, from a shell or with another socket, is told by its code. */
static void test_what_no_agent_has_started_is_no_guard(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        memset(&played.open, 0, sizeof(played.open));
        played.fails_at = !i;
        played.calls = 0;
        set_up_world(2, 0);
        world.type = SOCK_STREAM;
        assert_int_equal(guard_main(), 64);
        assert_int_equal(played.calls, 1);
    }
}

static void test_a_guard_is_known_by_its_name(void **state) {
    (void)state;
    char *none[] = {NULL}, *guard[] = {(char[]){GUARD_NAME}, NULL},
         *other[] = {(char[]){GUARD_NAME "s"}, NULL};
    assert_false(guard_is_me(none));
    assert_true(guard_is_me(guard));
    assert_false(guard_is_me(other));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_guard_does_in_drawn_worlds_is_on_record),
        cmocka_unit_test(test_what_it_does_as_each_call_fails_is_on_record),
        cmocka_unit_test(test_what_no_agent_has_started_is_no_guard),
        cmocka_unit_test(test_a_guard_is_known_by_its_name),
    };
    return played_main(argc, argv, plays, tests);
}
