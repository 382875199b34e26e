#include "harness/carrier/host_process.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* The kernel gives numbers below it on every host (PID_MAX_LIMIT). */
enum { NODE_SHIFT = 22 };

struct known_process {
    pid_t number, parent;
    uint64_t start;
    int end; /* readable when it has ended; -1: nobody watches it */
    bool ended, status_known;
    int status;
    struct clock_stamp ended_at;
    bool looked[2]; /* now, before */
    struct host_process_look looks[2];
};

static struct {
    struct known_process *v;
    size_t n;
} all;

pid_t host_process_number(int node, int64_t pid) {
    return (pid_t)((node + 1) << NODE_SHIFT | (pid & ((1 << NODE_SHIFT) - 1)));
}

bool host_process_is(pid_t number) {
    return number >= 1 << NODE_SHIFT;
}

pid_t host_process_pid(pid_t number) {
    return number & ((1 << NODE_SHIFT) - 1);
}

/* The newest come last, and are asked about most. */
static struct known_process *find(pid_t number) {
    for (size_t i = all.n; i-- > 0;)
        if (all.v[i].number == number)
            return &all.v[i];
    return NULL;
}

static void end(struct known_process *p, bool known, int status, const struct clock_stamp *at) {
    if (p->ended)
        return;
    p->ended = true;
    p->ended_at = *at;
    p->status_known = known;
    p->status = status;
    if (p->end >= 0)
        eventfd_write(p->end, 1);
}

/* A number that is used again is another process. */
static struct known_process *find_or_make(pid_t number, uint64_t start) {
    struct known_process *p = find(number);
    if (p && p->start == start)
        return p;
    if (p) {
        end(p, false, 0, &(struct clock_stamp){.t_ns = clock_monotonic_ns()});
        file_close(&p->end);
    } else {
        p = &mem_push(all.v, all.n);
    }
    *p = (struct known_process){.number = number, .start = start, .end = -1};
    return p;
}

int host_process_watch(pid_t number, uint64_t start) {
    struct known_process *p = find_or_make(number, start);
    if (p->end < 0)
        p->end = eventfd(p->ended, EFD_CLOEXEC | EFD_NONBLOCK);
    int copy = p->end < 0 ? -1 : fcntl(p->end, F_DUPFD_CLOEXEC, 3);
    return copy < 0 ? -errno : copy;
}

void host_process_note(pid_t number, uint64_t start, pid_t parent) {
    find_or_make(number, start)->parent = parent;
}

void host_process_ended(pid_t number, bool known, int status, const struct clock_stamp *at) {
    struct known_process *p = find(number);
    if (p)
        end(p, known, status, at);
}

void host_process_node_ended(int node, int64_t t_ns) {
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].number >> NODE_SHIFT == node + 1)
            end(&all.v[i], false, 0, &(struct clock_stamp){.t_ns = t_ns});
}

bool host_process_end(pid_t number, struct clock_stamp *ret) {
    const struct known_process *p = find(number);
    if (p && p->ended)
        *ret = p->ended_at;
    return p && p->ended;
}

void host_process_forget_all(void) {
    for (size_t i = 0; i < all.n; i++)
        file_close(&all.v[i].end);
    free(all.v);
    all.v = NULL;
    all.n = 0;
}

uint64_t host_process_start(pid_t number) {
    const struct known_process *p = find(number);
    return p ? p->start : 0;
}

pid_t host_process_parent(pid_t number) {
    const struct known_process *p = find(number);
    return p ? p->parent : 0;
}

int host_process_status(pid_t number, int *ret_status) {
    const struct known_process *p = find(number);
    if (!p)
        return -ESRCH;
    if (!p->ended)
        return -EAGAIN;
    if (!p->status_known)
        return -ENODATA;
    *ret_status = p->status;
    return 0;
}

void host_process_seen(pid_t number, bool before, const struct host_process_look *look) {
    struct known_process *p = find(number);
    if (!p)
        return;
    p->looked[before] = true;
    p->looks[before] = *look;
}

bool host_process_look_at(pid_t number, bool before, struct host_process_look *ret) {
    const struct known_process *p = find(number);
    if (!p || !p->looked[before])
        return false;
    *ret = p->looks[before];
    return true;
}
