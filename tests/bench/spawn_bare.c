/* The floor of spawn_restart: a launcher that does nothing but vfork, exec, kill and wait.
 *
 *     spawn_restart KILLS WORKERS -- spawn_bare --nproc_per_node=WORKERS PROGRAM...
 *
 * What a launcher takes beyond this is its own: sessions, deadlines, environments, a rendezvous.
 * Options that it does not know are left out, so that it is called as a launcher is. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MAX = 64 };

static void start_round(pid_t *pids, int n, char **argv) {
    for (int i = 0; i < n; i++) {
        pids[i] = vfork();
        if (pids[i] == 0) {
            execv(argv[0], argv);
            _exit(127);
        }
    }
}

/* One has ended: so do the others. */
static int end_round(const pid_t *pids, int n) {
    int status = 0;
    pid_t first = wait(&status);
    for (int i = 0; i < n; i++)
        if (pids[i] > 0 && pids[i] != first)
            kill(pids[i], SIGTERM);
    while (wait(NULL) > 0)
        ;
    return status;
}

int main(int argc, char **argv) {
    pid_t pids[WORKERS_MAX];
    int n = 0, at = 1;
    for (; at < argc && argv[at][0] == '-'; at++)
        sscanf(argv[at], "--nproc_per_node=%d", &n);
    if (n < 1 || n > WORKERS_MAX || at >= argc) {
        fprintf(stderr, "usage: spawn_bare --nproc_per_node=1..%d PROGRAM...\n", WORKERS_MAX);
        return 64;
    }
    int status;
    do {
        start_round(pids, n, argv + at);
        status = end_round(pids, n);
    } while (WIFSIGNALED(status));
    return 1;
}
