#include "agent/workers/vfork_spawn.h"

#include "agent/workers/system_call.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The sanitizer for threads would not be silent in the child even so: there it is a fork. */
#ifdef __SANITIZE_THREAD__
enum { SHARED = 0 };
#else
enum { SHARED = CLONE_VM };
#endif

/* ---- in the child ---- */

/* Everything above stderr goes but report and keep. */
IN_CHILD static void close_others(const struct vfork_spawn *t) {
    long low = 3, kept[2] = {t->report, t->keep};
    if (kept[1] < kept[0]) {
        kept[0] = t->keep;
        kept[1] = t->report;
    }
    for (int i = 0; i < 2; i++) {
        if (kept[i] > low)
            system_call(SYS_close_range, low, kept[i] - 1, 0, 0);
        if (kept[i] >= low)
            low = kept[i] + 1;
    }
    system_call(SYS_close_range, low, (long)~0U, 0, 0);
}

/* What the guard catches or ignores and what it blocks is nobody else's business. The kernel's
 * struct sigaction is four words on both architectures: all zero is SIG_DFL. */
IN_CHILD static void reset_signals(void) {
    static const long plain[4];
    static const uint64_t none;
    system_call(SYS_rt_sigaction, SIGPIPE, (long)plain, 0, sizeof(none));
    system_call(SYS_rt_sigaction, SIGXFSZ, (long)plain, 0, sizeof(none));
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof(none));
}

/* A disk that hangs hangs the child alone. */
IN_CHILD static long open_outputs(const struct vfork_spawn *t) {
    for (int i = 0; i < 2; i++) {
        if (!t->outputs[i][0])
            continue;
        long fd = system_call(SYS_openat, AT_FDCWD, (long)t->outputs[i],
                              O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        long r = fd;
        if (fd == i + 1) /* it was closed */
            r = system_call(SYS_fcntl, fd, F_SETFD, 0, 0);
        else if (fd >= 0)
            r = system_call(SYS_dup3, fd, i + 1, 0, 0);
        if (r < 0)
            return r;
    }
    return 0;
}

IN_CHILD static long prepare(const struct vfork_spawn *t) {
    /* First of all: with a session comes a group of the scheduler, in which this one waits anew. */
    long r = system_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
    /* The parent may have died before the request was in place. */
    if (r >= 0 && system_call(SYS_getppid, 0, 0, 0, 0) != t->parent)
        system_call(SYS_kill, system_call(SYS_getpid, 0, 0, 0, 0), SIGKILL, 0, 0);
    if (r >= 0 && t->keep > 0)
        r = system_call(SYS_fcntl, t->keep, F_SETFD, 0, 0);
    if (r < 0)
        return r;
    close_others(t);
    r = system_call(SYS_setsid, 0, 0, 0, 0);
    if (r < 0)
        return r;
    reset_signals();
    return open_outputs(t);
}

/* A file that is no format the kernel knows is a script for the shell, as execvp(3) has it: the
 * word before argv[0], and argv[0] itself, become the shell and the script. */
IN_CHILD static long execute(const struct vfork_spawn *t, const char *file) {
    long r = system_call(SYS_execve, (long)file, (long)t->argv, (long)t->envp, 0);
    if (r != -ENOEXEC)
        return r;
    t->argv[-1] = "/bin/sh";
    t->argv[0] = file;
    return system_call(SYS_execve, (long)"/bin/sh", (long)&t->argv[-1], (long)t->envp, 0);
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
    system_call(SYS_write, t->report, (long)&failure, sizeof(failure), 0);
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
