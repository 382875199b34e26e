/* spawn_called DIR RECORD CMD...: runs CMD while what it does to DIR is recorded by its system calls into the file RECORD.
 * Exit: that of CMD, or 1. */
#include "tests/bench/recording.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
    int ends[2], status = 0;
    if (argc < 4 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (call_watch_install(ends[1], call_record_watch()) != 0)
            recording_fails("watch system calls");
        execvp(argv[3], argv + 3);
        recording_fails(argv[3]);
    }
    close(ends[1]);
    recording_run(recording_take(ends[0]), argv[1], argv[2]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
