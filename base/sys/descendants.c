/* Finds, signals and ends all descendants of a process, from a snapshot of /proc. */
#include "base/sys/process.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* One process of a snapshot of /proc. */
struct descendants_row {
    pid_t pid, parent;
    bool zombie;
    bool below; /* descends from the root */
};

struct snapshot {
    struct descendants_row *rows;
    size_t n;
};

static void snapshot_take(struct snapshot *s) {
    pid_t *pids;
    size_t n = process_list(&pids);
    struct process_look p;
    for (size_t i = 0; i < n; i++)
        if (process_look(pids[i], &p) == 0)
            mem_push(s->rows, s->n) = (struct descendants_row){
                .pid = pids[i], .parent = p.parent, .zombie = p.state == 'Z' || p.state == 'X'};
    free(pids);
}

static bool is_below(const struct snapshot *s, pid_t pid, pid_t root) {
    if (pid == root)
        return true;
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].pid == pid)
            return s->rows[i].below;
    return false;
}

/* /proc lists by pid, parents mostly first: one pass marks nearly all, a second proves it. */
static void snapshot_mark(struct snapshot *s, pid_t root, pid_t spared) {
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < s->n; i++) {
            struct descendants_row *r = &s->rows[i];
            if (!r->below && r->pid != root && r->pid != spared && is_below(s, r->parent, root))
                r->below = more = true;
        }
    }
}

int process_signal_descendants_but(pid_t root, pid_t spared, int signo) {
    struct snapshot s = {0};
    int reached = 0;
    snapshot_take(&s);
    snapshot_mark(&s, root, spared);
    for (size_t i = 0; i < s.n; i++)
        if (s.rows[i].below && !s.rows[i].zombie && kill(s.rows[i].pid, signo) == 0)
            reached++;
    free(s.rows);
    return reached;
}

int process_signal_descendants(pid_t root, int signo) {
    return process_signal_descendants_but(root, 0, signo);
}

size_t process_list_descendants(pid_t root, pid_t **ret) {
    struct snapshot s = {0};
    size_t n = 0;
    snapshot_take(&s);
    snapshot_mark(&s, root, 0);
    pid_t *pids = mem_array(pid_t, s.n);
    for (size_t i = 0; i < s.n; i++)
        if (s.rows[i].below && !s.rows[i].zombie)
            pids[n++] = s.rows[i].pid;
    free(s.rows);
    *ret = pids;
    return n;
}

/* ---- the end of them all ---- */

int process_adopt_orphans(void) {
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* Children only, as the kernel lists them in one file: a process that forks and ends, and whose
 * child does the same, has gone before all of /proc has been read. Where the kernel has no such
 * file the walks must do. */
static void kill_children(void) {
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    char *save = NULL;
    for (char *pid = strtok_r(text, " \n", &save); pid; pid = strtok_r(NULL, " \n", &save))
        kill((pid_t)atoi(pid), SIGKILL);
}

/* True: none is left. */
static bool reap_children(void) {
    pid_t pid;
    do
        pid = waitpid(-1, NULL, WNOHANG | __WALL);
    while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid < 0;
}

/* One walk through /proc for all that is there, then some looks at the children alone. */
static bool end_most(void) {
    enum { LOOKS = 64 };
    process_signal_descendants(getpid(), SIGKILL);
    for (int i = 0; i < LOOKS; i++) {
        if (reap_children())
            return true;
        kill_children();
    }
    return reap_children();
}

int process_end_descendants(int64_t timeout_ns) {
    int64_t until = clock_monotonic_ns() + timeout_ns;
    sigset_t child, before;
    int r = 0;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    while (!end_most()) {
        int64_t left = until - clock_monotonic_ns();
        struct timespec wait = {left / 1000000000, left % 1000000000};
        if (left <= 0 || (sigtimedwait(&child, NULL, &wait) < 0 && errno == EAGAIN)) {
            r = -ETIME;
            break;
        }
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}
