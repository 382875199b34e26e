#include "faults/need.h"

#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "base/sys/process.h"
#include "faults/mechanism/call_watch.h"
#include "faults/mechanism/clock_page.h"
#include "faults/mechanism/disk/disk.h"
#include "faults/mechanism/seize.h"
#include "faults/mechanism/socket_cut.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whoever injects is an ancestor of the process it makes exit, here as in a node. */
static int try_seize(struct err *err) {
    struct err why = {0};
    pid_t pid = process_fork_idle();
    if (pid < 0)
        return err_set(err, -errno, "fork");
    int r = seize_exit(pid, 0, &why);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (r == 0)
        return 0;
    BUF_FINI struct buf scope = {0};
    int yama = file_read("/proc/sys/kernel/yama/ptrace_scope", 64, &scope, NULL) == 0
                   ? atoi(buf_str(&scope))
                   : 0;
    return err_say(err, -ENOTSUP,
                   "processes cannot be traced here (%s; kernel.yama.ptrace_scope is %d): set that "
                   "to 1 or less, or run as root; in a container, start it with --cap-add "
                   "SYS_PTRACE or --security-opt seccomp=unconfined",
                   why.msg, yama);
}

/* It lies beside us, wherever we lie. */
static int check_preload(struct err *err) {
    char folder[4000], path[4096];
    snprintf(path, sizeof(path), "%s/" CLOCK_PRELOAD, file_own_folder(folder, sizeof(folder)));
    if (access(path, R_OK) == 0)
        return 0;
    return err_say(err, -ENOTSUP, "%s is missing: type make, or make install", path);
}

const char *const fault_scheduler_programs[] = {"slurmctld", "slurmd", "srun", "munged", NULL};

static int no_scheduler(struct err *err) {
    return err_say(err, -ENOTSUP,
                   "no scheduler has started the job; it comes with cluster: {scheduler: slurm}");
}

int fault_needs_check_namespaces(unsigned needs, struct err *err) {
    if (needs & FAULT_NEEDS_SCHEDULER)
        return no_scheduler(err);
    int r = needs & FAULT_NEEDS_PRELOAD ? check_preload(err) : 0;
    r = r == 0 && needs & FAULT_NEEDS_DISK ? disk_check(err) : r;
    r = r == 0 && needs & FAULT_NEEDS_CALLS ? call_watch_check(err) : r;
    return r == 0 && needs & FAULT_NEEDS_UPTIME ? namespace_check_uptime(err) : r;
}

int fault_needs_check(unsigned needs, struct err *err) {
    if (needs & FAULT_NEEDS_SCHEDULER)
        return no_scheduler(err);
    if (needs & FAULT_NEEDS_PRELOAD && check_preload(err) != 0)
        return -ENOTSUP;
    if (needs & FAULT_NEEDS_UPTIME)
        return err_say(err, -ENOTSUP,
                       "nodes that are processes of this host have its uptime; an own one comes "
                       "with nodes in namespaces");
    if (needs & FAULT_NEEDS_NAMES)
        return err_say(err, -ENOTSUP,
                       "nodes that are processes of this host ask its own name server; one on the "
                       "wire comes with nodes in namespaces");
    if (needs & FAULT_NEEDS_WIRE)
        return err_say(err, -ENOTSUP,
                       "there is no wire on which frames could be held back; it comes with nodes "
                       "in namespaces");
    if (needs & FAULT_NEEDS_DISK && !namespace_needs_no_user())
        return err_say(err, -ENOTSUP,
                       "an ordinary user's nodes that are processes have no disk of ours; it comes "
                       "with nodes in namespaces, or as root");
    int r = needs & FAULT_NEEDS_SILENCE ? socket_cut_check(err) : 0;
    r = r == 0 && needs & FAULT_NEEDS_DISK ? disk_check(err) : r;
    if (r == 0 && needs & (FAULT_NEEDS_SILENCE | FAULT_NEEDS_CALLS))
        r = call_watch_check(err);
    return r == 0 && needs & FAULT_NEEDS_TRACE ? try_seize(err) : r;
}

const char *fault_needs_text(unsigned needs) {
    if (needs & FAULT_NEEDS_SCHEDULER)
        return "a scheduler in the nodes (cluster.scheduler), and so namespaces";
    if (needs & FAULT_NEEDS_NAMES)
        return "a name server on the wire, and so nodes in namespaces";
    if (needs & FAULT_NEEDS_WIRE)
        return "the wire, and so nodes in namespaces";
    if (needs & FAULT_NEEDS_UPTIME)
        return "a time namespace, and so nodes in namespaces";
    if (needs & FAULT_NEEDS_DISK)
        return "/dev/fuse, and without root nodes in namespaces";
    if (needs & FAULT_NEEDS_CALLS)
        return "seccomp with a listener";
    if (needs & FAULT_NEEDS_PRELOAD)
        return "programs that ask the C library for the time";
    static const char *const text[] = {
        "",
        "the wire, or without namespaces a cut at the sockets",
        "ptrace",
        "ptrace, and the wire or a cut at the sockets",
    };
    return text[needs & (FAULT_NEEDS_SILENCE | FAULT_NEEDS_TRACE)];
}
