/* spawn_disk DIR WRITES SAVE...: moves WRITES MiB into a file of DIR in writes of a MiB, then saves checkpoints of so
 * many bytes each, as most savers do: a new file, fsync, rename, fsync of the directory. Prints "write MB_PER_S" and
 * "save BYTES MEDIAN_MS". */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, SAVES = 7 };

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void put(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t put = write(fd, bytes, n < MIB ? n : MIB);
        if (put <= 0)
            fail("write");
        n -= (size_t)put;
    }
}

static int create(const char *name) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        fail(name);
    return fd;
}

static void save(int dir, const char *bytes, size_t n) {
    int fd = create("model.tmp");
    put(fd, bytes, n);
    if (fsync(fd) != 0 || close(fd) != 0 || rename("model.tmp", "model") != 0 || fsync(dir) != 0)
        fail("save");
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure_save(int dir, const char *bytes, size_t n) {
    double took[SAVES];
    for (int i = 0; i < SAVES; i++) {
        double from = now_s();
        save(dir, bytes, n);
        took[i] = now_s() - from;
    }
    qsort(took, SAVES, sizeof(*took), by_size);
    printf("save %zu %.3f\n", n, took[SAVES / 2] * 1e3);
}

int main(int argc, char **argv) {
    enum { MAX = 64 * MIB };
    if (argc < 3 || chdir(argv[1]) != 0)
        return 2;
    int dir = open(".", O_RDONLY | O_DIRECTORY), writes = atoi(argv[2]);
    char *bytes = malloc(MAX);
    if (dir < 0 || !bytes)
        return 2;
    for (size_t i = 0; i < MAX; i++)
        bytes[i] = (char)(i * 2654435761u >> 11);
    if (writes > 0) {
        int fd = create("large");
        double from = now_s();
        for (int i = 0; i < writes; i++)
            put(fd, bytes + (size_t)(i % 64) * MIB, MIB);
        close(fd);
        printf("write %.0f\n", writes / (now_s() - from) * MIB / 1e6);
        unlink("large");
    }
    for (int i = 3; i < argc; i++)
        measure_save(dir, bytes, (size_t)atoll(argv[i]) % MAX);
    return 0;
}
