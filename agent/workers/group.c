#include "agent/workers/group.h"

#include "agent/workers/vfork_spawn.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The wait status of a worker that could not be forked: exit code 126. */
enum { NO_FORK = 126 << 8 };

/* The guard's environment with the worker's own variables over it. */
static const char *const *merge_environment(char *const *own, struct arena *a) {
    size_t n = 0, inherited = 0, kept = 0;
    while (own[n])
        n++;
    while (environ[inherited])
        inherited++;
    const char **all = arena_array(a, const char *, n + inherited + 1);
    for (size_t i = 0; i < inherited; i++) {
        bool hidden = false;
        size_t name = strcspn(environ[i], "=") + 1;
        for (size_t k = 0; k < n && !hidden; k++)
            hidden = environ[i][0] == own[k][0] && strncmp(environ[i], own[k], name) == 0;
        if (!hidden)
            all[kept++] = environ[i];
    }
    memcpy(all + kept, own, n * sizeof(*all));
    return all;
}

/* With the element before argv[0] that struct vfork_spawn needs. */
static const char **copy_words(char *const *argv, struct arena *a) {
    size_t n = 0;
    while (argv[n])
        n++;
    const char **words = arena_array(a, const char *, n + 2);
    memcpy(words + 1, argv, n * sizeof(*words));
    return words + 1;
}

/* Where a program is looked for is the same for all that have the same. */
static struct vfork_spawn *make_spawns(const struct launch_order *l, int report, struct arena *a) {
    struct vfork_spawn *all = arena_array(a, struct vfork_spawn, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct launch_worker *w = &l->workers[i];
        bool same = i > 0 && str_eq(w->argv[0], l->workers[i - 1].argv[0]);
        all[i] = (struct vfork_spawn){
            .files = same ? all[i - 1].files : vfork_spawn_files(w->argv[0], a),
            .argv = copy_words(w->argv, a),
            .envp = merge_environment(w->env, a),
            .outputs = {w->out, w->err},
            .keep = l->lifeline,
            .report = report,
            .tag = i,
            .parent = getpid(),
        };
    }
    return all;
}

/* The deadline is the guard's only licence to start one: looked at each time, as near as can be. */
static bool may_begin(int64_t fence_ns) {
    return fence_ns == 0 || clock_boottime_ns() < fence_ns;
}

static void begin_all(struct worker_processes *g, const struct launch_order *l, int64_t fence_ns,
                      int report, const struct group_events *ev, void *arg) {
    struct vfork_spawn *spawns = make_spawns(l, report, &g->memory);
    for (uint32_t i = 0; i < l->n; i++) {
        struct process p;
        if (!may_begin(fence_ns)) {
            group_kill_all(g, i == 0 ? GUARD_REFUSED : GUARD_FENCED);
            return;
        }
        int code = vfork_spawn_begin(&spawns[i], g->stacks + i * (size_t)VFORK_SPAWN_STACK, &p);
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

/* Nobody has it in memory any more: all have exec'ed or ended. */
static void forget_launch(struct worker_processes *g) {
    file_close(&g->failures);
    arena_fini(&g->memory);
    if (g->stacks)
        munmap(g->stacks, g->n * (size_t)VFORK_SPAWN_STACK);
    g->stacks = NULL;
}

void group_start(struct worker_processes *g, const struct launch_order *l, struct arena *a,
                 int64_t fence_ns, const struct group_events *ev, void *arg) {
    assert(g->phase == GROUP_NONE && !g->stacks && l->n > 0);
    int ends[2] = {-1, -1}, code;
    free(g->pids);
    *g = (struct worker_processes){
        .phase = GROUP_RUNNING, .reason = GUARD_ENDED, .n = l->n, .failures = -1, .memory = *a};
    *a = (struct arena){0};
    g->pids = mem_array(pid_t, 2 * (size_t)l->n);
    g->told = g->pids + l->n;
    g->stacks = mmap(NULL, l->n * (size_t)VFORK_SPAWN_STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    code = g->stacks == MAP_FAILED ? -errno : process_report_pipe(ends);
    if (code < 0)
        _exit(-code); /* the agent says why, and makes another guard */
    g->failures = ends[0];
    fcntl(g->failures, F_SETFL, O_NONBLOCK);
    begin_all(g, l, fence_ns, ends[1], ev, arg);
    close(ends[1]);
    if (g->alive == 0)
        group_reap(g, ev, arg);
}

void group_signal(const struct worker_processes *g, int signo) {
    for (uint32_t i = 0; i < g->n; i++)
        /* Before its setsid a worker has no process group of its own yet. */
        if (g->pids[i] && kill(-g->pids[i], signo) < 0 && errno == ESRCH)
            kill(g->pids[i], signo);
}

void group_stop(struct worker_processes *g, int signo, int64_t grace_ms) {
    int64_t at = clock_boottime_ns() + grace_ms * 1000000;
    if (g->phase == GROUP_NONE || g->phase == GROUP_KILLING)
        return;
    if (g->phase == GROUP_RUNNING || at < g->grace_at_ns)
        g->grace_at_ns = at;
    if (g->phase == GROUP_RUNNING)
        g->reason = GUARD_STOPPED;
    g->phase = GROUP_STOPPING;
    for (uint32_t i = 0; i < g->n; i++)
        g->told[i] = g->pids[i] ? g->pids[i] : g->told[i];
    group_signal(g, signo);
    group_signal(g, SIGCONT);
}

void group_kill_all(struct worker_processes *g, enum guard_reason reason) {
    if (g->phase == GROUP_NONE)
        return;
    if (g->phase == GROUP_RUNNING || reason == GUARD_FENCED)
        g->reason = reason;
    g->phase = GROUP_KILLING;
    group_signal(g, SIGKILL);
    process_signal_descendants(getpid(), SIGKILL);
}

static bool group_note(struct worker_processes *g, pid_t pid, uint32_t *ret_local_rank) {
    for (uint32_t i = 0; i < g->n; i++)
        if (g->pids[i] == pid) {
            g->pids[i] = 0;
            g->alive--;
            *ret_local_rank = i;
            return true;
        }
    return false; /* an orphan of some worker */
}

/* A shell ends at once by the signal, and what it runs may be saving just then: whoever was told with
 * a worker has the worker's time. */
static bool group_told_lives(const struct worker_processes *g) {
    for (uint32_t i = 0; i < g->n && g->phase == GROUP_STOPPING; i++)
        if (g->told[i] && kill(-g->told[i], 0) == 0)
            return true;
    return false;
}

/* Killed processes make more orphans, whose end is told by another SIGCHLD: so each pass may miss
 * some, and the last finds no child. While a worker lives there is nothing to look for yet. */
void group_reap(struct worker_processes *g, const struct group_events *ev, void *arg) {
    int status;
    pid_t pid;
    uint32_t local_rank;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (group_note(g, pid, &local_rank)) {
            /* What it wrote about its exec it wrote before it ended. */
            group_read_failures(g, ev, arg);
            ev->exited(arg, local_rank, pid, status);
        }
    if (g->phase == GROUP_NONE || g->alive > 0 || (pid == 0 && group_told_lives(g)))
        return;
    if (pid == 0) {
        g->phase = GROUP_KILLING;
        process_signal_descendants(getpid(), SIGKILL);
        return;
    }
    group_read_failures(g, ev, arg);
    forget_launch(g);
    g->phase = GROUP_NONE;
    ev->reaped(arg, g->reason);
}

void group_read_failures(struct worker_processes *g, const struct group_events *ev, void *arg) {
    struct process_failure f;
    ssize_t n;
    while (g->failures >= 0 && (n = read(g->failures, &f, sizeof(f))) != -1) {
        if (n == sizeof(f)) {
            g->failed = true;
            ev->exec_failed(arg, f.tag, f.code);
            continue;
        }
        forget_launch(g);
        if (!g->failed && g->phase == GROUP_RUNNING)
            ev->running(arg);
    }
}
