/* Runs a program as the ranks of one world on loopback and says how each ended.
 *
 *     spawn_world WORLD ROUND SIGNAL RANK STEP -- PROGRAM [ARG...]
 *
 * In the arguments %r stands for the rank. Rank 0 is held at the end of STEP until the RANK (-1: each)
 * has got SIGNAL (0: never); one that was stopped is killed when rank 0 has ended. SPAWN_LOST in the
 * environment, "SIGNAL RANK", is sent just after that to a rank that gets no other: before it, those
 * that miss their peer first would end for that. With SPAWN_AGAIN in the environment the rank is
 * started once more when it has ended, alone. Everything the ranks print is passed on; then one line
 * per rank follows, "rank 2 exit 1" or "rank 2 signal 9". Ends with everything it
 * started when it takes longer than 100 s. */
#include "tests/own_port.h"
#include "tests/scenarios/jobs/ranktrain/breakpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORLD_MAX = 32 };

static void set(const char *name, int value) {
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* The same text with the rank where %r stands. */
static char *for_rank(const char *arg, int rank) {
    const char *at = strstr(arg, "%r");
    char *text = NULL;
    if (!at || asprintf(&text, "%.*s%d%s", (int)(at - arg), arg, rank, at + 2) < 0)
        return strdup(arg);
    return text;
}

static pid_t start(int rank, int out, char **argv) {
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (char **arg = argv; *arg; arg++)
        *arg = for_rank(*arg, rank);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set("RANK", rank);
    set("LOCAL_RANK", rank);
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    execv(argv[0], argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

struct world {
    int out[2];
    pid_t pids[WORLD_MAX];
    int n, signo, rank, lost; /* lost -1: none */
    bool again;
    char **argv;
};

static void strike(struct world *w) {
    const char *lost = getenv("SPAWN_LOST");
    int status, signo;
    bool loses = lost && sscanf(lost, "%d %d", &signo, &w->lost) == 2;
    for (int i = 0; i < w->n && w->rank < 0; i++)
        if (i != w->lost)
            kill(w->pids[i], w->signo);
    if (w->rank >= 0)
        kill(w->pids[w->rank], w->signo);
    if (loses)
        kill(w->pids[w->lost], signo);
    if (!w->again)
        return;
    while (waitpid(w->pids[w->rank], &status, 0) < 0 && errno == EINTR)
        continue;
    printf("rank %d is started again\n", w->rank);
    w->pids[w->rank] = start(w->rank, w->rank == 0 ? w->out[1] : -1, w->argv);
}

/* Strikes while rank 0 is held at its step. */
static void hold(struct world *w, struct breakpoint *at) {
    char event[RANKQUAKE_MESSAGE_MAX + 1];
    pid_t pid;
    int fd = breakpoint_accept(at, &pid);
    if (fd >= 0 && breakpoint_wait(fd, "\"armed\":", event)) {
        breakpoint_clear(at);
        strike(w);
        breakpoint_go(fd);
    }
}

/* Passes on what rank 0 prints. */
static void *follow(void *arg) {
    struct world *w = arg;
    char line[512];
    FILE *f = fdopen(w->out[0], "r");
    while (fgets(line, sizeof(line), f))
        fputs(line, stdout);
    fclose(f);
    return NULL;
}

/* Only rank 0's first process is held. */
static void start_all(struct world *w, int world, int step) {
    struct breakpoint at;
    char path[64];
    pthread_t follower;
    snprintf(path, sizeof(path), "/tmp/spawn-world-%d", (int)getpid());
    if (w->signo && breakpoint_open(&at, path, (uint64_t)step) == 0)
        setenv("RANKQUAKE_EVENTS", path, 1);
    w->pids[0] = start(0, w->out[1], w->argv);
    unsetenv("RANKQUAKE_EVENTS");
    for (int i = 1; i < world; i++)
        w->pids[i] = start(i, -1, w->argv);
    pthread_create(&follower, NULL, follow, w);
    if (w->signo) {
        hold(w, &at);
        breakpoint_close(&at);
        unlink(path);
    }
    close(w->out[1]);
    pthread_join(follower, NULL);
}

int main(int argc, char **argv) {
    struct world w = {.lost = -1};
    int status[WORLD_MAX];
    if (argc < 8 || strcmp(argv[6], "--") != 0)
        return 64;
    int world = atoi(argv[1]);
    w.n = world;
    w.signo = atoi(argv[3]);
    w.rank = atoi(argv[4]);
    w.argv = argv + 7;
    w.again = getenv("SPAWN_AGAIN") != NULL;
    if (world < 1 || world > WORLD_MAX || pipe2(w.out, O_CLOEXEC) < 0)
        return 64;
    alarm(100);
    setvbuf(stdout, NULL, _IOLBF, 0);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    set("WORLD_SIZE", world);
    set("MASTER_PORT", own_port());
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("RANKRUN_ROUND", argv[2], 1);
    setenv("TORCHELASTIC_RUN_ID", "test", 1);
    start_all(&w, world, atoi(argv[5]));
    if (w.signo == SIGSTOP)
        kill(w.pids[w.rank], SIGKILL);
    if (w.lost >= 0)
        kill(w.pids[w.lost], SIGKILL);
    for (int i = 0; i < world; i++)
        while (waitpid(w.pids[i], &status[i], 0) < 0 && errno == EINTR)
            continue;
    for (int i = 0; i < world; i++)
        printf("rank %d %s %d\n", i, WIFSIGNALED(status[i]) ? "signal" : "exit",
               WIFSIGNALED(status[i]) ? WTERMSIG(status[i]) : WEXITSTATUS(status[i]));
    return 0;
}
