#include "harness/sim/seeds.h"

#include "base/mem.h"
#include "base/sys/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef RANKQUAKE_COVERAGE
void __gcov_dump(void);
#endif

enum { JOBS_MAX = 64, TELL_NS = 200000000 };

struct seeds_worker {
    pid_t pid;
    int fd; /* its tallies come here, one after another, each of all it has done; -1: ended */
    struct seeds_tally tally, coming;
    size_t got; /* bytes of coming */
};

/* ---- in a process of its own ---- */

static void note_failed(struct seeds_tally *t, uint64_t seed, const struct sim_result *r) {
    t->violated++;
    if (t->failed_n == SEEDS_FAILED_MAX)
        return;
    t->failed[t->failed_n].seed = seed;
    t->failed[t->failed_n].at_ns = r->ended_ns;
    snprintf(t->failed[t->failed_n].text, sizeof(t->failed[0].text), "%.255s", r->text);
    t->failed_n++;
}

static int64_t least(bool first, int64_t before, int64_t now) {
    return first || now < before ? now : before;
}

static void note_least(struct seeds_tally *t, int64_t ns, int64_t rounds, int64_t faults) {
    bool first = !t->seeds;
    t->least_ns = least(first, t->least_ns, ns);
    t->least_rounds = least(first, t->least_rounds, rounds);
    t->least_faults = least(first, t->least_faults, faults);
}

static void note(struct seeds_tally *t, uint64_t seed, const struct sim_result *r) {
    note_least(t, r->ended_ns, r->rounds, r->faults);
    t->counting += r->ended_ns >= SEEDS_MINUTE_S * INT64_C(1000000000) && r->rounds >= SEEDS_ROUNDS;
    t->seeds++;
    t->steps += (uint64_t)r->steps;
    t->rounds += (uint64_t)r->rounds;
    t->faults += (uint64_t)r->faults;
    t->transactions += (uint64_t)r->transactions;
    t->succeeded += r->outcome == SIM_SUCCEEDED && !r->violated;
    t->failed_jobs += r->outcome == SIM_FAILED && !r->violated;
    t->virtual_ns += r->ended_ns;
    for (int i = 0; i < SIM_MARKS_N; i++)
        t->marks[i] += r->marks[i];
    for (int i = 0; i < INVARIANTS_N; i++)
        t->risked[i] += r->risked >> i & 1;
    for (int i = 0; i < DECISION_WORDS; i++)
        for (uint64_t left = r->decisions[i]; left; left &= left - 1)
            t->decisions[i * 64 + __builtin_ctzll(left)]++;
    if (r->violated)
        note_failed(t, seed, r);
}

static bool tell(int fd, const struct seeds_tally *t) {
    const char *p = (const char *)t;
    for (size_t left = sizeof(*t); left;) {
        ssize_t n = write(fd, p, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false; /* nobody listens any more */
        p += n;
        left -= (size_t)n;
    }
    return true;
}

static void work(const struct seeds_spec *s, int place, int fd) {
    struct seeds_tally t = {0};
    struct sim_config config = s->config;
    int64_t told_ns = clock_monotonic_ns();
    for (uint64_t seed = s->first + (uint64_t)place; seed <= s->last && seed >= s->first;
         seed += (uint64_t)s->jobs) {
        struct sim_result r;
        config.seed = seed;
        sim_run(&config, &r);
        note(&t, seed, &r);
        if (clock_monotonic_ns() - told_ns < TELL_NS)
            continue;
        told_ns = clock_monotonic_ns();
        if (!tell(fd, &t))
            return;
    }
    tell(fd, &t);
}

/* ---- in the caller's ---- */

/* before: the signals that are blocked outside of seeds_run. */
static int start(const struct seeds_spec *s, int place, const sigset_t *before,
                 struct seeds_worker *w, struct err *err) {
    int ends[2];
    pid_t parent = getpid();
    if (pipe(ends) < 0)
        return err_set(err, -errno, "make a pipe");
    w->pid = fork();
    if (w->pid == 0) {
        signal(SIGPIPE, SIG_IGN);
        signal(SIGINT, SIG_IGN); /* the terminal's; the end of the pipe is told too */
        signal(SIGTERM, SIG_DFL);
        sigprocmask(SIG_SETMASK, before, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        if (getppid() == parent)
            work(s, place, ends[1]);
        fflush(stdout); /* the events of a seed that is shown */
#ifdef RANKQUAKE_COVERAGE
        __gcov_dump(); /* what _exit does not do */
#endif
        _exit(0);
    }
    close(ends[1]);
    w->fd = ends[0];
    if (w->pid < 0) {
        close(w->fd);
        w->fd = -1;
        return err_set(err, -errno, "start a process");
    }
    return 0;
}

static void take(struct seeds_worker *w) {
    ssize_t n = read(w->fd, (char *)&w->coming + w->got, sizeof(w->coming) - w->got);
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        close(w->fd);
        w->fd = -1;
        return;
    }
    w->got += (size_t)n;
    if (w->got < sizeof(w->coming))
        return;
    w->tally = w->coming;
    w->got = 0;
}

static void add_failed(struct seeds_tally *ret, const struct seeds_tally *t) {
    for (int i = 0; i < t->failed_n; i++) {
        int at = ret->failed_n < SEEDS_FAILED_MAX ? ret->failed_n++ : SEEDS_FAILED_MAX - 1;
        if (at == SEEDS_FAILED_MAX - 1 && ret->failed[at].seed &&
            ret->failed[at].seed < t->failed[i].seed)
            continue;
        for (; at && ret->failed[at - 1].seed > t->failed[i].seed; at--)
            ret->failed[at] = ret->failed[at - 1];
        ret->failed[at] = t->failed[i];
    }
}

static void sum(const struct seeds_worker *workers, int n, struct seeds_tally *ret) {
    memset(ret, 0, sizeof(*ret));
    for (int i = 0; i < n; i++) {
        const struct seeds_tally *t = &workers[i].tally;
        if (t->seeds)
            note_least(ret, t->least_ns, t->least_rounds, t->least_faults);
        ret->counting += t->counting;
        ret->seeds += t->seeds;
        ret->steps += t->steps;
        ret->rounds += t->rounds;
        ret->faults += t->faults;
        ret->transactions += t->transactions;
        ret->succeeded += t->succeeded;
        ret->failed_jobs += t->failed_jobs;
        ret->violated += t->violated;
        ret->virtual_ns += t->virtual_ns;
        for (int k = 0; k < SIM_MARKS_N; k++)
            ret->marks[k] += t->marks[k];
        for (int k = 0; k < INVARIANTS_N; k++)
            ret->risked[k] += t->risked[k];
        for (int k = 0; k < DECISIONS_N; k++)
            ret->decisions[k] += t->decisions[k];
        add_failed(ret, t);
    }
}

/* A signal comes while it waits, or it would wait on with nobody told: a seed may take minutes. */
static int listen_to(const struct seeds_spec *s, const sigset_t *before,
                     struct seeds_worker *workers, int n, struct seeds_tally *ret) {
    for (;;) {
        struct pollfd p[JOBS_MAX];
        int live = 0;
        for (int i = 0; i < n; i++) {
            p[i] = (struct pollfd){.fd = workers[i].fd, .events = POLLIN};
            live += workers[i].fd >= 0;
        }
        if (!live)
            return 0;
        int ready = ppoll(p, (nfds_t)n, NULL, before);
        for (int i = 0; i < n && ready > 0; i++)
            if (p[i].revents)
                take(&workers[i]);
        sum(workers, n, ret);
        if (s->seen && !s->seen(s->arg, ret))
            return -ECANCELED;
    }
}

static int end(struct seeds_worker *w, bool stopped, struct err *err) {
    int status;
    if (w->fd >= 0)
        close(w->fd);
    if (w->pid <= 0)
        return 0;
    if (stopped)
        kill(w->pid, SIGKILL);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (stopped || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return 0;
    bool killed = WIFSIGNALED(status);
    return err_say(err, -EIO, "the process that simulates (pid %d) ended with %s %d", (int)w->pid,
                   killed ? "signal" : "exit code",
                   killed ? WTERMSIG(status) : WEXITSTATUS(status));
}

int seeds_run(const struct seeds_spec *given, struct seeds_tally *ret, struct err *err) {
    struct seeds_spec s = *given;
    struct seeds_worker *workers = mem_array(struct seeds_worker, JOBS_MAX);
    int r = 0, started = 0;
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigprocmask(SIG_BLOCK, &stops, &before);
    s.jobs = s.jobs < 1 ? 1 : s.jobs > JOBS_MAX ? JOBS_MAX : s.jobs;
    memset(ret, 0, sizeof(*ret));
    for (; started < s.jobs && r == 0; started++)
        r = start(&s, started, &before, &workers[started], err);
    if (r == 0)
        r = listen_to(&s, &before, workers, started, ret);
    for (int i = 0; i < started; i++) {
        int ended = end(&workers[i], r < 0, r < 0 ? NULL : err);
        r = r < 0 ? r : ended;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(workers);
    return r;
}
