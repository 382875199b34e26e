/* How fast a launcher starts and restarts its workers, seen from outside.
 *
 *     spawn_restart KILLS WORKERS -- LAUNCHER...      (the launcher starts `spawn_restart worker`)
 *
 * A worker writes one line to its standard output, which it inherits from the launcher, and waits
 * to be killed. This program is the launcher's parent and reads those lines: a round has started
 * when all of its workers have been exec'ed and have written. Then it kills one worker, KILLS times
 * over. Every stamp is taken here, on one clock.
 *
 * Prints `start_ms A` and `restart_ms p50 min max`, and the launcher's memory while its workers
 * run. Then how much the launcher and its child, the guard, have grown from half of the kills on,
 * `growth KB DESCRIPTORS`; and where COUNT is set, a shell command that prints a number, how much
 * that has, and what it is, `count N M`.
 */
#include "base/sys/clock.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILLS_MAX = 1000, ROUND_DEADLINE_MS = 60000, SETTLED_MS = 1000 };

static int worker(void) {
    char line[64];
    int n = snprintf(line, sizeof(line), "worker %d\n", (int)getpid());
    if (write(STDOUT_FILENO, line, (size_t)n) != n)
        return 1;
    /* Lives until it is killed or nobody reads any more. */
    struct pollfd reader = {.fd = STDOUT_FILENO};
    while (poll(&reader, 1, -1) <= 0)
        ;
    return 0;
}

/* Reads lines of workers until `wanted` of them have come; *ret_pid is one of them. Returns the
 * stamp of the last, or -1 when the launcher has ended or the deadline has passed. */
static int64_t round_started(int fd, int wanted, pid_t *ret_pid) {
    static char text[8192];
    static size_t have;
    int64_t deadline = clock_monotonic_ns() + ROUND_DEADLINE_MS * INT64_C(1000000);
    while (wanted > 0) {
        char *end;
        while (wanted > 0 && (end = memchr(text, '\n', have)) != NULL) {
            int pid;
            *end = 0;
            if (sscanf(text, "worker %d", &pid) == 1) {
                *ret_pid = pid;
                wanted--;
            }
            have -= (size_t)(end + 1 - text);
            memmove(text, end + 1, have);
        }
        if (wanted == 0)
            break;
        int64_t left_ms = (deadline - clock_monotonic_ns()) / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0)
            return -1;
        ssize_t n = read(fd, text + have, sizeof(text) - have);
        if (n <= 0)
            return -1;
        have += (size_t)n;
    }
    return clock_monotonic_ns();
}

static pid_t launch(char **argv, int *ret_fd) {
    int fds[2];
    if (pipe(fds) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    close(fds[1]);
    *ret_fd = fds[0];
    return pid;
}

/* Private is what it has written: pages of libraries are the kernel's to drop, and private or not
 * as somebody else on this machine happens to have them mapped. */
static void read_memory(pid_t pid, long *ret_rss_kb, long *ret_private_kb) {
    char path[64], line[256];
    long kb;
    *ret_rss_kb = *ret_private_kb = 0;
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "Rss: %ld", &kb) == 1)
            *ret_rss_kb = kb;
        if (sscanf(line, "Private_Dirty: %ld", &kb) == 1)
            *ret_private_kb = kb;
    }
    if (f)
        fclose(f);
}

static void print_memory(pid_t pid) {
    long rss_kb, private_kb;
    read_memory(pid, &rss_kb, &private_kb);
    printf("memory_mb %.1f %.1f\n", (double)rss_kb / 1024, (double)private_kb / 1024);
}

/* ---- what must not grow ---- */

struct size {
    long private_kb, descriptors, count;
};

static long read_number(FILE *f) {
    long n = 0;
    if (f && fscanf(f, "%ld", &n) != 1)
        n = 0;
    return n;
}

static void add_process(struct size *s, pid_t pid) {
    char path[64];
    long rss_kb, private_kb;
    read_memory(pid, &rss_kb, &private_kb);
    s->private_kb += private_kb;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *fds = opendir(path);
    while (fds && readdir(fds))
        s->descriptors++;
    if (fds)
        closedir(fds);
}

/* The last line may come before the launcher has done with the round; and it has said its first
 * beat. */
static void take_size(pid_t launcher, struct size *ret) {
    char path[64];
    const char *count = getenv("COUNT");
    poll(NULL, 0, SETTLED_MS);
    *ret = (struct size){0};
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)launcher, (int)launcher);
    FILE *children = fopen(path, "r");
    add_process(ret, launcher);
    add_process(ret, (pid_t)read_number(children));
    if (children)
        fclose(children);
    FILE *f = count ? popen(count, "r") : NULL;
    ret->count = read_number(f);
    if (f)
        pclose(f);
}

static void print_growth(const struct size *from, const struct size *to) {
    printf("growth %ld %ld\n", to->private_kb - from->private_kb,
           to->descriptors - from->descriptors);
    if (getenv("COUNT"))
        printf("count %ld %ld\n", to->count - from->count, to->count);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(int kills, int workers, char **argv) {
    double restart_ms[KILLS_MAX];
    struct size warm = {0}, last;
    int fd = -1;
    pid_t one = 0;
    int64_t begin = clock_monotonic_ns();
    pid_t launcher = launch(argv, &fd);
    int64_t started = launcher < 0 ? -1 : round_started(fd, workers, &one);
    int done = 0;
    if (started >= 0) {
        printf("start_ms %.2f\n", (double)(started - begin) / 1e6);
        print_memory(launcher);
    }
    while (started >= 0 && done < kills) {
        int64_t killed = clock_monotonic_ns();
        kill(one, SIGKILL);
        started = round_started(fd, workers, &one);
        if (started >= 0)
            restart_ms[done++] = (double)(started - killed) / 1e6;
        if (done == kills / 2)
            take_size(launcher, &warm);
    }
    if (started >= 0 && kills > 1) {
        take_size(launcher, &last);
        print_growth(&warm, &last);
    }
    if (launcher > 0) {
        kill(launcher, SIGTERM);
        waitpid(launcher, NULL, 0);
    }
    if (started < 0) {
        fprintf(stderr, "%s: no round of %d workers after %d kills; see its messages above\n",
                argv[0], workers, done);
        return 1;
    }
    if (kills > 0) {
        qsort(restart_ms, (size_t)kills, sizeof(restart_ms[0]), by_value);
        printf("restart_ms %.2f %.2f %.2f\n", restart_ms[kills / 2], restart_ms[0],
               restart_ms[kills - 1]);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        return worker();
    int kills = argc > 4 ? atoi(argv[1]) : -1, workers = argc > 4 ? atoi(argv[2]) : 0;
    if (kills < 0 || kills > KILLS_MAX || workers < 1 || strcmp(argv[3], "--") != 0) {
        fprintf(stderr, "usage: spawn_restart KILLS WORKERS -- LAUNCHER...\n");
        return 64;
    }
    return measure(kills, workers, argv + 4);
}
