/* The process between an agent and the etcd of its own. */
#include "agent/store/etcd.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 32, USAGE = 64 };

bool etcd_keeper_is_me(char **argv) {
    return argv[0] && strcmp(argv[0], ETCD_KEEPER_NAME) == 0;
}

/* Until the agent's end of the pipe is closed, or etcd has ended. */
static void wait_for_either(const struct process *etcd) {
    struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {etcd->pidfd, POLLIN, 0}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
}

/* argv: etcd and its arguments, to which the folder is added. */
static int keep(char **argv, const char *dir, struct err *err) {
    const char *words[WORDS_MAX + 3] = {NULL};
    struct process etcd = PROCESS_NONE;
    size_t n = 0;
    for (; argv[n] && n < WORDS_MAX; n++)
        words[n] = argv[n];
    words[n++] = "--data-dir";
    words[n++] = dir;
    struct process_spawn s = {.argv = words, .death_signal = SIGKILL};
    int code = process_spawn(&s, &etcd, err);
    if (code)
        return code;
    wait_for_either(&etcd);
    process_signal(&etcd, SIGKILL);
    process_reap(&etcd, -1, NULL);
    process_close(&etcd);
    return 0;
}

/* Signals that are meant for the launcher (Ctrl-C, a batch system's TERM to all) are not for us;
 * blocked, they are not passed on to etcd, whose spawning unblocks all. */
static void block_signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, ETCD_KEEPER_NAME);
}

int etcd_keeper_main(char **argv) {
    char dir[PATH_MAX];
    struct err err = {0};
    struct stat st;
    if (!argv[1] || fstat(STDIN_FILENO, &st) < 0 || !S_ISFIFO(st.st_mode))
        return USAGE;
    block_signals();
    snprintf(dir, sizeof(dir), "%s/rankrun_etcd_XXXXXXXX", file_temp_base());
    int code = file_make_temp_dir(dir, &err);
    if (!code) {
        code = keep(argv + 1, dir, &err);
        file_remove_tree(dir, NULL);
    }
    if (code)
        fprintf(stderr, "%s\n", err.msg);
    return code ? 1 : 0;
}
