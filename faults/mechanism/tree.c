#include "faults/mechanism/tree.h"

#include "base/mem.h"
#include "base/sys/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

/* ---- each of them ---- */

/* A process that was held before a second look found its number below root is that process. */
static size_t hold_all(pid_t root, const pid_t *done, size_t done_n, struct process **ret) {
    pid_t *pids, *again;
    size_t n = process_list_descendants(root, &pids), held = 0, again_n;
    struct process *all = mem_array(struct process, n + 1);
    for (size_t i = 0; i < n; i++)
        if (!process_is_among(pids[i], done, done_n) &&
            process_open(pids[i], &all[held], NULL) == 0)
            held++;
    again_n = held ? process_list_descendants(root, &again) : 0;
    size_t kept = 0;
    for (size_t i = 0; i < held; i++) {
        if (process_is_among(all[i].pid, again, again_n))
            all[kept++] = all[i];
        else
            process_close(&all[i]);
    }
    if (held)
        free(again);
    free(pids);
    *ret = all;
    return kept;
}

/* Until nobody new is found, at most `turns` times. Returns how many it was done to. */
static size_t for_all(pid_t root, int turns, int (*fn)(const struct process *p, void *arg),
                      void *arg) {
    pid_t *done = NULL;
    size_t done_n = 0, reached = 0;
    for (bool fresh = true; fresh && turns--;) {
        struct process *all;
        size_t n = hold_all(root, done, done_n, &all);
        fresh = n > 0;
        for (size_t i = 0; i < n; i++) {
            reached += fn(&all[i], arg) == 0;
            mem_push(done, done_n) = all[i].pid;
            process_close(&all[i]);
        }
        free(all);
    }
    free(done);
    return reached;
}

/* ---- signals ---- */

enum { TURNS_MAX = 1000 };

static int send_one(const struct process *p, void *arg) {
    return process_signal(p, *(const int *)arg);
}

int tree_signal(pid_t root, int signo) {
    size_t n = for_all(root, TURNS_MAX, send_one, &signo);
    return n ? (int)n : -ESRCH;
}

static int begin(struct keeper *k, struct err *err) {
    pid_t root = keeper_whom(k)->pid;
    int r = tree_signal(root, SIGSTOP);
    return r < 0 ? err_say(err, r, "nothing runs below process %d", (int)root) : 0;
}

static void go_on(struct keeper *k) {
    const struct keeper_of *of = keeper_whom(k);
    while (!keeper_wait(k, of->stop_ns)) {
        tree_signal(of->pid, SIGCONT);
        if (keeper_wait(k, of->run_ns))
            break;
        tree_signal(of->pid, SIGSTOP);
    }
}

static void end(struct keeper *k) {
    tree_signal(keeper_whom(k)->pid, SIGCONT);
}

const struct keeper_work keeper_duty_tree = {.begin = begin, .go_on = go_on, .end = end};

/* ---- limits ---- */

enum { LIMITED_MAX = 64 };

/* What the first of them had: all of a node begin with the same. */
static struct limited {
    pid_t root; /* 0: free */
    int resource;
    struct rlimit before;
} limited[LIMITED_MAX];

static struct limited *find(pid_t root, int resource) {
    for (size_t i = 0; i < LIMITED_MAX; i++)
        if (limited[i].root == root && (!root || limited[i].resource == resource))
            return &limited[i];
    return NULL;
}

struct lowering {
    struct limited *l;
    int64_t (*to)(pid_t pid, void *arg);
    void *arg;
};

static int lower_one(const struct process *p, void *arg) {
    struct lowering *w = arg;
    struct rlimit now;
    int64_t to = w->to(p->pid, w->arg);
    __rlimit_resource_t resource = (__rlimit_resource_t)w->l->resource;
    if (to < 0 || prlimit(p->pid, resource, NULL, &now) != 0)
        return -ESRCH;
    if (!w->l->root)
        w->l->before = now;
    w->l->root = -1;
    now.rlim_cur = (rlim_t)to < now.rlim_cur ? (rlim_t)to : now.rlim_cur;
    return prlimit(p->pid, resource, &now, NULL) == 0 ? 0 : -errno;
}

int tree_limit(pid_t root, int resource, int64_t (*to)(pid_t pid, void *arg), void *arg,
               struct err *err) {
    if (find(root, resource))
        return err_say(err, -EBUSY, "what is below process %d has such a limit already", (int)root);
    struct lowering w = {.l = find(0, 0), .to = to, .arg = arg};
    if (!w.l)
        return err_say(err, -ENOSPC, "%d such limits are in force, and no more can be",
                       LIMITED_MAX);
    w.l->resource = resource;
    size_t n = for_all(root, TURNS_MAX, lower_one, &w);
    w.l->root = n ? root : 0;
    return n ? 0 : err_say(err, -ESRCH, "nothing runs below process %d", (int)root);
}

static int raise_one(const struct process *p, void *arg) {
    const struct limited *l = arg;
    struct rlimit now;
    __rlimit_resource_t resource = (__rlimit_resource_t)l->resource;
    if (prlimit(p->pid, resource, NULL, &now) != 0)
        return -ESRCH;
    now.rlim_cur = l->before.rlim_cur < now.rlim_max ? l->before.rlim_cur : now.rlim_max;
    return prlimit(p->pid, resource, &now, NULL) == 0 ? 0 : -errno;
}

void tree_unlimit(pid_t root, int resource) {
    struct limited *l = root > 0 ? find(root, resource) : NULL; /* 0: what is free */
    if (!l)
        return;
    for_all(root, TURNS_MAX, raise_one, l);
    l->root = 0;
}
