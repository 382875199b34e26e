/* attempts: what spawn_escape.c makes of other processes, and how it says what came of it. Each
 * returns 0 when it could be done, else an errno, and changes nothing. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The same on every architecture; older C libraries have no names. */
enum { PIDFD_OPEN = 434, PIDFD_GETFD = 438 };

/* Of what it returns 0 is success; else an errno. */
static int result(long r) {
    return r < 0 ? errno : 0;
}

static int opened(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int code = result(fd);
    if (fd >= 0)
        close(fd);
    return code;
}

static const char *of(pid_t pid, const char *file) {
    static char path[256];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    return path;
}

static pid_t parent_of(pid_t pid) {
    char text[1024] = "";
    FILE *f = fopen(of(pid, "stat"), "re");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    const char *p = n ? strrchr(text, ')') : NULL;
    if (f)
        fclose(f);
    return p ? (pid_t)strtol(p + strlen(") S "), NULL, 10) : 0;
}

/* ---- other processes ---- */

/* The last bytes of a stack are zero: they are written as they are. */
static int write_stack(pid_t pid) {
    char line[512];
    unsigned long long begin, end = 0;
    uint64_t zero = 0;
    FILE *f = fopen(of(pid, "maps"), "re");
    if (!f)
        return errno;
    while (fgets(line, sizeof(line), f))
        if (strstr(line, "[stack]") && sscanf(line, "%llx-%llx", &begin, &end) == 2)
            break;
    fclose(f);
    int fd = open(of(pid, "mem"), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return errno;
    return pwrite(fd, &zero, sizeof(zero), (off_t)(end - sizeof(zero))) == sizeof(zero) ? 0 : errno;
}

/* Where nothing is mapped: who may, finds that. */
static int write_nowhere(pid_t pid) {
    char byte = 0;
    struct iovec mine = {&byte, 1}, its = {NULL, 1};
    return process_vm_writev(pid, &mine, 1, &its, 1, 0) < 0 && errno != EFAULT ? errno : 0;
}

static int take_descriptor(pid_t pid, int fd) {
    int pidfd = (int)syscall(PIDFD_OPEN, pid, 0);
    return pidfd < 0 ? errno : result(syscall(PIDFD_GETFD, pidfd, fd, 0));
}

static int trace(pid_t pid) {
    return result(ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

static int limit(pid_t pid) {
    struct rlimit same;
    if (prlimit(pid, RLIMIT_CORE, NULL, &same) < 0)
        return errno;
    return result(prlimit(pid, RLIMIT_CORE, &same, NULL));
}

static struct sockaddr_un abstract(pid_t pid) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "spawn_escape-%d", (int)pid);
    return a;
}

static int abstract_connect(pid_t pid) {
    struct sockaddr_un a = abstract(pid);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return result(connect(fd, (struct sockaddr *)&a, sizeof(a)));
}

static int abstract_listen(void) {
    struct sockaddr_un a = abstract(getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 8) < 0 ? errno : 0;
}

/* ---- */

struct attempt {
    const char *name;
    int (*make)(void);
    bool root; /* for root only */
};
/* What a child of its own found; a child that is killed could not. */
static int made_apart(int (*make)(void)) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(make());
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EFAULT;
}

static void make_all(const struct attempt *all, size_t n, const char *done, const char *not_done) {
    for (size_t i = 0; i < n; i++) {
        if (all[i].root && geteuid() != 0)
            continue;
        int code = made_apart(all[i].make);
        if (code == 0)
            printf("%s %s\n", done, all[i].name);
        else
            printf("%s %s %s\n", not_done, all[i].name, strerror(code));
        fflush(stdout);
    }
}
