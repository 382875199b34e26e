#include "agent/outcome.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/line.h"
#include "base/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_MAX = 16 << 20, EXIT_CODE_MAX = 255 };

/* Asked of us, meant for the command. */
static const int handed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};

static int make_file(const char *dir, char ret[PATH_MAX], struct err *err) {
    char full[PATH_MAX];
    if (!realpath(dir, full))
        return err_set(err, -errno, "--dir %s", dir), -EINVAL;
    if (snprintf(ret, PATH_MAX, "%s/.rankrun-outcome.XXXXXX", full) >= PATH_MAX)
        return err_set(err, -ENAMETOOLONG, "--dir %s", dir), -EINVAL;
    FILE_CLOSE int fd = mkostemp(ret, O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "--dir %s: make a file there", dir), -EINVAL;
    return 0;
}

static void block(sigset_t *ret) {
    sigemptyset(ret);
    sigaddset(ret, SIGCHLD);
    for (size_t i = 0; i < sizeof(handed_on) / sizeof(*handed_on); i++)
        sigaddset(ret, handed_on[i]);
    sigprocmask(SIG_BLOCK, ret, NULL);
}

static int wait_for(const struct process *p, const sigset_t *signals) {
    int status, signo;
    while (process_reap(p, 0, &status) == -ETIME) {
        signo = sigwaitinfo(signals, NULL);
        if (signo > 0 && signo != SIGCHLD)
            process_signal(p, signo);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* All agents tell the same; where they do not, that it failed is what must not be lost. */
static bool read_codes(const char *path, int *ret) {
    BUF_FINI struct buf text = {0};
    struct err err;
    bool told = false;
    int64_t code, worst = 0;
    if (file_read_plain(path, FILE_MAX, &text, &err) < 0) {
        line_say(LINE_WARNING, "outcome", "%s", err.msg);
        return false;
    }
    for (char *rest = text.data, *line; rest && (line = strtok_r(rest, "\n", &rest));)
        if (str_to_i64(line, 0, EXIT_CODE_MAX, &code)) {
            worst = code > worst ? code : worst;
            told = true;
        }
    *ret = (int)worst;
    return told;
}

static int settle(const char *command, int own, const char *path) {
    int code;
    if (!read_codes(path, &code)) {
        line_say(LINE_WARNING, "outcome", "no agent told the job's outcome; %s exited with %d",
                 command, own);
        return own;
    }
    if (code != own)
        line_say(LINE_INFO, "outcome", "%s exited with %d, but the job %s", command, own,
                 code ? "failed" : "succeeded");
    return code;
}

int outcome_run(const char *dir, const char *const *command, struct err *err) {
    char path[PATH_MAX];
    struct process p = PROCESS_NONE;
    const struct process_spawn spawn = {.argv = command};
    sigset_t signals;
    int code = make_file(dir, path, err);
    if (code)
        return code;
    block(&signals);
    setenv(OUTCOME_VARIABLE, path, 1);
    code = process_spawn(&spawn, &p, err);
    if (code == 0)
        code = settle(command[0], wait_for(&p, &signals), path);
    else
        code = -EINVAL;
    process_close(&p);
    unlink(path);
    return code;
}

void outcome_tell(const char *path, int code) {
    char text[16];
    if (!path)
        return;
    FILE_CLOSE int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int n = snprintf(text, sizeof(text), "%d\n", code);
    if (fd < 0 || write(fd, text, (size_t)n) != n)
        line_say(LINE_WARNING, "outcome",
                 "%s: %s; give rankrun outcome a --dir that the hosts of the job share", path,
                 strerror(errno));
}
