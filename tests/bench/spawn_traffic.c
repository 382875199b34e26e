/* Traffic to measure a network with, for ci/bench; all over one TCP connection to port 5201:
 *   spawn_traffic sink           takes what comes and checks every byte; prints "gbit N",
 *                                per second
 *   spawn_traffic blast ADDR     sends for two seconds
 *   spawn_traffic echo           answers each byte
 *   spawn_traffic ask ADDR       prints "rtt_us MEDIAN" of 5,000 round trips of one byte */
#include "base/sys/clock.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 5201, ROUND_TRIPS = 5000, PATIENCE_S = 30 };

static const int64_t blast_ns = 2000000000;
enum { PERIOD = 1 << 17 }; /* of what is sent: a byte that is lost or doubled shifts all after it */
static char bytes[1 << 18], sent[2 * PERIOD];

/* Numbers that do not repeat within the period. */
static void fill(void) {
    uint32_t x = 1;
    for (int i = 0; i < PERIOD; i++) {
        x = x * 1664525 + 1013904223;
        sent[i] = sent[i + PERIOD] = (char)(x >> 24);
    }
}

static void check(int64_t at, ssize_t n) {
    for (ssize_t done = 0, part; done < n; done += part) {
        part = n - done < PERIOD ? n - done : PERIOD;
        if (memcmp(bytes + done, sent + (at + done) % PERIOD, (size_t)part) == 0)
            continue;
        fprintf(stderr, "spawn_traffic: what arrived is not what was sent, at byte %lld\n",
                (long long)(at + done));
        exit(1);
    }
}

static int connection(int fd) {
    int on = 1;
    if (fd < 0) {
        perror("spawn_traffic");
        exit(1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* Prints a line when it listens, so that nobody connects too early. */
static int accept_one(void) {
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (void *)&addr, sizeof(addr)) != 0 || listen(fd, 1) != 0)
        return connection(-1);
    puts("listening");
    fflush(stdout);
    return connection(accept(fd, NULL, NULL));
}

static int connect_to(const char *text) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (inet_pton(AF_INET, text, &addr.sin_addr) != 1 ||
        connect(fd, (void *)&addr, sizeof(addr)) != 0)
        return connection(-1);
    return connection(fd);
}

static int serve(int fd, int answers) {
    int64_t begin_ns = clock_monotonic_ns(), total = 0;
    for (ssize_t n; (n = read(fd, bytes, sizeof(bytes))) > 0; total += n) {
        if (answers && write(fd, bytes, (size_t)n) != n)
            return 1;
        if (!answers)
            check(total, n);
    }
    if (!answers)
        printf("gbit %.1f\n", (double)total * 8 / (double)(clock_monotonic_ns() - begin_ns));
    return 0;
}

static int blast(int fd) {
    int64_t until_ns = clock_monotonic_ns() + blast_ns, total = 0;
    while (clock_monotonic_ns() < until_ns) {
        ssize_t n = write(fd, sent + total % PERIOD, PERIOD);
        if (n < 0)
            return 1;
        total += n;
    }
    return 0;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int ask(int fd) {
    static int64_t took_ns[ROUND_TRIPS];
    for (int i = 0; i < ROUND_TRIPS; i++) {
        int64_t begin_ns = clock_monotonic_ns();
        if (write(fd, bytes, 1) != 1 || read(fd, bytes, 1) != 1)
            return 1;
        took_ns[i] = clock_monotonic_ns() - begin_ns;
    }
    qsort(took_ns, ROUND_TRIPS, sizeof(*took_ns), by_size);
    printf("rtt_us %.0f\n", (double)took_ns[ROUND_TRIPS / 2] / 1e3);
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    alarm(PATIENCE_S);
    fill();
    if (strcmp(what, "sink") == 0 || strcmp(what, "echo") == 0)
        return serve(accept_one(), *what == 'e');
    if (strcmp(what, "blast") == 0 && argc == 3)
        return blast(connect_to(argv[2]));
    if (strcmp(what, "ask") == 0 && argc == 3)
        return ask(connect_to(argv[2]));
    return 2;
}
