/* What one event costs the job that sends it: without a harness, with one that listens, and while
 * the event is armed, so that the sender is held and let go at once.
 *
 * The reader is a process of its own, as the harness is. Prints `silent_us`, `event_us` and
 * `armed_us`, each the median over the events that were delivered; one that is lost because the
 * reader was behind costs less and is not counted. */
#include "base/sys/clock.h"
#include "scenarios/jobs/rankquake.h"

#include <sys/wait.h>

enum { EVENTS = 20000 };

static void read_and_let_go(int fd) {
    char message[RANKQUAKE_MESSAGE_MAX];
    ssize_t n;
    while ((n = recv(fd, message, sizeof(message) - 1, 0)) > 0) {
        message[n] = 0;
        if (strstr(message, "\"armed\":") && send(fd, "g", 1, MSG_NOSIGNAL) != 1)
            break;
    }
    _exit(0);
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* An armed event is answered when all before it have been read. */
static void wait_for_reader(struct rankquake *q, struct rankquake_page *page) {
    page->kinds = UINT32_C(1) << RANKQUAKE_STEP;
    rankquake_step(q, 1, 0.5, 32, NULL, 0);
    page->kinds = 0;
}

static void measure(const char *name, struct rankquake *q, struct rankquake_page *page) {
    static int64_t took_ns[EVENTS];
    const int shards[] = {0, 3, 6, 9};
    for (int i = 0; i < EVENTS;) {
        int64_t begin = clock_monotonic_ns();
        int sent = rankquake_step(q, (uint64_t)i + 1, 0.5, 32, shards, 4);
        took_ns[i] = clock_monotonic_ns() - begin;
        if (sent < 0 && page)
            wait_for_reader(q, page);
        else
            i++;
    }
    qsort(took_ns, EVENTS, sizeof(took_ns[0]), by_value);
    printf("%s %.2f\n", name, (double)took_ns[EVENTS / 2] / 1e3);
}

int main(void) {
    struct rankquake q = {.fd = -1, .pid = getpid()};
    int pair[2];
    measure("silent_us", &q, NULL);
    struct rankquake_page *page =
        mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        perror("spawn_events: a page and a pair of sockets");
        return 1;
    }
    pid_t reader = fork();
    if (reader == 0) {
        close(pair[0]);
        read_and_let_go(pair[1]);
    }
    close(pair[1]);
    page->version = RANKQUAKE_VERSION_OF_PAGE;
    q.fd = pair[0];
    q.page = page;
    measure("event_us", &q, page);
    uint64_t lost = q.lost;
    page->kinds = UINT32_C(1) << RANKQUAKE_STEP;
    measure("armed_us", &q, NULL);
    printf("lost %llu of %d\n", (unsigned long long)lost, EVENTS);
    rankquake_close(&q);
    waitpid(reader, NULL, 0);
    return 0;
}
