#include "harness/host/own_sockets.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct held_socket {
    uint64_t inode;
    pid_t pid;
    int fd;
};

struct taking {
    struct own_sockets *ret;
    struct held_socket *held;
    size_t held_n;
    ino_t network; /* ours */
};

/* ---- who has which ---- */

static void add_held(void *arg, pid_t pid, int fd, uint64_t inode) {
    struct taking *t = arg;
    mem_push(t->held, t->held_n) = (struct held_socket){inode, pid, fd};
}

static int by_inode(const void *a, const void *b) {
    uint64_t i = ((const struct held_socket *)a)->inode, j = ((const struct held_socket *)b)->inode;
    return i < j ? -1 : i > j;
}

static void take_line(void *arg, const struct socket_line *s) {
    struct taking *t = arg;
    const struct held_socket key = {.inode = s->inode};
    const struct held_socket *h =
        t->held_n && s->inode ? bsearch(&key, t->held, t->held_n, sizeof(key), by_inode) : NULL;
    if (h)
        mem_push(t->ret->v, t->ret->n) = (struct own_socket){*s, h->pid, h->fd};
}

/* ---- what is not reached ---- */

static ino_t network_of(pid_t pid) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static bool has_rdma(pid_t pid) {
    char path[64], name[320], link[64];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    FILE_CLOSE_DIR DIR *d = opendir(path);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        ssize_t n = readlink(name, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = 0;
        found = str_starts(link, "/dev/infiniband/");
    }
    return found;
}

static bool hides_files(pid_t pid) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    FILE_CLOSE_DIR DIR *d = opendir(path);
    return !d && errno == EACCES;
}

static void note_missed(struct taking *t, pid_t pid, struct texts *missed) {
    char name[32];
    ino_t network = network_of(pid);
    const char *why = hides_files(pid)                   ? "does not show us its files"
                      : network && network != t->network ? "has a network of its own"
                      : has_rdma(pid)                    ? "has RDMA open, which is no TCP"
                                                         : NULL;
    if (why)
        texts_add(missed, "process %d (%s) %s", (int)pid, process_name(pid, name, sizeof(name)),
                  why);
}

/* ---- all of it ---- */

void own_sockets_take(struct own_sockets *ret, struct texts *missed) {
    struct taking t = {.ret = ret, .network = network_of(getpid())};
    pid_t *pids;
    size_t n = process_list_descendants(getpid(), &pids);
    *ret = (struct own_sockets){0};
    for (size_t i = 0; i < n; i++) {
        sockets_held(pids[i], add_held, &t);
        if (missed)
            note_missed(&t, pids[i], missed);
    }
    if (t.held_n)
        qsort(t.held, t.held_n, sizeof(*t.held), by_inode);
    sockets_each(take_line, &t);
    free(t.held);
    free(pids);
}

void own_sockets_fini(struct own_sockets *s) {
    free(s->v);
    *s = (struct own_sockets){0};
}
