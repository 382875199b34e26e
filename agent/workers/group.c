#include "agent/workers/group.h"

#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "agent/sys/process.h"
#include "agent/workers/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The wait status of a worker that could not be forked: exit code 126. */
enum { NO_FORK = 126 << 8 };

/* The guard's environment with the worker's own variables over it; the array is the caller's. */
static const char **merge_environment(char *const *own) {
    size_t n = 0, inherited = 0, kept = 0;
    while (own[n])
        n++;
    while (environ[inherited])
        inherited++;
    const char **all = malloc((n + inherited + 1) * sizeof(*all));
    if (!all)
        abort();
    for (size_t i = 0; i < inherited; i++) {
        bool hidden = false;
        size_t name = strcspn(environ[i], "=") + 1;
        for (size_t k = 0; k < n && !hidden; k++)
            hidden = strncmp(environ[i], own[k], name) == 0;
        if (!hidden)
            all[kept++] = environ[i];
    }
    memcpy(all + kept, own, n * sizeof(*all));
    all[kept + n] = NULL;
    return all;
}

struct child {
    const struct launch *launch;
    const struct launch_worker *worker;
};

/* Runs in the child: opens the logs there, so that a disk that hangs never hangs the guard. */
static int begin_child(void *arg) {
    const struct child *c = arg;
    const char *const paths[] = {c->worker->out, c->worker->err};
    for (int i = 0; i < 2; i++) {
        if (!paths[i][0])
            continue;
        int fd = open(paths[i], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0 || dup2(fd, i + 1) < 0)
            return -errno;
    }
    return c->launch->sandbox_size ? sandbox_enter(c->launch->sandbox, c->launch->sandbox_size) : 0;
}

static int fork_worker(const struct launch *l, uint32_t local_rank, int report,
                       struct process *ret) {
    struct child child = {l, &l->workers[local_rank]};
    const char **env = merge_environment(child.worker->env);
    struct process_spawn s = {
        .argv = (const char *const *)child.worker->argv,
        .envp = env,
        .keep = &l->lifeline,
        .keep_n = l->lifeline > 0,
        .session = true,
        .death_signal = SIGKILL,
        .in_child = begin_child,
        .in_child_arg = &child,
    };
    int code = process_spawn_reporting(&s, report, local_rank, ret, NULL);
    free(env);
    return code;
}

/* The deadline is the guard's only licence to fork: looked at each time, as near as can be. */
static bool may_fork(int64_t fence_ns) {
    return fence_ns == 0 || clock_boottime_ns() < fence_ns;
}

static void fork_all(struct group *g, const struct launch *l, int64_t fence_ns, int report,
                     const struct group_events *ev, void *arg) {
    for (uint32_t i = 0; i < l->n; i++) {
        struct process p;
        if (!may_fork(fence_ns)) {
            group_kill_all(g, i == 0 ? GUARD_REFUSED : GUARD_FENCED);
            return;
        }
        int code = fork_worker(l, i, report, &p);
        if (code) {
            g->failed = true;
            ev->exec_failed(arg, i, code);
            ev->exited(arg, i, 0, NO_FORK);
            continue;
        }
        g->pids[i] = p.pid;
        g->alive++;
        ev->started(arg, i, &p);
        process_close(&p);
    }
}

void group_start(struct group *g, const struct launch *l, int64_t fence_ns,
                 const struct group_events *ev, void *arg) {
    assert(g->phase == GROUP_NONE);
    int ends[2] = {-1, -1};
    free(g->pids);
    *g = (struct group){.phase = GROUP_RUNNING, .reason = GUARD_ENDED, .n = l->n, .failures = -1};
    g->pids = calloc(l->n ? l->n : 1, sizeof(*g->pids));
    if (!g->pids || process_report_pipe(ends) < 0)
        abort();
    g->failures = ends[0];
    fcntl(g->failures, F_SETFL, O_NONBLOCK);
    fork_all(g, l, fence_ns, ends[1], ev, arg);
    close(ends[1]);
    if (g->alive == 0)
        group_reap(g, ev, arg);
}

void group_signal(const struct group *g, int signo) {
    for (uint32_t i = 0; i < g->n; i++)
        /* Before its setsid a worker has no process group of its own yet. */
        if (g->pids[i] && kill(-g->pids[i], signo) < 0 && errno == ESRCH)
            kill(g->pids[i], signo);
}

void group_stop(struct group *g, int signo, int64_t grace_ms) {
    int64_t at = clock_boottime_ns() + grace_ms * 1000000;
    if (g->phase == GROUP_NONE || g->phase == GROUP_KILLING)
        return;
    if (g->phase == GROUP_RUNNING || at < g->grace_at_ns)
        g->grace_at_ns = at;
    if (g->phase == GROUP_RUNNING)
        g->reason = GUARD_STOPPED;
    g->phase = GROUP_STOPPING;
    group_signal(g, signo);
    group_signal(g, SIGCONT);
}

void group_kill_all(struct group *g, enum guard_reason reason) {
    if (g->phase == GROUP_NONE)
        return;
    if (g->phase == GROUP_RUNNING || reason == GUARD_FENCED)
        g->reason = reason;
    g->phase = GROUP_KILLING;
    group_signal(g, SIGKILL);
    process_signal_descendants(getpid(), SIGKILL);
}

static bool group_note(struct group *g, pid_t pid, uint32_t *ret_local_rank) {
    for (uint32_t i = 0; i < g->n; i++)
        if (g->pids[i] == pid) {
            g->pids[i] = 0;
            g->alive--;
            *ret_local_rank = i;
            return true;
        }
    return false; /* an orphan of some worker */
}

/* Killed processes make more orphans, whose end is told by another SIGCHLD: so each pass may miss
 * some, and the last finds no child. While a worker lives there is nothing to look for yet. */
void group_reap(struct group *g, const struct group_events *ev, void *arg) {
    int status;
    pid_t pid;
    uint32_t local_rank;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (group_note(g, pid, &local_rank)) {
            /* What it wrote about its exec it wrote before it ended. */
            group_read_failures(g, ev, arg);
            ev->exited(arg, local_rank, pid, status);
        }
    if (g->phase == GROUP_NONE || g->alive > 0)
        return;
    if (pid == 0) {
        g->phase = GROUP_KILLING;
        process_signal_descendants(getpid(), SIGKILL);
        return;
    }
    group_read_failures(g, ev, arg);
    file_close(&g->failures);
    g->phase = GROUP_NONE;
    ev->reaped(arg, g->reason);
}

void group_read_failures(struct group *g, const struct group_events *ev, void *arg) {
    struct process_failure f;
    ssize_t n;
    while (g->failures >= 0 && (n = read(g->failures, &f, sizeof(f))) != -1) {
        if (n == sizeof(f)) {
            g->failed = true;
            ev->exec_failed(arg, f.tag, f.code);
            continue;
        }
        file_close(&g->failures);
        if (!g->failed && g->phase == GROUP_RUNNING)
            ev->running(arg);
    }
}
