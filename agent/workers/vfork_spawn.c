#include "agent/workers/vfork_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In the child no sanitizer may look on: it keeps what it knows in the thread-local memory that is
 * the guard's. The one for threads would not be silent even so: there the child is a fork. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined", "thread")))
#ifdef __SANITIZE_THREAD__
enum { SHARED = 0 };
#else
enum { SHARED = CLONE_VM };
#endif

/* ---- in the child ---- */

/* A system call that leaves errno alone; returns -errno. Its fifth argument is 0: prctl(2) looks at
 * all of them. */
IN_CHILD static inline long call(long n, long a, long b, long c, long d) {
#if defined(__x86_64__)
    long r;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return r;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#else
#error "x86-64 and arm64 only: how is a system call made here?"
#endif
}

/* Everything above stderr goes but report and keep. */
IN_CHILD static void close_others(const struct vfork_spawn *t) {
    long low = 3, kept[2] = {t->report, t->keep};
    if (kept[1] < kept[0]) {
        kept[0] = t->keep;
        kept[1] = t->report;
    }
    for (int i = 0; i < 2; i++) {
        if (kept[i] > low)
            call(SYS_close_range, low, kept[i] - 1, 0, 0);
        if (kept[i] >= low)
            low = kept[i] + 1;
    }
    call(SYS_close_range, low, (long)~0U, 0, 0);
}

/* What the guard catches or ignores and what it blocks is nobody else's business. The kernel's
 * struct sigaction is four words on both architectures: all zero is SIG_DFL. */
IN_CHILD static void reset_signals(void) {
    static const long plain[4];
    static const uint64_t none;
    call(SYS_rt_sigaction, SIGPIPE, (long)plain, 0, sizeof(none));
    call(SYS_rt_sigaction, SIGXFSZ, (long)plain, 0, sizeof(none));
    call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof(none));
}

/* A disk that hangs hangs the child alone. */
IN_CHILD static long open_outputs(const struct vfork_spawn *t) {
    for (int i = 0; i < 2; i++) {
        if (!t->outputs[i][0])
            continue;
        long fd = call(SYS_openat, AT_FDCWD, (long)t->outputs[i],
                       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        long r = fd;
        if (fd == i + 1) /* it was closed */
            r = call(SYS_fcntl, fd, F_SETFD, 0, 0);
        else if (fd >= 0)
            r = call(SYS_dup3, fd, i + 1, 0, 0);
        if (r < 0)
            return r;
    }
    return 0;
}

IN_CHILD static long prepare(const struct vfork_spawn *t) {
    /* First of all: with a session comes a group of the scheduler, in which this one waits anew. */
    long r = call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
    /* The parent may have died before the request was in place. */
    if (r >= 0 && call(SYS_getppid, 0, 0, 0, 0) != t->parent)
        call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0), SIGKILL, 0, 0);
    if (r >= 0 && t->keep > 0)
        r = call(SYS_fcntl, t->keep, F_SETFD, 0, 0);
    if (r < 0)
        return r;
    close_others(t);
    r = call(SYS_setsid, 0, 0, 0, 0);
    if (r < 0)
        return r;
    reset_signals();
    return open_outputs(t);
}

/* A file that is no format the kernel knows is a script for the shell, as execvp(3) has it: the
 * word before argv[0], and argv[0] itself, become the shell and the script. */
IN_CHILD static long execute(const struct vfork_spawn *t, const char *file) {
    long r = call(SYS_execve, (long)file, (long)t->argv, (long)t->envp, 0);
    if (r != -ENOEXEC)
        return r;
    t->argv[-1] = "/bin/sh";
    t->argv[0] = file;
    return call(SYS_execve, (long)"/bin/sh", (long)&t->argv[-1], (long)t->envp, 0);
}

/* Goes on to the next folder where execvp(3) does. */
IN_CHILD static long execute_first(const struct vfork_spawn *t) {
    long r = -ENOENT;
    bool denied = false;
    for (const char *const *file = t->files; *file; file++) {
        r = execute(t, *file);
        denied = denied || r == -EACCES;
        if (r != -EACCES && r != -ENOENT && r != -ESTALE && r != -ENOTDIR && r != -ENODEV &&
            r != -ETIMEDOUT)
            return r;
    }
    return denied ? -EACCES : r;
}

/* What it returns is its exit code. */
IN_CHILD static int child(void *arg) {
    const struct vfork_spawn *t = arg;
    long r = prepare(t);
    if (r >= 0)
        r = execute_first(t);
    struct process_failure failure = {t->tag, (int32_t)r};
    call(SYS_write, t->report, (long)&failure, sizeof(failure), 0);
    return r == -ENOENT ? 127 : 126;
}

/* ---- in the guard ---- */

const char *const *vfork_spawn_files(const char *name, struct arena *a) {
    const char *path = getenv("PATH");
    size_t n = 0, k = 0;
    path = path ? path : "/bin:/usr/bin";
    for (const char *p = path; *p; p++)
        n += *p == ':';
    const char **files = arena_array(a, const char *, n + 2);
    if (!name[0] || strchr(name, '/')) {
        files[0] = name;
        return files;
    }
    for (const char *p = path;; p++) {
        size_t len = strcspn(p, ":");
        files[k++] = arena_printf(a, "%.*s%s%s", (int)len, p, len ? "/" : "", name);
        p += len;
        if (!*p)
            return files;
    }
}

int vfork_spawn_begin(struct vfork_spawn *t, void *stack, struct process *ret) {
    int pidfd = -1;
    int pid = clone(child, (char *)stack + VFORK_SPAWN_STACK, SHARED | CLONE_PIDFD | SIGCHLD, t,
                    &pidfd, NULL, NULL);
    if (pid < 0)
        return -errno;
    *ret = (struct process){pid, pidfd};
    return 0;
}
