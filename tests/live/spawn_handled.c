/* handled COMMAND...: runs it and waits. A worker that crashes by itself meets handlers of its own,
 * which end it with 7. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signo) {
    (void)signo;
    _exit(7);
}

int main(int argc, char **argv) {
    int status;
    signal(SIGABRT, leave);
    signal(SIGSEGV, leave);
    pid_t pid = argc > 1 ? fork() : -1;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : 1;
}
