/* The guard's own life: a poll loop over the agent's socket, SIGCHLD, one timer and the pipe of the
 * workers that have not exec'ed yet. No library, no thread, nothing that can block: what the agent
 * does not read waits in a queue. */
#include "agent/workers/guard.h"
#include "base/mem.h"

#include "agent/workers/confinement.h"
#include "agent/workers/group.h"
#include "agent/workers/orders.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    AGENT_FD = 3, /* by agreement with guard.c, as the next one */
    DUE_FD = 4,
    LIFELINE_FD_MIN = 700,
};

struct guard_process_queued {
    struct guard_report report;
    int pidfd;
};

struct life {
    int agent; /* -1: gone */
    int signals;
    int timer;                 /* fence and end of grace */
    timer_t reaper;            /* the kernel's: SIGKILL on this process at the hard deadline */
    volatile int64_t *due_ns;  /* when that is, for the agent to see; 0: it is not armed */
    int64_t fence_ns, hard_ns; /* 0: never told */
    bool deadline_counts;      /* for the group that lives */
    struct worker_processes group;
    int lifeline; /* of the group that lives or starts next; -1: none */
    char scratch[4096];
    struct guard_process_queued *queue;
    size_t queue_n;
    bool forking; /* what is told waits: an agent that wakes up for each takes turns from workers */
};

static char **words; /* of this process's command line */

bool guard_is_me(char **argv) {
    words = argv;
    return argv[0] && strcmp(argv[0], GUARD_NAME) == 0;
}

/* A fork has the command line of the agent, and would be taken for it. */
static void show_name(void) {
    size_t last = 0;
    prctl(PR_SET_NAME, GUARD_NAME);
    if (!words || !words[0] || guard_is_me(words))
        return;
    while (words[last + 1])
        last++;
    size_t size = (size_t)(words[last] + strlen(words[last]) - words[0]);
    memset(words[0], 0, size);
    str_copy(words[0], size, GUARD_NAME);
}

static void flush_queue(struct life *l) {
    size_t sent = 0;
    while (sent < l->queue_n && l->agent >= 0 && !l->forking) {
        struct guard_process_queued *q = &l->queue[sent];
        if (order_may_go_later(order_send(l->agent, &q->report, sizeof(q->report), q->pidfd)))
            break;
        file_close(&q->pidfd);
        sent++;
    }
    l->queue_n -= sent;
    if (l->queue_n > 0)
        memmove(l->queue, l->queue + sent, l->queue_n * sizeof(*l->queue));
}

static void tell(struct life *l, struct guard_report report, int pidfd) {
    int copy = pidfd < 0 ? -1 : fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
    mem_push(l->queue, l->queue_n) = (struct guard_process_queued){report, copy};
    flush_queue(l);
}

static void on_started(void *arg, uint32_t local_rank, const struct process *p) {
    tell(arg, (struct guard_report){REPORT_STARTED, (int)local_rank, p->pid, 0, 0}, p->pidfd);
}

static void on_exited(void *arg, uint32_t local_rank, pid_t pid, int status) {
    tell(arg,
         (struct guard_report){REPORT_EXITED, (int)local_rank, pid, status, clock_realtime_ns()},
         -1);
}

static void on_exec_failed(void *arg, uint32_t local_rank, int code) {
    tell(arg, (struct guard_report){REPORT_EXEC_FAILED, (int)local_rank, 0, code, 0}, -1);
}

static void on_running(void *arg) {
    tell(arg, (struct guard_report){.kind = REPORT_RUNNING}, -1);
}

/* 0 disarms. Both timers are absolute, on the clock that counts suspend. */
static void arm(const struct life *l) {
    int64_t next = 0, hard = l->deadline_counts ? l->hard_ns : 0;
    if (l->deadline_counts && l->group.phase != GROUP_NONE && l->group.phase != GROUP_KILLING)
        next = l->fence_ns;
    if (l->group.phase == GROUP_STOPPING && (next == 0 || l->group.grace_at_ns < next))
        next = l->group.grace_at_ns;
    struct itimerspec a = {.it_value = {next / 1000000000, next % 1000000000}};
    struct itimerspec b = {.it_value = {hard / 1000000000, hard % 1000000000}};
    timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &a, NULL);
    timer_settime(l->reaper, TIMER_ABSTIME, &b, NULL);
    *l->due_ns = hard;
}

static void on_reaped(void *arg, enum guard_reason reason) {
    struct life *l = arg;
    l->deadline_counts = false;
    file_close(&l->lifeline);
    arm(l);
    tell(l, (struct guard_report){REPORT_REAPED, 0, 0, (int)reason, 0}, -1);
}

static const struct group_events events = {
    .started = on_started,
    .exited = on_exited,
    .exec_failed = on_exec_failed,
    .running = on_running,
    .reaped = on_reaped,
};

/* Far above what programs open for themselves: shells and scripts put their own files at the first
 * numbers, and would close it by that. */
static void take_lifeline(struct life *l, int fd) {
    file_close(&l->lifeline);
    l->lifeline = fcntl(fd, F_DUPFD_CLOEXEC, LIFELINE_FD_MIN);
    if (l->lifeline < 0)
        l->lifeline = fd; /* few descriptors are allowed */
    else
        file_close(&fd);
}

static void take_deadline(struct life *l, const struct order *o) {
    if (o->fence_ns > l->fence_ns)
        l->fence_ns = o->fence_ns;
    if (o->hard_ns > l->hard_ns)
        l->hard_ns = o->hard_ns;
}

/* The kernel's timer is armed before the first fork: a guard that is stopped between its look at
 * the clock and the fork dies with what it forked. */
static void start(struct life *l, int fd) {
    ARENA_FINI struct arena a = {0};
    struct launch_order launch;
    int code = fd < 0 ? -EMFILE : launch_read(fd, &a, &launch, NULL);
    if (code < 0)
        _exit(-code);
    str_copy(l->scratch, sizeof(l->scratch), launch.scratch);
    if (launch.sandbox && (code = confinement_divide(NULL)) < 0)
        _exit(-code);
    if (launch.deadline_required && clock_boottime_ns() >= l->fence_ns) {
        tell(l, (struct guard_report){REPORT_REAPED, 0, 0, GUARD_REFUSED, 0}, -1);
        file_close(&l->lifeline);
        return;
    }
    launch.lifeline = l->lifeline > 0 ? l->lifeline : 0;
    l->deadline_counts = launch.deadline_required;
    arm(l);
    l->forking = true;
    group_start(&l->group, &launch, &a, l->deadline_counts ? l->fence_ns : 0, &events, l);
    l->forking = false;
    flush_queue(l);
    arm(l);
}

static void obey(struct life *l, const struct order *o, int fd) {
    switch (o->kind) {
    case ORDER_START:
        start(l, fd);
        return;
    case ORDER_LIFELINE:
        take_lifeline(l, fd);
        return;
    case ORDER_DEADLINE:
        take_deadline(l, o);
        break;
    case ORDER_STOP:
        group_stop(&l->group, o->signo, o->grace_ms);
        break;
    case ORDER_KILL:
        group_kill_all(&l->group, GUARD_KILLED);
        break;
    case ORDER_SIGNAL:
        group_signal(&l->group, o->signo);
        break;
    }
    arm(l);
}

static void listen_to_agent(struct life *l) {
    struct order o;
    int fd = -1, got = 0;
    while (l->agent >= 0 && (got = order_receive(l->agent, &o, sizeof(o), &fd)) > 0)
        obey(l, &o, fd);
    if (l->agent < 0 || got == -EAGAIN)
        return;
    file_close(&l->agent);
    group_kill_all(&l->group, GUARD_KILLED);
    arm(l);
}

/* The agent's newest deadline may still lie in the socket: it has been read before this. */
static void look_at_clock(struct life *l) {
    uint64_t times;
    int64_t now = clock_boottime_ns();
    if (read(l->timer, &times, sizeof(times)) < 0)
        return;
    if (l->deadline_counts && now >= l->fence_ns)
        group_kill_all(&l->group, GUARD_FENCED);
    else if (l->group.phase == GROUP_STOPPING && now >= l->group.grace_at_ns)
        group_kill_all(&l->group, l->group.reason);
    arm(l);
}

static void turn(struct life *l) {
    struct pollfd fds[] = {
        {l->agent, POLLIN | (l->queue_n ? POLLOUT : 0), 0},
        {l->signals, POLLIN, 0},
        {l->timer, POLLIN, 0},
        {l->group.failures, POLLIN, 0},
    };
    struct signalfd_siginfo ignored;
    if (poll(fds, 4, -1) < 0)
        return;
    flush_queue(l);
    listen_to_agent(l);
    look_at_clock(l);
    group_read_failures(&l->group, &events, l);
    if (read(l->signals, &ignored, sizeof(ignored)) > 0)
        group_reap(&l->group, &events, l);
}

/* A signal that is meant for the launcher (Ctrl-C, a batch system's TERM to all) must not reach the
 * guard: it ends by its socket, its timer or SIGKILL only. */
static int begin(struct life *l) {
    sigset_t all, child;
    struct sigevent kill_me = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    void *page = mmap(NULL, sizeof(*l->due_ns), PROT_READ | PROT_WRITE, MAP_SHARED, DUE_FD, 0);
    if (page == MAP_FAILED)
        return -errno;
    process_close_from(AGENT_FD + 1);
    *l =
        (struct life){.agent = AGENT_FD, .group = {.failures = -1}, .lifeline = -1, .due_ns = page};
    sigfillset(&all);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL);
    show_name();
    l->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    l->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->signals < 0 || l->timer < 0 || timer_create(CLOCK_BOOTTIME, &kill_me, &l->reaper) < 0)
        return -errno;
    return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

static void give_back(struct life *l) {
    if (l->scratch[0])
        file_remove_tree(l->scratch, NULL);
    for (size_t i = 0; i < l->queue_n; i++)
        file_close(&l->queue[i].pidfd);
    free(l->queue);
    free(l->group.pids);
    file_close(&l->lifeline);
    timer_delete(l->reaper);
    file_close(&l->timer);
    file_close(&l->signals);
    munmap((void *)l->due_ns, sizeof(*l->due_ns));
}

int guard_main(void) {
    struct life l;
    int type = 0;
    socklen_t size = sizeof(type);
    if (getsockopt(AGENT_FD, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET)
        return 64;
    fcntl(AGENT_FD, F_SETFD, FD_CLOEXEC);
    int code = begin(&l);
    if (code < 0)
        return -code;
    while (l.agent >= 0 || l.group.phase != GROUP_NONE)
        turn(&l);
    give_back(&l);
    return 0;
}
