#include "agent/hosts/remote.h"

#include "agent/hosts/remote_launch.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/line.h"
#include "base/sys/process.h"
#include "base/sys/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_BEGIN = 64 };

static int fail(const struct err *err) {
    char host[256] = "?";
    gethostname(host, sizeof(host) - 1);
    line_say(LINE_ERROR, "host", "host %s: %s", host, err->msg);
    return CANNOT_BEGIN;
}

/* The sender's variables over those of this login. */
static void take_environment(const char *const *env) {
    for (size_t i = 0; env[i]; i++)
        putenv((char *)(uintptr_t)env[i]);
}

/* The agent's standard input is nobody's: ours is the line to the sender. SIGTERM by the kernel
 * when we die: it then ends as it does for a person. */
static int start(const struct remote_launch *e, struct process *ret, struct err *err) {
    if (chdir(e->dir) < 0)
        return err_set(err, -errno,
                       "go to %s (the directory in which the job was started must be "
                       "there on every host)",
                       e->dir);
    take_environment(e->env);
    int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    FILE_CLOSE int null = low < 0 ? -errno : descriptors_lift(low, STDERR_FILENO + 1);
    if (null < 0)
        return err_set(err, null, "open /dev/null");
    struct process_spawn s = {
        .argv = e->argv,
        .file = e->plain ? NULL : "/proc/self/exe",
        .fds = (const int[]){null, -1, -1},
        .death_signal = SIGTERM,
    };
    return process_spawn(&s, ret, err);
}

/* Passes signals on until the agent has ended. Once there is nobody to hear from, it is told to
 * end, and given its own time for that. */
static void follow(const struct process *agent) {
    struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {agent->pidfd, POLLIN, 0}};
    for (;;) {
        unsigned char signo;
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents)
            return;
        if (!fds[0].revents)
            continue;
        ssize_t n = read(STDIN_FILENO, &signo, 1);
        process_signal(agent, n == 1 ? signo : SIGTERM);
        if (n != 1)
            fds[0].fd = -1;
    }
}

/* Unlike SIG_IGN it is not handed on to the agent. */
static void ignore(int signo) {
}

int remote_main(void) {
    ARENA_FINI struct arena a = {0};
    struct remote_launch e;
    struct err err = {0};
    struct process agent = PROCESS_NONE;
    int status = 0;
    signal(SIGINT, ignore); /* of a terminal: the sender says what it means */
    signal_ignore_writes();
    int code = remote_launch_read(STDIN_FILENO, &a, &e, &err);
    if (!code)
        code = start(&e, &agent, &err);
    if (!code) {
        follow(&agent);
        process_reap(&agent, -1, &status);
        process_close(&agent);
    }
    if (code)
        return fail(&err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
