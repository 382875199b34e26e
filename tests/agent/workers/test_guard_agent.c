/* The guard as the agent sees it, with a guard that is played: what it reports, when it dies, what the kernel refuses
 * and what the files of the workers say are drawn; each call that is made then, each order that is sent, each word that
 * the agent is told is on record. */
#include "tests/played.h"

#include "agent/workers/console.h"
#include "agent/workers/error_file.h"
#include "agent/workers/guard.h"
#include "agent/workers/orders.h"
#include "agent/workers/output.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
#include "base/sys/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AGENT = 40, STEPS = 60, WORKERS = 4 };

static struct {
    int64_t now_ns, due_ns;
    pid_t guard; /* the newest; 0: it was never there */
    bool lives, reaped;
    int status; /* by which it died */
    int others; /* children of the agent that it left */
    int sock;   /* the agent's end */
    int deaf, deaf_code;
    struct guard_report reports[256];
    bool brings[256];
    int first, last;
    int group; /* workers of it; 0: there is none */
    int started, exited;
    bool running;
    loop_fd_fn *on_readable;
    loop_signal_fn *on_child;
    void *on_readable_arg, *on_child_arg;
    struct guard *g;
    bool tees;
    jmp_buf child;
    bool died; /* the agent was told */
} world;

/* ---- descriptors ---- */

static int played_socketpair(int domain, int type, int protocol, int ret[2]) {
    if (fails("socket pair %d %d %d", domain, type, protocol))
        return -1;
    ret[0] = played_open();
    ret[1] = played_open();
    return 0;
}

static int played_lift(int fd, int least) {
    assert_true(played.open[fd]);
    bool not = fails("lift %d to %d", fd, least);
    int lifted = not ? -errno : fd >= least ? fd : played_open_from(least);
    if (lifted != fd)
        played_shut(fd);
    return lifted;
}

static int played_dup2(int from, int to) {
    assert_true(played.open[from]);
    note("dup2 %d to %d", from, to);
    errno = EBUSY;
    return world.deaf == 99 ? -1 : to;
}

static int played_memfd(const char *name, unsigned flags) {
    return fails("memfd %s %u", name, flags) ? -1 : played_open();
}

static int played_ftruncate(int fd, off_t size) {
    return fails("cut %d to %lld", fd, (long long)size) ? -1 : 0;
}

static void *played_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from) {
    assert_true(!at && played.open[fd]);
    bool not = fails("map %zu %d %d %d %lld", size, prot, flags, fd, (long long)from);
    return not ? MAP_FAILED : (void *)&world.due_ns;
}

static int played_munmap(void *at, size_t size) {
    assert_ptr_equal(at, &world.due_ns);
    note("unmap %zu", size);
    return 0;
}

static int played_prctl(int option, ...) {
    return fails("prctl %d", option) ? -1 : 0;
}

/* ---- processes ---- */

static int played_guard_main(void) {
    note("is the guard");
    return 5;
}

static _Noreturn void played_exit(int code) {
    note("the child exits %d", code);
    longjmp(world.child, 1);
}

static void note_spawn(const char *how, const struct process_spawn *s) {
    note("%s %s by %s: session %d, group %d, death %d, keeps %zu, %d %d", how, s->argv[0], s->file,
         s->session, s->group, s->death_signal, s->keep_n, s->keep[0], s->keep[1]);
    assert_true(!s->argv[1] && !s->envp && !s->dir && !s->fds);
    for (size_t i = 0; i < s->keep_n; i++)
        assert_true(played.open[s->keep[i]]);
    if (setjmp(world.child) == 0)
        note("in the child: %d", s->in_child(s->in_child_arg));
}

static int spawn(const char *how, const struct process_spawn *s, struct process *ret,
                 struct err *err) {
    note_spawn(how, s);
    assert_false(world.lives);
    assert_int_equal(world.due_ns, 0); /* what the last one said there is nothing of this one's */
    if (fails("spawn"))
        return err_set(err, -errno, "fork");
    *ret = (struct process){world.guard = 100 + (world.guard ? world.guard % 100 + 1 : 0),
                            played_open()};
    world.lives = true;
    world.reaped = false;
    return 0;
}

static int played_spawn(const struct process_spawn *s, struct process *ret, struct err *err) {
    return spawn("execute", s, ret, err);
}

static int played_spawn_reporting(const struct process_spawn *s, int report, uint32_t tag,
                                  struct process *ret, struct err *err) {
    note("report %d, tag %u", report, tag);
    return spawn("fork", s, ret, err);
}

static void kill_guard(int status) {
    if (world.lives)
        world.status = status;
    world.lives = false;
}

static int played_process_signal(const struct process *p, int signo) {
    note("signal %d (%d) with %d", (int)p->pid, p->pidfd, signo);
    if (p->pid == world.guard && signo == SIGKILL)
        kill_guard(SIGKILL);
    return draw(5) ? 0 : -EPERM;
}

static int played_reap(const struct process *p, int64_t timeout_ns, int *ret_status) {
    int code = draw(3) ? 0 : -ETIME;
    assert_null(ret_status);
    note("reap %d within %lld: %d", (int)p->pid, (long long)timeout_ns, code);
    world.reaped |= code == 0;
    return code;
}

static void played_process_close(struct process *p) {
    note("forget process %d", (int)p->pid);
    played_file_close(&p->pidfd);
    *p = PROCESS_NONE;
}

static int played_process_open(pid_t pid, struct process *ret, struct err *err) {
    assert_null(err);
    *ret = PROCESS_NONE;
    if (fails("open process %d", (int)pid))
        return -errno;
    *ret = (struct process){pid, played_open()};
    return 0;
}

static size_t played_list(pid_t root, pid_t **ret) {
    size_t n = (size_t)draw(3);
    note("list all below %d: %zu", (int)root, n);
    *ret = mem_array(pid_t, 3);
    for (size_t i = 0; i < n; i++)
        (*ret)[i] = 200 + (pid_t)i;
    return n;
}

static int played_signal_descendants(pid_t root, pid_t spared, int signo) {
    int killed = draw(3) ? world.others : 0;
    note("signal all below %d but %d with %d: %d", (int)root, (int)spared, signo, killed);
    return killed;
}

static pid_t played_waitpid(pid_t pid, int *status, int options) {
    pid_t ended = 0;
    int by = SIGTERM;
    if (!world.lives && !world.reaped && world.guard) {
        world.reaped = true;
        ended = world.guard;
        by = world.status;
    } else if (world.others > 0 && draw(2)) {
        ended = 300 + world.others--;
    }
    note("wait for %d, %d: %d of %d", (int)pid, options, (int)ended, world.others);
    if (ended && status)
        *status = by;
    return ended ? ended : world.others || world.lives ? 0 : -1;
}

/* ---- the loop ---- */

static struct loop_source *played_loop_fd(struct loop *l, int fd, int what, loop_fd_fn *fn,
                                          void *arg) {
    assert_true(played.open[fd] && !world.on_readable);
    note("watch %d for %d", fd, what);
    world.sock = fd;
    world.on_readable = fn;
    world.on_readable_arg = arg;
    return (struct loop_source *)&world.on_readable;
}

static struct loop_source *played_loop_signal(struct loop *l, int signo, loop_signal_fn *fn,
                                              void *arg) {
    note("watch signal %d", signo);
    world.on_child = fn;
    world.on_child_arg = arg;
    return (struct loop_source *)&world.on_child;
}

static struct loop_source *played_source_free(struct loop_source *s) {
    if (s == (void *)&world.on_readable)
        world.on_readable = NULL;
    else if (s)
        world.on_child = NULL;
    note("watch %s no more", !s ? "nothing" : s == (void *)&world.on_child ? "children" : "it");
    return NULL;
}

/* ---- what is said ---- */

static int played_send(int sock, const void *message, size_t size, int fd) {
    const struct order *o = message;
    assert_int_equal(size, sizeof(*o));
    assert_true(played.open[sock] && (fd < 0 || played.open[fd]));
    int code = world.deaf ? world.deaf_code : 0;
    world.deaf -= world.deaf > 0;
    note("order %d to %d: %d %lld %lld %lld, with %d: %d", (int)o->kind, sock, o->signo,
         (long long)o->grace_ms, (long long)o->fence_ns, (long long)o->hard_ns, fd, code);
    return code;
}

static int played_receive(int sock, void *message, size_t size, int *ret_fd) {
    assert_int_equal(size, sizeof(struct guard_report));
    *ret_fd = -1;
    int code = world.first < world.last ? 1 : world.lives ? -EAGAIN : draw(2) ? 0 : -EIO;
    note("hear %d: %d", sock, code);
    if (code != 1)
        return code;
    memcpy(message, &world.reports[world.first], size);
    *ret_fd = world.brings[world.first++] ? played_open() : -1;
    return code;
}

static void note_texts(const char *what, char *const *v) {
    buf_printf(&played.said, "  %s", what);
    for (; *v; v++)
        buf_printf(&played.said, " [%s]", *v);
    buf_putc(&played.said, '\n');
}

static int played_launch_write(const struct launch_order *l, int *ret_fd, struct err *err) {
    note("launch of %u: deadline %d, scratch \"%s\", sandbox %d, lifeline %d", l->n,
         l->deadline_required, l->scratch, l->sandbox, l->lifeline);
    for (uint32_t i = 0; i < l->n; i++) {
        note_texts("program", l->workers[i].argv);
        note_texts("with", l->workers[i].env);
        note("  out \"%s\", err \"%s\"", l->workers[i].out, l->workers[i].err);
    }
    if (fails("write it"))
        return err_set(err, -errno, "make a memfd");
    *ret_fd = played_open();
    return 0;
}

/* ---- files of workers ---- */

static int played_output_init(struct output *o, const struct worker_output *what, int workers,
                              const char *run_id, struct err *err) {
    *o = (struct output){.what = what, .scratch = draw(2)};
    if (fails("output of %d workers of %s", workers, run_id))
        return err_set(err, -errno, "make a folder");
    str_copy(o->run_dir, sizeof(o->run_dir), "/run");
    return 0;
}

static int played_output_begin(struct output *o, const struct worker_spec *s, struct err *err) {
    return fails("output of round %d", (int)s->round) ? err_set(err, -errno, "make a folder") : 0;
}

static void played_output_files(const struct output *o, int local_rank, struct output_files *ret) {
    *ret = (struct output_files){"", "", ""};
    snprintf(ret->out, sizeof(ret->out), "%s/%d/out", o->run_dir, local_rank);
    snprintf(ret->error_json, sizeof(ret->error_json), "%s/%d/error", o->run_dir, local_rank);
}

static void played_error_text(const struct output *o, int local_rank, char *ret, size_t size) {
    static const char *const texts[] = {"", "it is broken", "ValueError: \"x\""};
    snprintf(ret, size, "%s", texts[draw(3)]);
    note("error of %d, %zu bytes: %s", local_rank, size, ret);
}

static int played_failed_before(const struct output *o, int local_rank, int n) {
    int before = draw(2) ? -1 : draw(n);
    note("before %d of %d failed %d", local_rank, n, before);
    return before;
}

static void played_output_fini(struct output *o) {
    note("output ends");
}

static int played_console(struct tee **tee, const struct output *o, const struct worker_spec *s,
                          struct err *err) {
    if (fails("console of round %d", (int)s->round))
        return err_set(err, -errno, "follow a file");
    if (world.tees)
        *tee = (struct tee *)&world.tees;
    return 0;
}

static void played_tee_end(struct tee *t) {
    assert_ptr_equal(t, &world.tees);
    note("tee ends");
}

static bool played_tee_free(struct tee *t, int64_t patience_ns) {
    note("tee %s within %lld", t ? "is given back" : "is none", (long long)patience_ns);
    return true;
}

static int played_pass_on(const char *path, const char *to, int code, struct err *err) {
    note("pass on %s to %s with %d", path, to, code);
    return 7;
}

static int64_t played_boottime(void) {
    return world.now_ns;
}

#define socketpair                     played_socketpair
#define descriptors_lift               played_lift
#define dup2                           played_dup2
#define memfd_create                   played_memfd
#define ftruncate                      played_ftruncate
#define mmap                           played_mmap
#define munmap                         played_munmap
#define prctl                          played_prctl
#define close                          played_close
#define file_close                     played_file_close
#define guard_main                     played_guard_main
#define _exit                          played_exit
#define process_spawn(s, p, e)         played_spawn(s, p, e)
#define process_spawn_reporting        played_spawn_reporting
#define process_signal                 played_process_signal
#define process_reap                   played_reap
#define process_close                  played_process_close
#define process_open                   played_process_open
#define process_list_descendants       played_list
#define process_signal_descendants_but played_signal_descendants
#define waitpid                        played_waitpid
#define getpid()                       AGENT
#define loop_fd                        played_loop_fd
#define loop_signal                    played_loop_signal
#define loop_source_free               played_source_free
#define order_send                     played_send
#define order_receive                  played_receive
#define launch_write                   played_launch_write
#define output_init                    played_output_init
#define output_begin                   played_output_begin
#define output_files(o, rank, files)   played_output_files(o, rank, files)
#define output_error_text              played_error_text
#define output_failed_before           played_failed_before
#define output_fini                    played_output_fini
#define console_begin                  played_console
#define tee_end                        played_tee_end
#define tee_free                       played_tee_free
#define error_file_pass_on             played_pass_on
#define clock_boottime_ns              played_boottime
#include "agent/workers/guard.c"
#undef close
#undef _exit

/* ---- what the agent is told ---- */

static void on_started(void *arg, int local_rank, pid_t pid, int pidfd) {
    assert_true(arg == &world && played.open[pidfd]);
    note("> started %d: %d, %d; alive %d", local_rank, (int)pid, pidfd, guard_alive(world.g));
}

static void on_running(void *arg) {
    note("> running");
}

static void on_exec_failed(void *arg, int local_rank, const char *why) {
    note("> exec of %d failed: %s", local_rank, why);
}

static void on_exited(void *arg, int local_rank, pid_t pid, int status, const char *error,
                      int64_t ended_ns) {
    note("> exited %d: %d, %d at %lld: %s; alive %d", local_rank, (int)pid, status,
         (long long)ended_ns, error, guard_alive(world.g));
}

static void on_reaped(void *arg, enum guard_reason reason) {
    note("> reaped: %d; alive %d", (int)reason, guard_alive(world.g));
}

static void on_dead(void *arg, pid_t pid, int status, bool fenced) {
    note("> dead: %d, %d, fenced %d; alive %d", (int)pid, status, fenced, guard_alive(world.g));
    assert_int_equal(guard_alive(world.g), 0);
    world.died = true;
    world.group = 0;
}

static const struct guard_events events = {on_started, on_running, on_exec_failed,
                                           on_exited,  on_reaped,  on_dead};

/* ---- what comes next ---- */

static void report(struct guard_report r, bool brings) {
    assert_true(world.last < 256);
    world.reports[world.last] = r;
    world.brings[world.last++] = brings;
}

/* As a guard does: started, each once; running or not; exited, each once; reaped. */
static void report_something(void) {
    static const int statuses[] = {0, 1 << 8, 3 << 8, SIGKILL, SIGSEGV};
    if (!world.group || !world.lives)
        return;
    if (world.started < world.group) {
        int rank = world.started++;
        bool not = draw(6) == 0;
        if (not )
            report((struct guard_report){REPORT_EXEC_FAILED, rank, 0, -EAGAIN, 0}, false);
        else
            report((struct guard_report){REPORT_STARTED, rank, 500 + rank, 0, 0}, true);
    } else if (!world.running) {
        world.running = true;
        report(draw(3)
                   ? (struct guard_report){.kind = REPORT_RUNNING}
                   : (struct guard_report){REPORT_EXEC_FAILED, draw(world.group), 0, -ENOENT, 0},
               false);
    } else if (world.exited < world.group) {
        int rank = world.exited++;
        report((struct guard_report){REPORT_EXITED, rank, draw(8) ? 500 + rank : 0,
                                     statuses[draw(5)], world.now_ns + rank},
               false);
    } else {
        report((struct guard_report){REPORT_REAPED, 0, 0, draw(5), 0}, false);
        world.group = 0;
    }
}

static void start(void) {
    struct err err = {0};
    struct worker_spec s = {.run_id = "job",
                            .round = (uint64_t)draw(100),
                            .world_size = 9,
                            .group_world_size = 3,
                            .master_addr = "10.0.0.1",
                            .local_world_size = 1 + draw(WORKERS),
                            .role = "trainer",
                            .deadline_required = draw(2),
                            .lifeline = draw(2) ? 0 : 777};
    played.open[777] = s.lifeline > 0;
    int code = guard_start(world.g, &s, &err);
    played.open[777] = false;
    note("start %d: %d %s", s.local_world_size, code, err.msg);
    if (code == 0) {
        world.group = s.local_world_size;
        world.started = world.exited = 0;
        world.running = false;
    }
}

static void command_guard(void) {
    struct err err = {0};
    switch (draw(9)) {
    case 0:
        guard_stop(world.g, SIGTERM, draw(1000));
        return;
    case 1:
        guard_kill(world.g);
        return;
    case 2:
        guard_signal(world.g, SIGUSR1);
        return;
    case 3:
        guard_deadline(world.g, world.now_ns + 1, world.now_ns + 2);
        return;
    case 4:
        note("signal one: %d", guard_signal_one(world.g, 200 + draw(4), SIGUSR2));
        return;
    case 5:
        note("hand on: %d", guard_hand_on_error(world.g, draw(WORKERS), 9, "/mine", &err));
        return;
    case 6:
        note("output in \"%s\"", guard_output_dir(world.g));
        return;
    case 7:
        err.msg[0] = '\0';
        note("renew: %d %s", guard_renew(world.g, &err), err.msg);
        return;
    default:
        guard_spare(world.g, draw(2) ? 0 : 350);
    }
}

static void step(void) {
    switch (draw(8)) {
    case 0:
        start();
        return;
    case 1:
    case 2:
        command_guard();
        return;
    case 3:
        if (world.on_readable)
            world.on_readable(world.on_readable_arg, world.sock, LOOP_READ);
        return;
    case 4:
        world.on_child(world.on_child_arg, SIGCHLD);
        return;
    case 5:
        world.deaf = draw(3);
        world.deaf_code = draw(3) == 0 ? -EPIPE : draw(2) ? -EAGAIN : -ENOBUFS;
        world.due_ns = draw(2) ? 0 : world.now_ns + draw(3) - 1;
        return;
    case 6:
        if (draw(4) == 0) {
            kill_guard(draw(3) ? SIGKILL : draw(2) ? SIGTERM : 5 << 8);
            world.others = draw(4);
        }
        return;
    default:
        for (int i = draw(4); i > 0; i--)
            report_something();
    }
}

/* An agent and its guards, from the first to the end of the agent. */
static void live(uint64_t seed) {
    static const char *const words[] = {"/opt/train", "--rank=$local_rank", NULL};
    struct worker_command command = {.words = words, .no_python = true};
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    world.now_ns = 7000000000;
    world.tees = draw(2);
    command.sandbox = draw(2);
    command.output.log_dir = draw(2) ? "/logs" : NULL;
    world.g = guard_new(&command, &err);
    if (!world.g) {
        note("no guard: %d %s", err.code, err.msg);
        return;
    }
    guard_attach(world.g, (struct loop *)&world, &events, &world);
    for (int i = 0; i < STEPS; i++)
        step();
    assert_null(guard_free(world.g));
    assert_true(!world.on_readable && !world.on_child);
    while (world.first < world.last)
        world.first++; /* what was not heard */
}

static const struct play plays[] = {
    {"tests/agent/workers/record/guard_agent.txt", live, 60, true, {ENOMEM, EMFILE}}};

static void test_what_an_agent_does_with_its_guard_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    static char *const environment[] = {"PATH=/a:/b", NULL};
    environ = (char **)(uintptr_t)environment;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_an_agent_does_with_its_guard_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
