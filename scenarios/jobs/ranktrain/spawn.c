#include "scenarios/jobs/ranktrain/spawn.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTS = 16 /* again, of all ranks together */ };

static const int64_t moment_ns = INT64_C(2000000000); /* behind --grace, for the end itself */

struct spawn {
    int n, left;
    pid_t *pids; /* 0: has ended */
    pid_t own;
    char **argv; /* of the ranks */
    bool again;  /* who was killed is started once more, alone (--recover=in-process) */
    int starts;  /* that are left */
    int spare;   /* workers that may be lost (--backup-workers) */
    int status;  /* of the first that failed */
    bool asked, ending, forced;
    int64_t grace_ns;
    int64_t kill_ns; /* when whoever is left is killed */
    sigset_t old;
};

static void set(const char *name, int value) {
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* The arguments without --spawn N and --spawn=N. */
static char **arguments(char **argv) {
    size_t n = 0;
    while (argv[n])
        n++;
    char **ret = mem_array(char *, n + 1);
    for (n = 0; *argv; argv++) {
        if (strcmp(*argv, "--spawn") == 0 && argv[1])
            argv++;
        else if (strncmp(*argv, "--spawn=", 8) != 0)
            ret[n++] = *argv;
    }
    return ret;
}

/* In the child: never returns. */
static void become_rank(const struct spawn *s, int rank, pid_t parent, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    set("RANK", rank);
    set("LOCAL_RANK", rank);
    set("WORLD_SIZE", s->n);
    set("LOCAL_WORLD_SIZE", s->n);
    setenv("MASTER_ADDR", "localhost", 0);
    setenv("MASTER_PORT", "29500", 0);
    sigprocmask(SIG_SETMASK, &s->old, NULL);
    execv("/proc/self/exe", argv);
    fprintf(stderr, "ranktrain: rank %d: /proc/self/exe: %s\n", rank, strerror(errno));
    _exit(127);
}

static void tell_all(const struct spawn *s, int signo) {
    for (int i = 0; i < s->n; i++)
        if (s->pids[i] > 0)
            kill(s->pids[i], signo);
}

static void end_all(struct spawn *s) {
    if (s->ending)
        return;
    s->ending = true;
    s->kill_ns = deadline_in_ns(s->grace_ns + moment_ns);
    tell_all(s, SIGTERM);
}

/* Returns 0 or a -errno. */
static int start(struct spawn *s, int rank) {
    s->pids[rank] = fork();
    if (s->pids[rank] == 0)
        become_rank(s, rank, s->own, s->argv);
    if (s->pids[rank] < 0)
        return -errno;
    s->left++;
    return 0;
}

/* A rank that was killed, while its peers wait for it; one that fails by itself would fail again. */
static bool starts_again(struct spawn *s, int rank, int status) {
    if (!s->again || s->ending || !WIFSIGNALED(status) || s->starts == 0)
        return false;
    s->starts--;
    fprintf(stderr, "ranktrain: rank %d was killed by signal %d; it is started again\n", rank,
            WTERMSIG(status));
    return start(s, rank) == 0;
}

/* A server goes on without a worker that was killed, as long as there are others to spare. */
static bool is_spared(struct spawn *s, int rank, int status) {
    if (rank == 0 || s->ending || !WIFSIGNALED(status) || s->spare == 0)
        return false;
    s->spare--;
    fprintf(stderr, "ranktrain: rank %d was killed by signal %d; the others go on\n", rank,
            WTERMSIG(status));
    return true;
}

/* For its peers a rank that is killed may be gone before it is for its parent: what is ending because of one of them
 * has it as its cause all the same. */
static bool is_cause(const struct spawn *s, int status) {
    if (!s->ending)
        return status != 0;
    return WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM && !s->forced && s->status > 0 &&
           s->status < 128;
}

static void ended(struct spawn *s, int rank, int status) {
    s->left--;
    if (starts_again(s, rank, status) || is_spared(s, rank, status) || !is_cause(s, status))
        return;
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    s->status = code;
    fprintf(stderr, "ranktrain: rank %d %s %d; the others are ended\n", rank,
            WIFSIGNALED(status) ? "was killed by signal" : "failed with exit status",
            WIFSIGNALED(status) ? WTERMSIG(status) : code);
    end_all(s);
}

/* Whether a rank has ended: from then on its number may be another process's. */
static bool is_over(struct spawn *s, int rank, int *ret_status) {
    if (s->pids[rank] <= 0 || waitpid(s->pids[rank], ret_status, WNOHANG) != s->pids[rank])
        return false;
    s->pids[rank] = 0;
    return true;
}

/* Who was killed comes before those that failed because of it, however late they are looked at. */
static void reap(struct spawn *s) {
    int *status = mem_array(int, (size_t)s->n);
    bool *over = mem_array(bool, (size_t)s->n);
    for (int i = 0; i < s->n; i++)
        over[i] = is_over(s, i, &status[i]);
    for (int killed = 1; killed >= 0; killed--)
        for (int i = 0; i < s->n; i++)
            if (over[i] && WIFSIGNALED(status[i]) == (bool)killed)
                ended(s, i, status[i]);
    free(over);
    free(status);
}

static void wait_for_all(struct spawn *s, const sigset_t *set) {
    while (s->left > 0) {
        struct timespec t = {.tv_sec = 3600};
        if (s->ending && s->kill_ns)
            t = (struct timespec){.tv_sec = deadline_left_ms(s->kill_ns) / 1000 + 1};
        int signo = sigtimedwait(set, NULL, &t);
        if (signo == SIGTERM || signo == SIGINT) {
            s->asked = true;
            end_all(s);
        }
        if (signo < 0 && errno == EAGAIN && s->ending) {
            s->forced = true;
            tell_all(s, SIGKILL);
        }
        reap(s);
    }
}

int spawn_ranks(const struct ranktrain_options *o, char **argv, struct err *err) {
    struct spawn s = {.n = (int)o->spawn,
                      .own = getpid(),
                      .argv = arguments(argv),
                      .again = strcmp(o->recover, "in-process") == 0,
                      .grace_ns = o->grace_ns,
                      .starts = STARTS,
                      .spare = (int)o->backup_workers};
    sigset_t set;
    int r = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &s.old);
    s.pids = mem_array(pid_t, (size_t)s.n);
    for (int i = 0; i < s.n && r == 0; i++)
        if ((r = start(&s, i)) < 0)
            err_set(err, r, "start rank %d", i);
    if (r < 0)
        end_all(&s);
    wait_for_all(&s, &set);
    free(s.argv);
    free(s.pids);
    if (r < 0)
        return r;
    return s.asked ? -ECANCELED : s.status;
}
