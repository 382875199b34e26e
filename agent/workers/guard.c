#include "agent/workers/guard.h"

#include "agent/workers/command.h"
#include "agent/workers/console.h"
#include "agent/workers/env.h"
#include "agent/workers/error_file.h"
#include "agent/workers/orders.h"
#include "agent/workers/output.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
#include "base/sys/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GUARD_FD = 3, GUARD_DUE_FD = 4, ERROR_TEXT_MAX = 1024 };

struct guarded {
    int pidfd;     /* -1: not started, or ended */
    char why[256]; /* it could not exec; "": it could */
};

struct guard {
    const struct worker_command *command;
    struct process process;
    int sock; /* -1: the guard is dead */
    /* A page that the guard has too, where it says when its timer ends it; 0: never. SIGKILL says
     * nothing of who sent it. */
    int due_fd;
    volatile int64_t *due_ns;
    struct loop *loop;
    struct loop_source *readable, *child_ended;
    const struct guard_events *ev;
    void *arg;

    bool group; /* one lives, as far as we were told */
    int alive;
    struct guarded *workers;
    int n;

    pid_t spared;    /* a child of the agent that is none of our business; 0: none */
    bool collecting; /* the guard is dead, what it left is being killed and reaped */
    int dead_status;
    bool failed; /* a worker of the newest group has */
    int before;  /* the one that had failed before that; -1: none */
    int before_status;
    bool output_made;
    struct output output;
    struct tee *tee; /* NULL: nothing is shown besides */
};

static void on_readable(void *arg, int fd, int what);
static void on_child_ended(void *arg, int signo);

/* Above the standard streams, and not where the child wants its end. */
static int socket_pair(int ret[2]) {
    int low[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, low) < 0)
        return -errno;
    ret[0] = descriptors_lift(low[0], GUARD_FD + 1);
    ret[1] = descriptors_lift(low[1], GUARD_FD + 1);
    int code = ret[0] < 0 ? ret[0] : ret[1] < 0 ? ret[1] : 0;
    for (int i = 0; code && i < 2; i++)
        file_close(&ret[i]);
    return code;
}

/* Of the child: its end of the socket, and the page. Both are above where they are to lie. */
struct handed {
    int fds[2];
};

/* In the child, after everything else was closed: nothing lies at GUARD_FD. */
static int place_handed(void *arg) {
    const struct handed *h = arg;
    bool placed = dup2(h->fds[0], GUARD_FD) >= 0 && dup2(h->fds[1], GUARD_DUE_FD) >= 0;
    return placed ? 0 : -errno;
}

static int make_page(struct guard *g, struct err *err) {
    int low = memfd_create("rankrun-guard", MFD_CLOEXEC);
    int fd = low < 0 ? -errno : descriptors_lift(low, GUARD_DUE_FD + 1);
    if (fd < 0)
        return err_set(err, fd, "make a page for the guard");
    g->due_fd = fd;
    if (ftruncate(fd, sizeof(*g->due_ns)) < 0)
        return err_set(err, -errno, "make a page for the guard");
    void *page = mmap(NULL, sizeof(*g->due_ns), PROT_READ | PROT_WRITE, MAP_SHARED, g->due_fd, 0);
    if (page == MAP_FAILED)
        return err_set(err, -errno, "map a page for the guard");
    g->due_ns = page;
    return 0;
}

static void drop_page(struct guard *g) {
    if (g->due_ns)
        munmap((void *)g->due_ns, sizeof(*g->due_ns));
    file_close(&g->due_fd);
}

/* Of a process that has no thread and nothing at work the guard may be a mere fork: on a machine of
 * two cores an exec is a fifth of the time in which workers could have started. */
static int go_on_as_guard(void *arg) {
    int code = place_handed(arg);
    if (code)
        return code;
    _exit(guard_main());
}

/* SIGCONT from the kernel when the agent dies: a guard that somebody has stopped wakes up, finds
 * its socket at an end and does its work. */
static int start_guard(struct guard *g, bool execute, struct err *err) {
    static const char *const argv[] = {GUARD_NAME, NULL};
    int ends[2];
    int code = socket_pair(ends);
    if (code)
        return err_set(err, code, "make a socket for the guard");
    struct handed handed = {{ends[1], g->due_fd}};
    *g->due_ns = 0;
    struct process_spawn s = {
        .argv = argv,
        .file = "/proc/self/exe",
        .keep = handed.fds,
        .keep_n = 2,
        .session = true,
        .death_signal = SIGCONT,
        .in_child = execute ? place_handed : go_on_as_guard,
        .in_child_arg = &handed,
    };
    /* That a fork got as far as its loop is not waited for: one that did not is a dead guard. */
    code = execute ? process_spawn(&s, &g->process, err)
                   : process_spawn_reporting(&s, -1, 0, &g->process, err);
    close(ends[1]);
    if (code) {
        close(ends[0]);
        return err_wrap(err, "start the guard: "), code;
    }
    g->sock = ends[0];
    return 0;
}

static void watch_guard(struct guard *g) {
    if (g->loop && g->sock >= 0)
        g->readable = loop_fd(g->loop, g->sock, LOOP_READ, on_readable, g);
}

struct guard *guard_new(const struct worker_command *command, struct err *err) {
    struct guard *g = mem_new(struct guard);
    g->command = command;
    g->before = -1;
    g->sock = g->due_fd = -1;
    g->process = PROCESS_NONE;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        err_set(err, -errno, "become a subreaper");
    else if (make_page(g, err) == 0 && start_guard(g, false, err) == 0)
        return g;
    drop_page(g);
    free(g);
    return NULL;
}

void guard_attach(struct guard *g, struct loop *l, const struct guard_events *ev, void *arg) {
    assert(!g->loop);
    g->loop = l;
    g->ev = ev;
    g->arg = arg;
    g->child_ended = loop_signal(l, SIGCHLD, on_child_ended, g);
    watch_guard(g);
}

int guard_renew(struct guard *g, struct err *err) {
    if (g->sock >= 0 || g->collecting)
        return 0;
    int code = start_guard(g, true, err);
    watch_guard(g);
    return code;
}

void guard_spare(struct guard *g, pid_t child) {
    g->spared = child;
}

static void forget_workers(struct guard *g) {
    for (int i = 0; i < g->n; i++)
        file_close(&g->workers[i].pidfd);
    free(g->workers);
    g->workers = NULL;
    g->n = g->alive = 0;
    g->group = false;
    if (g->tee)
        tee_end(g->tee);
}

struct guard *guard_free(struct guard *g) {
    const int64_t second_ns = 1000000000;
    if (!g)
        return NULL;
    g->readable = loop_source_free(g->readable);
    g->child_ended = loop_source_free(g->child_ended);
    file_close(&g->sock);
    /* Its socket ended: it kills, reaps and goes. One that does not is killed, and what was below
     * it falls to us. */
    if (g->process.pidfd >= 0 && process_reap(&g->process, 5 * second_ns, NULL) == -ETIME) {
        process_signal(&g->process, SIGKILL);
        process_reap(&g->process, second_ns, NULL);
    }
    process_close(&g->process);
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        ;
    if (pid == 0)
        process_signal_descendants_but(getpid(), g->spared, SIGKILL);
    forget_workers(g);
    tee_free(g->tee, 5 * second_ns);
    if (g->output_made)
        output_fini(&g->output);
    drop_page(g);
    free(g);
    return NULL;
}

/* ---- what the guard says ---- */

/* The words for a worker that could not be started: the program, and what the system said. */
static void note_exec_failure(struct guard *g, int local_rank, int code) {
    ARENA_FINI struct arena a = {0};
    struct guarded *w = &g->workers[local_rank];
    char **argv = command_make(g->command, local_rank, &a);
    snprintf(w->why, sizeof(w->why), "cannot execute %s: %s", argv[0], strerror(-code));
    g->ev->exec_failed(g->arg, local_rank, w->why);
}

/* Who raised an error may still be busy with its end when those who waited for it have ended of
 * that.
 */
static void note_before(struct guard *g, const struct guard_report *r, char text[ERROR_TEXT_MAX]) {
    char cause[ERROR_TEXT_MAX];
    BUF_FINI struct buf b = {0};
    if (r->local_rank == g->before)
        g->before_status = r->status;
    if (r->status == 0 || g->failed)
        return;
    g->failed = true;
    g->before = output_failed_before(&g->output, r->local_rank, g->n);
    if (g->before < 0)
        return;
    output_error_text(&g->output, g->before, cause, sizeof(cause));
    buf_printf(&b, "local rank %d had failed before: %s%s%s", g->before, cause,
               text[0] ? "; then here: " : "", text);
    str_copy(text, ERROR_TEXT_MAX, buf_str(&b));
}

static void note_exit(struct guard *g, const struct guard_report *r) {
    char text[ERROR_TEXT_MAX];
    struct guarded *w = &g->workers[r->local_rank];
    if (w->why[0])
        snprintf(text, sizeof(text), "%s", w->why);
    else
        output_error_text(&g->output, r->local_rank, text, sizeof(text));
    note_before(g, r, text);
    g->alive -= r->pid > 0;
    g->ev->exited(g->arg, r->local_rank, r->pid, r->status, text, r->realtime_ns);
    file_close(&w->pidfd);
}

static void note_report(struct guard *g, const struct guard_report *r, int fd) {
    assert(r->local_rank >= 0 && (r->local_rank < g->n || r->kind == REPORT_REAPED));
    switch (r->kind) {
    case REPORT_STARTED:
        g->alive++;
        g->workers[r->local_rank].pidfd = fd;
        g->ev->started(g->arg, r->local_rank, r->pid, fd);
        break;
    case REPORT_RUNNING:
        g->ev->running(g->arg);
        break;
    case REPORT_EXEC_FAILED:
        note_exec_failure(g, r->local_rank, r->status);
        break;
    case REPORT_EXITED:
        note_exit(g, r);
        break;
    case REPORT_REAPED:
        forget_workers(g);
        g->ev->reaped(g->arg, (enum guard_reason)r->status);
        break;
    }
}

/* The timer sends no other signal, and none before it is due. */
static bool ended_by_timer(const struct guard *g) {
    int status = g->dead_status;
    int64_t due_ns = *g->due_ns;
    return due_ns && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
           clock_boottime_ns() >= due_ns;
}

/* Kills and reaps what a dead guard has left, a pass for every SIGCHLD, until there is no child
 * but the one that is spared. Who ran is counted before the ended are reaped: one that ends in
 * between would be missed by both. */
static void collect(struct guard *g) {
    int status;
    pid_t pid;
    int killed = process_signal_descendants_but(getpid(), g->spared, SIGKILL);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == g->process.pid)
            g->dead_status = status;
    if (pid == 0 && (!g->spared || killed > 0))
        return;
    pid = g->process.pid;
    g->collecting = false;
    process_close(&g->process);
    forget_workers(g);
    g->ev->dead(g->arg, pid, g->dead_status, ended_by_timer(g));
}

static void on_child_ended(void *arg, int signo) {
    struct guard *g = arg;
    if (g->collecting)
        collect(g);
}

/* The socket ended. A guard that only closed it would be broken: it is killed all the same. */
static void bury(struct guard *g) {
    g->readable = loop_source_free(g->readable);
    file_close(&g->sock);
    process_signal(&g->process, SIGKILL);
    g->collecting = true;
    collect(g);
}

static void on_readable(void *arg, int fd, int what) {
    struct guard *g = arg;
    struct guard_report r;
    int passed = -1, got;
    while ((got = order_receive(fd, &r, sizeof(r), &passed)) > 0)
        note_report(g, &r, passed);
    if (got != -EAGAIN)
        bury(g);
}

/* ---- what the guard is told ---- */

static void describe_worker(struct guard *g, const struct worker_spec *spec, int local_rank,
                            struct arena *a, struct launch_worker *ret) {
    struct output_files files;
    output_files(&g->output, local_rank, &files);
    ret->argv = command_make(g->command, local_rank, a);
    ret->env = env_make(spec, local_rank, files.error_json, a);
    ret->out = arena_strdup(a, files.out);
    ret->err = arena_strdup(a, files.err);
}

static int send_start(struct guard *g, const struct worker_spec *spec, struct err *err) {
    ARENA_FINI struct arena a = {0};
    struct order order = {.kind = ORDER_START};
    FILE_CLOSE int fd = -1;
    struct launch_order l = {
        .deadline_required = spec->deadline_required,
        .scratch = g->output.scratch ? g->output.run_dir : "",
        .sandbox = g->command->sandbox,
        .n = (uint32_t)spec->local_world_size,
        .workers = arena_array(&a, struct launch_worker, (size_t)spec->local_world_size),
    };
    for (int i = 0; i < spec->local_world_size; i++)
        describe_worker(g, spec, i, &a, &l.workers[i]);
    int code = launch_write(&l, &fd, err);
    if (!code && spec->lifeline > 0) {
        struct order hold = {.kind = ORDER_LIFELINE};
        code = order_send(g->sock, &hold, sizeof(hold), spec->lifeline);
        if (code)
            err_set(err, code, "hand the lifeline to the guard");
    }
    if (!code) {
        code = order_send(g->sock, &order, sizeof(order), fd);
        if (code)
            err_set(err, code, "tell the guard to start workers");
    }
    return code;
}

int guard_start(struct guard *g, const struct worker_spec *spec, struct err *err) {
    assert(g->loop && spec->local_world_size > 0 && spec->local_world_size <= WORKERS_MAX);
    if (g->group || g->sock < 0)
        return err_say(err, g->group ? -EBUSY : -EPIPE, "start workers: %s",
                       g->group ? "the last group still lives" : "the guard is dead");
    int code = 0;
    if (!g->output_made)
        code =
            output_init(&g->output, &g->command->output, spec->local_world_size, spec->run_id, err);
    g->output_made = !code;
    if (!code)
        code = output_begin(&g->output, spec, err);
    if (!code)
        code = console_begin(&g->tee, &g->output, spec, err);
    if (!code)
        code = send_start(g, spec, err);
    if (code)
        return code;
    g->failed = false;
    g->before = -1;
    g->before_status = 0;
    g->n = spec->local_world_size;
    g->workers = mem_array(struct guarded, (size_t)g->n);
    for (int i = 0; i < g->n; i++)
        g->workers[i].pidfd = -1;
    g->group = true;
    return 0;
}

/* A guard that does not read is stopped or worse. What must be done then is done to it: with it the
 * kernel kills the workers. */
static void send_order(struct guard *g, struct order order, bool urgent) {
    if (g->sock >= 0 && order_may_go_later(order_send(g->sock, &order, sizeof(order), -1)) &&
        urgent)
        process_signal(&g->process, SIGKILL);
}

void guard_deadline(struct guard *g, int64_t fence_ns, int64_t hard_ns) {
    assert(fence_ns < hard_ns);
    send_order(g, (struct order){.kind = ORDER_DEADLINE, .fence_ns = fence_ns, .hard_ns = hard_ns},
               false);
}

void guard_stop(struct guard *g, int signo, int64_t grace_ms) {
    if (g->group)
        send_order(g, (struct order){.kind = ORDER_STOP, .signo = signo, .grace_ms = grace_ms},
                   true);
}

void guard_kill(struct guard *g) {
    if (g->group)
        send_order(g, (struct order){.kind = ORDER_KILL}, true);
}

void guard_signal(struct guard *g, int signo) {
    if (g->group)
        send_order(g, (struct order){.kind = ORDER_SIGNAL, .signo = signo}, false);
}

/* Held by a pidfd before it is looked for: what is found is then what is hit. */
int guard_signal_one(const struct guard *g, pid_t pid, int signo) {
    struct process p;
    pid_t *below = NULL;
    int code = g->process.pidfd >= 0 ? process_open(pid, &p, NULL) : -ESRCH;
    if (code < 0)
        return code;
    size_t n = process_list_descendants(g->process.pid, &below);
    code = process_is_among(pid, below, n) ? process_signal(&p, signo) : -ESRCH;
    free(below);
    process_close(&p);
    return code;
}

int guard_alive(const struct guard *g) {
    return g->alive;
}

int guard_hand_on_error(const struct guard *g, int local_rank, int code, const char *to,
                        struct err *err) {
    struct output_files files = {"", "", ""};
    int status = g->before_status;
    if (g->before >= 0)
        local_rank = g->before;
    if (g->before >= 0 && status)
        code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    if (g->output_made)
        output_files(&g->output, local_rank, &files);
    return files.error_json[0] ? error_file_pass_on(files.error_json, to, code, err) : 1;
}

const char *guard_output_dir(const struct guard *g) {
    bool chosen = g->output_made && !g->output.scratch && !g->command->output.log_dir;
    return chosen ? g->output.run_dir : "";
}
