/* spawn_recorded DIR ROUNDS SIZE...: what recording by system calls costs a save. Two processes save so many bytes in turn,
 * as spawn_disk does: a new file, fsync, close, rename, fsync of the directory; one is recorded, the other is not.
 * The two saves of a round are neighbours in time, each first in every second round, so what else the machine does
 * meets both; between them lie 5 ms, in which a job would compute. Of large ones there are fewer rounds.
 *
 * Prints "save BYTES PLAIN_MS RECORDED_MS MORE_PERCENT MORE_US", medians over the rounds (the last two of what each
 * round says), and "call PLAIN_US WATCHED_US PASSED_US": a call that is not watched, one of which a watcher says at once that
 * it goes on, and one on which the record has nothing to say. */
#include "tests/bench/recording.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { MIB = 1 << 20, ROUNDS_MAX = 1000, CALLS = 100, PLAIN = 0, RECORDED = 1, WATCHED = 2 };
enum { LARGEST = 64 * MIB, BYTES_MAX = 600 * MIB }; /* of all rounds: the record holds them */
static const struct timespec step = {.tv_nsec =
                                         5000000}; /* between saves a job computes, elsewhere */

/* Of all processes. The semaphores are futexes, which nobody records. */
static struct shared {
    sem_t turn[3], done;
    size_t bytes; /* to be saved; 0: so many calls instead, which do nothing */
    bool ends;
    double took_s; /* by whoever had the turn last */
} * shared;
static char *content;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- who saves ---- */

static void save(int dir, size_t n) {
    int fd = open("model.tmp", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        recording_fails("model.tmp");
    for (size_t at = 0; at < n;) {
        ssize_t put = write(fd, content + at, n - at < MIB ? n - at : MIB);
        if (put <= 0)
            recording_fails("write");
        at += (size_t)put;
    }
    if (fsync(fd) != 0 || close(fd) != 0 || rename("model.tmp", "model") != 0 || fsync(dir) != 0)
        recording_fails("save");
}

static void call(int who) {
    for (int i = 0; i < CALLS; i++)
        if (who == WATCHED)
            syscall(SYS_getppid);
        else
            umask(022);
}

static void take_turns(const char *folder, int who) {
    if (chdir(folder) != 0)
        recording_fails(folder);
    int dir = open(".", O_RDONLY | O_DIRECTORY);
    for (;;) {
        while (sem_wait(&shared->turn[who]) != 0)
            ;
        if (shared->ends)
            _exit(0);
        double from = now_s();
        if (shared->bytes)
            save(dir, shared->bytes);
        else
            call(who);
        shared->took_s = now_s() - from;
        sem_post(&shared->done);
    }
}

static pid_t start(const char *folder, int who, int ends[2], const struct call_watch *w) {
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (w && call_watch_install(ends[1], w) != 0)
        recording_fails("watch system calls");
    close(ends[0]);
    close(ends[1]);
    take_turns(folder, who);
    return 0;
}

/* ---- who asks for it ---- */

static double turn(int who, size_t bytes) {
    if (bytes)
        nanosleep(&step, NULL);
    shared->bytes = bytes;
    sem_post(&shared->turn[who]);
    while (sem_wait(&shared->done) != 0)
        ;
    return shared->took_s;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof(*v), by_size);
    return v[n / 2];
}

static void compare_saves(size_t bytes, int rounds) {
    static double plain[ROUNDS_MAX], recorded[ROUNDS_MAX], more[ROUNDS_MAX], longer[ROUNDS_MAX];
    if (bytes > (size_t)(BYTES_MAX / rounds))
        rounds = (int)(BYTES_MAX / bytes);
    for (int i = -2; i < rounds; i++) { /* the first two are for what is made once */
        double took[2];
        for (int k = 0; k < 2; k++)
            took[(i + k) & 1] = turn((i + k) & 1, bytes);
        if (i < 0)
            continue;
        plain[i] = took[PLAIN];
        recorded[i] = took[RECORDED];
        more[i] = 100 * (took[RECORDED] / took[PLAIN] - 1);
        longer[i] = 1e6 * (took[RECORDED] - took[PLAIN]);
    }
    printf("save %zu %.3f %.3f %.1f %.0f\n", bytes, 1e3 * median(plain, rounds),
           1e3 * median(recorded, rounds), median(more, rounds), median(longer, rounds));
    fflush(stdout);
}

static void compare_calls(int rounds) {
    static double took[3][ROUNDS_MAX];
    static const int order[] = {PLAIN, WATCHED, RECORDED};
    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < 3; k++)
            took[order[k]][i] = turn(order[k], 0) / CALLS * 1e6;
    printf("call %.2f %.2f %.2f\n", median(took[PLAIN], rounds), median(took[WATCHED], rounds),
           median(took[RECORDED], rounds));
    fflush(stdout);
}

/* ---- who records, and who only lets pass ---- */

static void let_pass(int watch) {
    struct watched_call c;
    struct pollfd p = {.fd = watch, .events = POLLIN};
    int n = 0;
    while (n >= 0 && poll(&p, 1, -1) == 1) {
        n = call_watch_receive(watch, p.revents, &c);
        if (n > 0)
            call_watch_pass(watch, c.id);
    }
    _exit(0);
}

static void record(int watch, const char *folder) {
    char path[4200];
    snprintf(path, sizeof(path), "%s.record", folder);
    recording_run(watch, folder, path);
    _exit(0);
}

int main(int argc, char **argv) {
    static const struct call_watch other = {.numbers = {SYS_getppid}, .numbers_n = 1};
    const struct call_watch *watches[] = {NULL, call_record_watch(), &other};
    char folder[4096];
    int rounds = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    content = malloc(LARGEST);
    if (shared == MAP_FAILED || !content)
        recording_fails("memory");
    for (size_t i = 0; i < LARGEST; i++)
        content[i] = (char)(i * 2654435761u >> 11);
    sem_init(&shared->done, 1, 0);
    for (int i = 0; i < 3; i++) {
        int ends[2];
        sem_init(&shared->turn[i], 1, 0);
        snprintf(folder, sizeof(folder), "%s/%d", argv[1], i);
        if (mkdir(folder, 0755) != 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
            recording_fails(folder);
        pid_t pid = fork();
        if (pid == 0) {
            start(folder, i, ends, watches[i]);
            if (i == PLAIN)
                _exit(wait(NULL) < 0);
            int watch = recording_take(ends[0]);
            free(content);
            if (i == RECORDED)
                record(watch, folder);
            let_pass(watch);
        }
        close(ends[0]);
        close(ends[1]);
    }
    compare_calls(rounds < 50 ? rounds : 50);
    for (int i = 3; i < argc; i++)
        compare_saves((size_t)atoll(argv[i]) % LARGEST, rounds);
    shared->ends = true;
    for (int i = 0; i < 3; i++)
        sem_post(&shared->turn[i]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
