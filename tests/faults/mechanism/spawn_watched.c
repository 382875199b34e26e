/* The body of test_call_watch: spawn_watched EXPERIMENT. Prints "ok" and exits 0, or says what
 * was wrong. */
#include "faults/mechanism/call_watch.h"
#include "faults/mechanism/socket_cut.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 20 };

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct sockaddr_in at = {.sin_family = AF_INET};

static int listener(void) {
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(fd, (void *)&at, len) == 0 && listen(fd, 8) == 0);
    MUST(getsockname(fd, (void *)&at, &len) == 0);
    return fd;
}

/* A child that is watched and connects; ends 0 when it is connected, 1 when it was refused. */
static pid_t caller(int *ret_watch) {
    int ends[2];
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        static const struct call_watch connects = {.kinds = CALL_CONNECT};
        if (call_watch_install(ends[1], &connects) != 0)
            _exit(77);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        _exit(connect(fd, (void *)&at, sizeof(at)) == 0 ? 0 : 1);
    }
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    MUST(poll(&p, 1, 1000 * PATIENCE_S) == 1);
    MUST((*ret_watch = call_watch_take(ends[0])) >= 0);
    return pid;
}

static struct watched_call next_call(int watch) {
    struct watched_call call;
    struct pollfd p = {.fd = watch, .events = POLLIN};
    MUST(poll(&p, 1, 1000 * PATIENCE_S) == 1);
    MUST(call_watch_next(watch, &call) == 1);
    return call;
}

/* Who calls waits, whom it calls is told, and it goes on when it is let. Then all is over, and that
 * is told as well. */
static void passes(void) {
    int server = listener(), watch, status;
    pid_t pid = caller(&watch);
    struct watched_call call = next_call(watch), none;
    const struct sockaddr_in *to = (const void *)&call.to;
    struct pollfd p = {.fd = server, .events = POLLIN};
    MUST(call.pid == pid && call.kind == CALL_CONNECT);
    MUST(to->sin_family == AF_INET && to->sin_port == at.sin_port);
    MUST(poll(&p, 1, 0) == 0); /* nothing has come yet */
    MUST(call_watch_next(watch, &none) == 0);
    call_watch_pass(watch, call.id);
    MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    p = (struct pollfd){.fd = watch, .events = POLLIN};
    MUST(poll(&p, 1, 1000 * PATIENCE_S) == 1);
    MUST(call_watch_next(watch, &none) == -ECONNRESET);
}

/* The socket of the call is silenced before it goes on: the answer is dropped, and counted. */
static void is_cut(void) {
    int watch, pidfd, fd;
    listener();
    pid_t pid = caller(&watch);
    struct watched_call call = next_call(watch);
    MUST((pidfd = (int)syscall(434 /* pidfd_open */, pid, 0)) >= 0);
    MUST((fd = socket_take(pidfd, (int)call.args[0])) >= 0);
    MUST(socket_silence(fd, true) == 0);
    call_watch_pass(watch, call.id);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    MUST(poll(&p, 1, 200) == 0); /* it still waits for an answer */
    MUST(socket_drops(fd) > 0);
    MUST(socket_silence(fd, false) == 0);
    MUST(poll(&p, 1, 1000 * PATIENCE_S) == 1); /* asked again, and answered */
    int status;
    MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} experiments[] = {{"passes", passes}, {"is-cut", is_cut}};

int main(int argc, char **argv) {
    struct err err;
    alarm(3 * PATIENCE_S);
    if (call_watch_check(&err) != 0 || socket_cut_check(&err) != 0) {
        printf("skip: %s\n", err.msg);
        return 77;
    }
    for (size_t i = 0; argc > 1 && i < sizeof(experiments) / sizeof(experiments[0]); i++)
        if (strcmp(experiments[i].name, argv[1]) == 0) {
            experiments[i].run();
            puts("ok");
            return 0;
        }
    puts("no such experiment");
    return 1;
}
