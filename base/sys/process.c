#include "base/sys/process.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/priority.h"
#include "base/sys/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int process_open(pid_t pid, struct process *ret, struct err *err) {
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return err_set(err, -errno, "open a pidfd for process %d", (int)pid);
    *ret = (struct process){pid, fd};
    return 0;
}

void process_close(struct process *p) {
    if (!p)
        return;
    file_close(&p->pidfd);
    *p = PROCESS_NONE;
}

int process_signal(const struct process *p, int signo) {
    return syscall(SYS_pidfd_send_signal, p->pidfd, signo, NULL, 0) < 0 ? -errno : 0;
}

int process_signal_living(const struct process *p, int signo) {
    return process_wait_end(p, 0) == 0 ? -ESRCH : process_signal(p, signo);
}

int process_wait_end(const struct process *p, int64_t timeout_ns) {
    int64_t until = clock_monotonic_ns() + timeout_ns;
    for (;;) {
        struct pollfd fd = {p->pidfd, POLLIN, 0};
        int64_t left = until - clock_monotonic_ns();
        struct timespec wait = {left / 1000000000, left % 1000000000};
        if (timeout_ns >= 0 && left < 0)
            wait = (struct timespec){0, 0};
        int n = ppoll(&fd, 1, timeout_ns < 0 ? NULL : &wait, NULL);
        if (n > 0)
            return 0;
        if (n == 0)
            return -ETIME;
        if (errno != EINTR)
            return -errno;
    }
}

pid_t process_fork_idle(void) {
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent)
            pause();
        _exit(0);
    }
    return pid;
}

int process_reap(const struct process *p, int64_t timeout_ns, int *ret_status) {
    int code = process_wait_end(p, timeout_ns), status;
    if (code)
        return code;
    while (waitpid(p->pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (ret_status)
        *ret_status = status;
    return 0;
}

void process_close_from(int low) {
    syscall(SYS_close_range, (unsigned)low, ~0U, 0);
}

/* What the child needs, all of it made before the fork. */
struct child {
    const struct process_spawn *s;
    int report; /* end of a pipe: what failed; closed by a successful exec */
    uint32_t tag;
    pid_t parent;
};

/* Everything above stderr goes, but for report and keep: the gaps between them, in rising order. */
static void close_others(const struct child *c) {
    for (unsigned low = 3;;) {
        unsigned next = c->report >= (int)low ? (unsigned)c->report : ~0U;
        for (size_t i = 0; i < c->s->keep_n; i++)
            if (c->s->keep[i] >= (int)low && (unsigned)c->s->keep[i] < next)
                next = (unsigned)c->s->keep[i];
        if (next > low)
            syscall(SYS_close_range, low, next == ~0U ? next : next - 1, 0);
        if (next == ~0U)
            return;
        low = next + 1;
    }
}

static int child_streams(const int *fds) {
    for (int i = 0; fds && i < 3; i++)
        if (fds[i] >= 0 && fds[i] != i && dup2(fds[i], i) < 0)
            return -errno;
    return 0;
}

static int child_keep(const struct process_spawn *s) {
    for (size_t i = 0; i < s->keep_n; i++)
        if (fcntl(s->keep[i], F_SETFD, 0) < 0)
            return -errno;
    return 0;
}

static int child_prepare(const struct child *c) {
    const struct process_spawn *s = c->s;
    int code = child_streams(s->fds);
    if (!code)
        code = child_keep(s);
    if (code)
        return code;
    /* First of all: with a session comes a group of the scheduler, in which this one waits anew. */
    if (s->death_signal && prctl(PR_SET_PDEATHSIG, s->death_signal) < 0)
        return -errno;
    /* The parent may have died before the request was in place. */
    if (s->death_signal && getppid() != c->parent)
        raise(SIGKILL);
    close_others(c);
    if ((s->session && setsid() < 0) || (s->group && !s->session && setpgid(0, 0) < 0))
        return -errno;
    if (s->dir && chdir(s->dir) < 0)
        return -errno;
    signal_reset();
    priority_restore();
    return s->in_child ? s->in_child(s->in_child_arg) : 0;
}

static void child_run(const struct child *c) __attribute__((noreturn));
static void child_run(const struct child *c) {
    const struct process_spawn *s = c->s;
    int code = child_prepare(c);
    if (!code) {
        execvpe(s->file ? s->file : s->argv[0], (char *const *)s->argv,
                s->envp ? (char *const *)s->envp : environ);
        code = -errno;
    }
    struct process_failure failure = {c->tag, code};
    ssize_t n = write(c->report, &failure, sizeof(failure));
    (void)n;
    _exit(code == -ENOENT ? 127 : 126);
}

/* Standard streams that the caller has closed would be taken for the pipe; keep clear of them. */
int process_report_pipe(int ret[2]) {
    int low[2];
    if (pipe2(low, O_CLOEXEC) < 0)
        return -errno;
    ret[0] = descriptors_lift(low[0], STDERR_FILENO + 1);
    ret[1] = descriptors_lift(low[1], STDERR_FILENO + 1);
    int code = ret[0] < 0 ? ret[0] : ret[1] < 0 ? ret[1] : 0;
    for (int i = 0; i < 2 && code; i++)
        file_close(&ret[i]);
    return code;
}

/* Blocks all signals over the fork, so that no handler of the parent runs in the child. */
static pid_t fork_child(const struct child *c) {
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t pid = fork();
    if (pid == 0)
        child_run(c);
    int saved = errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = saved;
    return pid;
}

int process_spawn_reporting(const struct process_spawn *s, int report, uint32_t tag,
                            struct process *ret, struct err *err) {
    struct child c = {s, report, tag, getpid()};
    pid_t pid = fork_child(&c);
    if (pid < 0)
        return err_set(err, -errno, "start %s: fork", s->argv[0]);
    int code = process_open(pid, ret, err);
    if (code) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return code;
}

/* Waits for the exec. True when there was one. */
static bool read_failure(int fd, struct process_failure *ret) {
    ssize_t n;
    while ((n = read(fd, ret, sizeof(*ret))) < 0 && errno == EINTR)
        ;
    return n == sizeof(*ret);
}

int process_spawn(const struct process_spawn *s, struct process *ret, struct err *err) {
    int ends[2] = {-1, -1};
    int code = process_report_pipe(ends);
    if (code)
        return err_set(err, code, "start %s: make a pipe", s->argv[0]);
    struct process p = PROCESS_NONE;
    struct process_failure failure = {0, 0};
    code = process_spawn_reporting(s, ends[1], 0, &p, err);
    close(ends[1]);
    if (!code && read_failure(ends[0], &failure)) {
        process_reap(&p, -1, NULL);
        process_close(&p);
        code = err_set(err, failure.code, "execute %s", s->file ? s->file : s->argv[0]);
    }
    close(ends[0]);
    if (!code)
        *ret = p;
    return code;
}

/* The fields stand behind the command's name, which may hold anything. */
int process_look(pid_t pid, struct process_look *ret) {
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return -ESRCH;
    text[n] = '\0';
    char *p = strrchr(text, ')'), *save = NULL;
    if (!p)
        return -EIO;
    int field = 3;
    for (char *word = strtok_r(p + 1, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        if (field == 3)
            ret->state = word[0];
        else if (field == 4)
            ret->parent = (pid_t)atoi(word);
        else if (field == 20)
            ret->threads = atoi(word);
        else if (field == 22)
            ret->start_ticks = strtoull(word, NULL, 10);
        else if (field == 52)
            ret->exit_code = atoi(word);
        field++;
    }
    return field > 52 ? 0 : -EIO;
}

size_t process_list(pid_t **ret) {
    FILE_CLOSE_DIR DIR *d = opendir("/proc");
    size_t n = 0;
    *ret = NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            mem_push(*ret, n) = (pid_t)atoi(e->d_name);
    return n;
}

bool process_is_among(pid_t pid, const pid_t *pids, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

int process_zombie_status(pid_t pid, int *ret_status) {
    struct process_look s;
    int code = process_look(pid, &s);
    if (code)
        return code;
    if (s.state == 'X')
        return -ESRCH;
    if (s.state != 'Z')
        return -EAGAIN;
    *ret_status = s.exit_code;
    return 0;
}

unsigned long long process_pid_space(pid_t pid) {
    char path[64] = "/proc/self/ns/pid";
    struct stat st;
    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

int process_start_ticks(pid_t pid, uint64_t *ret_ticks) {
    struct process_look s;
    int code = process_look(pid, &s);
    if (!code)
        *ret_ticks = s.start_ticks;
    return code;
}

/* linux/pidfd.h of 6.15; older headers lack it. */
struct pidfd_info_v1 {
    uint64_t mask, cgroupid;
    uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
};
#define INFO_EXIT (1UL << 3)
#define INFO_CALL _IOWR(0xFF, 11, struct pidfd_info_v1)

int process_exit_info(int pidfd, int *ret_status) {
    struct pidfd_info_v1 info = {.mask = INFO_EXIT};
    if (ioctl(pidfd, INFO_CALL, &info) < 0)
        return errno == ENOTTY || errno == EINVAL ? -EOPNOTSUPP : -errno;
    if (!(info.mask & INFO_EXIT))
        return -EAGAIN;
    *ret_status = info.exit_code;
    return 0;
}

/* Linux 6.13 and 6.14 know the call but not the exit status in it: only an answer proves it. */
bool process_exit_info_works(void) {
    struct process p = PROCESS_NONE;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    if (pid < 0)
        return false;
    bool opened = process_open(pid, &p, NULL) == 0;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    bool works = opened && process_exit_info(p.pidfd, &status) == 0 && WIFEXITED(status) &&
                 WEXITSTATUS(status) == 7;
    if (opened)
        process_close(&p);
    return works;
}

const char *process_name(pid_t pid, char *buf, size_t size) {
    char path[64];
    BUF_FINI struct buf name = {0};
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    file_read(path, 4096, &name, NULL);
    snprintf(buf, size, "%.*s", (int)(name.len ? name.len - 1 : 0), buf_str(&name));
    return buf;
}

const char *process_status_text(int status, char *buf, size_t size) {
    if (WIFSIGNALED(status))
        snprintf(buf, size, "%s%s", signal_name(WTERMSIG(status)),
                 WCOREDUMP(status) ? " (core dumped)" : "");
    else
        snprintf(buf, size, "exit code %d", WEXITSTATUS(status));
    return buf;
}

pid_t process_pid_of(int pidfd) {
    char path[64];
    BUF_FINI struct buf info = {0};
    long pid = 0;
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    if (file_read(path, 4096, &info, NULL) == 0) {
        const char *line = strstr(buf_str(&info), "\nPid:");
        pid = line ? strtol(line + strlen("\nPid:"), NULL, 10) : 0;
    }
    return pid > 0 ? (pid_t)pid : 0;
}

unsigned long long process_status_number(pid_t pid, pid_t tid, const char *key, int base) {
    char path[64], line[256];
    unsigned long long found = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0 && strrchr(line, '\t'))
            found = strtoull(strrchr(line, '\t'), NULL, base);
    if (f)
        fclose(f);
    return found;
}

bool process_has_signal(pid_t pid, const char *key, int signo) {
    return process_status_number(pid, pid, key, 16) >> (signo - 1) & 1;
}
