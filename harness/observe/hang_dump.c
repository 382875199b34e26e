#include "harness/observe/hang_dump.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "base/sys/process.h"
#include "base/sys/signals.h"
#include "harness/carrier/host_process.h"
#include "harness/carrier/process_dump.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAST_BYTES = 64 << 10, LAST_LINES = 60 };

static void write_text(const struct folder *dir, const char *name, const struct buf *text) {
    folder_write(dir, name, text->data, text->len, NULL);
}

/* ---- processes ---- */

static bool same_space(pid_t pid, const char *space) {
    char path[64], here[64];
    snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    ssize_t n = readlink(path, here, sizeof(here) - 1);
    if (n <= 0)
        return false;
    here[n] = '\0';
    return strcmp(here, space) == 0;
}

/* Of a process, as a part of a file's name. */
static void name_file(char *name) {
    for (char *c = name; *c; c++)
        if (*c == '/' || (unsigned char)*c <= ' ')
            *c = '-';
}

/* text: what is known of it. */
static void write_known(const struct folder *dir, pid_t pid, const char *name,
                        const struct buf *text, const struct rounds *rs) {
    const struct worker *w = rounds_worker(rs, pid);
    int there = (int)(host_process_is(pid) ? host_process_pid(pid) : pid);
    char comm[64], file[128];
    BUF_FINI struct buf whole = {0};
    str_copy(comm, sizeof(comm), name);
    name_file(comm);
    if (w && !w->exit_ns) {
        buf_printf(&whole, "rank %d of round %d, last step seen %lld\n", w->rank, w->round,
                   (long long)w->last_step);
        snprintf(file, sizeof(file), "rank-%d.txt", w->rank);
    } else {
        snprintf(file, sizeof(file), "%d-%s.txt", there, comm);
    }
    buf_printf(&whole, "process %d, %s\n", there, comm);
    buf_put(&whole, buf_str(text), text->len);
    write_text(dir, file, &whole);
}

static void write_process(const struct folder *dir, pid_t pid, const struct hang_dump_node *node,
                          const struct rounds *rs) {
    char name[64] = "node";
    BUF_FINI struct buf text = {0};
    if (pid != node->first)
        process_name(pid, name, sizeof(name));
    process_dump(pid, &text);
    write_known(dir, pid, name, &text, rs);
}

/* Nodes that are processes of this host: all that descends from the first. */
static void write_tree(const struct folder *dir, const struct hang_dump_node *node,
                       const struct rounds *rs) {
    pid_t *pids;
    size_t n = process_list_descendants(node->first, &pids);
    write_process(dir, node->first, node, rs);
    for (size_t i = 0; i < n; i++)
        write_process(dir, pids[i], node, rs);
    free(pids);
}

/* The node's processes are those of the pid namespace of its first one. */
static void write_processes(const struct folder *dir, const struct hang_dump_node *node,
                            const struct rounds *rs) {
    char path[64], space[64];
    if (namespace_is_shared(node->first, "pid")) {
        write_tree(dir, node, rs);
        return;
    }
    snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)node->first);
    ssize_t n = readlink(path, space, sizeof(space) - 1);
    if (n <= 0)
        return;
    space[n] = '\0';
    pid_t *all;
    size_t all_n = process_list(&all);
    for (size_t i = 0; i < all_n; i++)
        if (same_space(all[i], space))
            write_process(dir, all[i], node, rs);
    free(all);
}

/* ---- the node ---- */

static int only_workers(const struct dirent *d) {
    return str_starts(d->d_name, "rank-") && str_ends(d->d_name, ".log");
}

/* Of the node's program, and of its workers where they have files of their own beside it. */
static void write_last_lines(const struct folder *run, const struct folder *dir, const char *log) {
    BUF_FINI struct buf last = {0};
    TEXTS_FINI struct texts names = {0};
    const char *slash = strrchr(log, '/');
    char folder[4096], path[4400];
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - log) : 0, log);
    (void)folder_read_last(run, log, LAST_LINES, LAST_BYTES, &last, NULL);
    if (slash)
        folder_list(run, folder, only_workers, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names.v[i]);
        buf_printf(&last, "%s--- %s\n", last.len ? "\n" : "", names.v[i]);
        (void)folder_read_last(run, path, LAST_LINES, LAST_BYTES, &last, NULL);
    }
    if (last.len)
        write_text(dir, "last-lines.txt", &last);
}

static void write_store(const struct folder *dir, const struct hang_dump_node *node) {
    BUF_FINI struct buf text = {0};
    struct process first = PROCESS_NONE;
    if (!node->far && process_open(node->first, &first, NULL) != 0)
        return;
    if (node->token)
        putenv((char *)(uintptr_t)node->token);
    /* Then the question is not cut off with the node. */
    bool here = node->far || namespace_is_shared(node->first, "pid");
    buf_printf(&text, "the store at %s:%d, as %s sees it\n", node->store, node->store_port,
               here ? "this host" : node->name);
    if (!here && setns(first.pidfd, CLONE_NEWNET) != 0)
        buf_printf(&text, "cannot look from the node's network: %s\n", strerror(errno));
    else
        hang_dump_store(node->store, node->store_port, &text);
    process_close(&first);
    write_text(dir, "store.txt", &text);
}

static int enter(const struct folder *run, const char *node, struct folder *ret) {
    char name[300];
    snprintf(name, sizeof(name), "hang/%s", node);
    int r = folder_make(run, "hang", 0777, NULL);
    r = r ? r : folder_make(run, name, 0777, NULL);
    return r ? r : folder_enter(ret, run, name, NULL);
}

static void look_at_node(const struct folder *run, const struct hang_dump_node *node,
                         const struct rounds *rs) {
    struct folder own;
    if (enter(run, node->name, &own) != 0)
        _exit(1);
    write_last_lines(run, &own, node->log);
    if (!node->far)
        write_processes(&own, node, rs);
    if (node->store)
        write_store(&own, node);
    _exit(0);
}

void hang_dump_put(const struct folder *run, const char *node, pid_t pid, const char *name,
                   const struct buf *text, const struct rounds *rs) {
    struct folder own;
    if (enter(run, node, &own) != 0)
        return;
    write_known(&own, pid, name, text, rs);
    folder_close(&own);
}

static pid_t begin(const struct folder *run, const struct hang_dump_node *node,
                   const struct rounds *rs, struct process *ret) {
    *ret = PROCESS_NONE;
    pid_t pid = fork();
    if (pid == 0) {
        namespace_die_with_parent();
        signal_reset();
        look_at_node(run, node, rs);
    }
    if (pid > 0 && process_open(pid, ret, NULL) != 0)
        *ret = (struct process){pid, -1};
    return pid;
}

/* A killed one has ended by then, if it ends at all. */
static const int64_t KILLED_NS = 1000000000;

int hang_dump_make(const struct folder *run, const struct hang_dump_node *nodes, size_t n,
                   const struct rounds *rs, int64_t budget_ns, struct err *err) {
    int64_t end = clock_monotonic_ns() + budget_ns;
    int late = 0, r = folder_make(run, "hang", 0777, err);
    if (r)
        return r;
    struct process *children = mem_array(struct process, n);
    for (size_t i = 0; i < n; i++)
        begin(run, &nodes[i], rs, &children[i]);
    for (size_t i = 0; i < n; i++) {
        int64_t left = end - clock_monotonic_ns();
        if (children[i].pid && process_reap(&children[i], left > 0 ? left : 0, NULL) == -ETIME) {
            late++;
            process_signal(&children[i], SIGKILL);
            process_reap(&children[i], KILLED_NS, NULL); /* one that cannot end stays a child */
        }
        process_close(&children[i]);
    }
    free(children);
    return late
               ? err_say(err, -ETIME, "%d of %d nodes could not be looked at in time", late, (int)n)
               : 0;
}
