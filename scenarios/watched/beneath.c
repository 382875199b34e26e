/* What valgrind 3.19 does not know, done by what it knows: a pidfd is opened by somebody else, who listens at the socket WATCHED_PIDFDS
 * (watched.py) and hands it over; a signal goes to the process that a pidfd names; a child that shares its parent's memory until it
 * executes has a copy of its own; and who executes itself anew is watched anew, by WATCHED_ANEW, or not where it takes another name.
 * Preloaded into programs that run under valgrind.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Returns a pidfd, or -1 with errno. */
static int open_pidfd(pid_t pid) {
    const char *name = getenv("WATCHED_PIDFDS");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!name || strlen(name) >= sizeof(address.sun_path) - 1) {
        errno = ENOSYS;
        return -1;
    }
    strcpy(address.sun_path + 1, name);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd = -1, code = ENOSYS;
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {&code, sizeof(code)};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    if (connect(s, (struct sockaddr *)&address, size) == 0 &&
        send(s, &pid, sizeof(pid), MSG_NOSIGNAL) == (ssize_t)sizeof(pid) &&
        recvmsg(s, &m, MSG_CMSG_CLOEXEC) == (ssize_t)sizeof(code) && CMSG_FIRSTHDR(&m))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
    close(s);
    errno = code;
    return fd;
}

/* The process that a pidfd names, or -1. */
static pid_t process_of(int pidfd) {
    char path[64], line[128];
    int pid = -1;
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f) && sscanf(line, "Pid: %d", &pid) != 1)
        ;
    if (f)
        fclose(f);
    return pid;
}

long syscall(long number, ...) {
    va_list list;
    long w[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        w[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_pidfd_open)
        return open_pidfd((pid_t)w[0]);
    if (number == SYS_pidfd_send_signal) {
        pid_t pid = process_of((int)w[0]);
        errno = ESRCH;
        return pid > 0 ? kill(pid, (int)w[1]) : -1;
    }
    static long (*next)(long, ...);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(number, w[0], w[1], w[2], w[3], w[4], w[5]);
}

/* What a copy holds at its end is its parent's. */
static void note_copy(void) {
    const char *logs = getenv("WATCHED_LOGS");
    char path[4096];
    snprintf(path, sizeof(path), "%s/%d.copy", logs ? logs : "", (int)getpid());
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

int clone(int (*body)(void *), void *stack, int flags, void *arg, ...) {
    va_list list;
    va_start(list, arg);
    int *pidfd = flags & CLONE_PIDFD ? va_arg(list, int *) : NULL;
    va_end(list);
    (void)stack;
    pid_t pid = fork();
    if (pid == 0) {
        note_copy();
        _exit(body(arg));
    }
    if (pid > 0 && pidfd && (*pidfd = open_pidfd(pid)) < 0)
        return -1;
    return pid;
}

/* What to execute in place of a file. */
static const char *instead_of(const char *file, const char *name) {
    static char self[4096];
    const char *anew = getenv("WATCHED_ANEW");
    if (strcmp(file, "/proc/self/exe") != 0 || !anew || !name)
        return file;
    const char *end = strrchr(name, '/');
    if (strcmp(end ? end + 1 : name, strrchr(anew, '/') + 1) == 0)
        return anew;
    ssize_t n = readlink(file, self, sizeof(self) - 1);
    return n > 0 ? self : file;
}

int execv(const char *file, char *const argv[]) {
    return execve(instead_of(file, argv[0]), argv, environ);
}

int execvpe(const char *file, char *const argv[], char *const envp[]) {
    static int (*next)(const char *, char *const[], char *const[]);
    if (!next)
        next = (int (*)(const char *, char *const[], char *const[]))dlsym(RTLD_NEXT, "execvpe");
    return next(instead_of(file, argv[0]), argv, envp);
}
