/* What the kernel lets a process do to others, and learn about them. */
#include "harness/doctor/host_question.h"

#include "base/buf.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "base/sys/proc_events.h"
#include "base/sys/process.h"
#include "faults/need.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static bool look_kernel(struct question_result *r) {
    struct utsname u;
    int major = 0, minor = 0;
    uname(&u);
    sscanf(u.release, "%d.%d", &major, &minor);
    if (major > 5 || (major == 5 && minor >= 10))
        return question_works(r, "Linux %.40s on %.40s", u.release, u.machine);
    return question_lacks(r, "install a kernel of 5.10 or newer", "Linux %.40s", u.release);
}

const struct host_question host_question_kernel = {
    .name = "kernel",
    .gives = "everything: pidfds and namespaces as Linux 5.10 has them",
    .demo = true,
    .look = look_kernel,
};

/* ---- how processes end ---- */

static bool pidfd_tells(void) {
    int status = 0;
    struct process p;
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    if (pid < 0 || process_open(pid, &p, NULL) != 0)
        return false;
    waitpid(pid, NULL, 0);
    bool told = process_exit_info(p.pidfd, &status) == 0 && WEXITSTATUS(status) == 7;
    process_close(&p);
    return told;
}

static bool look_exit_status(struct question_result *r) {
    struct err err = {0};
    if (pidfd_tells())
        return question_works(r, "pidfds tell how a process ended (Linux 6.15)");
    int fd = proc_events_open(&err);
    if (fd >= 0)
        question_works(r, "the kernel's process events tell how a process ended");
    else
        question_lacks(r, "run as root, or on Linux 6.15 or newer",
                       "neither pidfds nor the kernel's process events (%.120s)", err.msg);
    proc_events_close(fd);
    return r->status == QUESTION_WORKS;
}

const struct host_question host_question_exit_status = {
    .name = "exit_status",
    .gives = "knowing for certain how each worker ended; without it some ends stay unknown",
    .look = look_exit_status,
};

/* ---- ptrace ---- */

static pid_t pausing_child(void) {
    pid_t pid = fork();
    if (pid == 0) {
        namespace_die_with_parent();
        pause();
        _exit(0);
    }
    return pid;
}

/* As the node helper does it: of a process that is not its child, in the same user namespace. */
static int seize_sibling(pid_t pid) {
    pid_t tracer = fork();
    int status;
    if (tracer == 0)
        _exit(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0 ? 0 : errno);
    if (tracer < 0 || waitpid(tracer, &status, 0) != tracer || !WIFEXITED(status))
        return EIO;
    return WEXITSTATUS(status);
}

static bool look_ptrace(struct question_result *r) {
    namespace_enter(NULL);
    pid_t pid = pausing_child();
    int code = pid > 0 ? seize_sibling(pid) : EAGAIN;
    long scope = question_sysctl("kernel/yama/ptrace_scope");
    char yama[80] = "";
    if (scope >= 0)
        snprintf(yama, sizeof(yama), " (kernel.yama.ptrace_scope %ld)", scope);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    if (code == 0)
        return question_works(r, "a process can be seized%s", yama);
    return question_lacks(r,
                          "sysctl kernel.yama.ptrace_scope=1; in a container --cap-add SYS_PTRACE",
                          "PTRACE_SEIZE: %s%s", strerror(code), yama);
}

const struct host_question host_question_ptrace = {
    .name = "ptrace",
    .gives = "making a worker end with a code of one's choice",
    .need = FAULT_NEEDS_TRACE,
    .look = look_ptrace,
};

/* ---- others ---- */

static bool look_kernel_stack(struct question_result *r) {
    BUF_FINI struct buf text = {0};
    struct err err = {0};
    if (file_read("/proc/self/stack", 1 << 16, &text, &err) == 0)
        question_works(r, "the kernel stack of a process can be read");
    else
        question_lacks(r, "run as root", "%.200s", err.msg);
    return r->status == QUESTION_WORKS;
}

const struct host_question host_question_kernel_stack = {
    .name = "kernel_stack",
    .gives = "kernel stacks in hang/; wait channel, sockets and files are there without it",
    .look = look_kernel_stack,
};

/* As a run asks before it begins. */
static bool look_seccomp(struct question_result *r) {
    struct err err = {0};
    if (fault_needs_check_namespaces(FAULT_NEEDS_CALLS, &err) == 0)
        return question_works(r, "a child was watched by a filter with a listener");
    return question_lacks(r, "in a container, --security-opt seccomp=unconfined", "%.200s",
                          err.msg);
}

const struct host_question host_question_seccomp = {
    .name = "seccomp",
    .gives = "system calls of a job that fail or wait: faults of the family disk",
    .need = FAULT_NEEDS_CALLS,
    .look = look_seccomp,
};

static bool look_priority(struct question_result *r) {
    errno = 0;
    if (setpriority(PRIO_PROCESS, 0, -1) == 0)
        return question_works(r, "agents, store and wire go before the job's computing");
    return question_lacks(r,
                          "run as root, or allow a nice value of -10 in /etc/security/limits.conf",
                          "a process cannot be given priority: %s", strerror(errno));
}

const struct host_question host_question_priority = {
    .name = "priority",
    .gives = "steady beats on a busy host; without it rdzv_conf profile: fast may see false alarms",
    .look = look_priority,
};
