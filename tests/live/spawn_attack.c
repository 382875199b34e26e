/* Does to an embedded store what nobody should, or looks at it meanwhile, over loopback:
 *
 *   spawn_attack PORT ATTACK [SECONDS]   ATTACK: of the table below, or all of it
 *   spawn_attack PORT beats              writes a run's session key ten times a second, as an agent
 * does, until standard input ends; then how long that took spawn_attack PORT newcomer           how
 * long one who comes now waits for its first answer
 *
 * It comes from ATTACK_FROM (127.0.0.1) and shows the token ATTACK_TOKEN, where they are set. What
 * an attack opens it keeps, unread, until standard input ends, or for SECONDS (60). All counts are
 * bounded. Exit 1 where an answer is not what it must be. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { OPEN_MAX = 12000, PATIENCE_MS = 20000, VALUE = 1 << 20, TEXT_MAX = 3 << 20 };

static struct sockaddr_in store, own;
static const char *token = "";
static int held[OPEN_MAX];
static int n_held;
static char value[VALUE * 4 / 3 + 16], text[TEXT_MAX], answer[1 << 16];

static void fail(const char *what) {
    fprintf(stderr, "spawn_attack: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* Begins to connect; -1: the system lets us have no more. */
static int begin(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0)
        fail("bind to ATTACK_FROM");
    if (connect(fd, (struct sockaddr *)&store, sizeof(store)) < 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool wait_for(int fd, short events, int ms) {
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, ms) > 0;
}

/* False: the store has ended it, or takes nothing for too long. */
static bool say(int fd, const char *p, size_t n) {
    while (n > 0) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno != EAGAIN && errno != ENOTCONN)
            return false;
        if (k < 0 && !wait_for(fd, POLLOUT, PATIENCE_MS))
            return false;
        p += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return true;
}

static bool ask(int fd, const char *path, const char *header, const char *body) {
    int n = snprintf(text, sizeof(text),
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s%s%sContent-Length: %zu\r\n\r\n%s",
                     path, header, token[0] ? "Authorization: Bearer " : "", token,
                     token[0] ? "\r\n" : "", strlen(body), body);
    return n > 0 && (size_t)n < sizeof(text) && say(fd, text, (size_t)n);
}

/* The status of a short answer; 0: none. */
static int hear(int fd) {
    size_t n = 0;
    while (n < sizeof(answer) - 1 && wait_for(fd, POLLIN, PATIENCE_MS)) {
        ssize_t k = recv(fd, answer + n, sizeof(answer) - 1 - n, 0);
        if (k <= 0)
            break;
        n += (size_t)k;
        answer[n] = '\0';
        const char *body = strstr(answer, "\r\n\r\n"), *length = strstr(answer, "Content-Length: ");
        if (body && length && strlen(body + 4) >= strtoul(length + 16, NULL, 10))
            return atoi(answer + 9);
    }
    return 0;
}

static int ask_once(const char *path, const char *header, const char *body) {
    int fd = begin(), status = 0;
    if (fd >= 0 && ask(fd, path, header, body))
        status = hear(fd);
    close(fd);
    return status;
}

static void keep(int fd) {
    if (fd >= 0 && n_held < OPEN_MAX)
        held[n_held++] = fd;
}

static void let_go(int seconds) {
    struct pollfd end = {.fd = 0, .events = POLLIN};
    char word;
    puts("holding");
    fflush(stdout);
    if (poll(&end, 1, seconds * 1000) > 0 && read(0, &word, 1) < 0)
        fail("standard input");
    for (int i = 0; i < n_held; i++)
        close(held[i]);
    n_held = 0;
}

/* ---- the attacks ---- */

static const char EVERYTHING[] = "{\"key\":\"AA==\",\"range_end\":\"AA==\"}";

/* Of n bytes before base64; key: base64. */
static const char *put_of(const char *key, size_t n) {
    static char body[sizeof(value) + 256];
    memset(value, 'A', n / 3 * 4);
    value[n / 3 * 4] = '\0';
    snprintf(body, sizeof(body), "{\"key\":\"%s\",\"value\":\"%s\"}", key, value);
    return body;
}

/* So many times a megabyte, under keys that are no run's. */
static void put_many(const char *what, int n) {
    int taken = 0, refused = 0;
    for (int i = 0; i < n; i++) {
        char key[16];
        snprintf(key, sizeof(key), "eHh4%04d", i); /* "xxx" and what these digits stand for */
        int status = ask_once("/v3/kv/put", "", put_of(key, VALUE));
        taken += status == 200;
        refused += status == 429;
    }
    printf("%s: %d megabytes taken, %d refused\n", what, taken, refused);
}

static void load(void) {
    put_many("load", 150);
}

static void fill(void) {
    put_many("fill", 204);
}

/* All there is, twelve times, and nobody reads it. */
static void answers(void) {
    for (int i = 0; i < 12; i++) {
        int fd = begin();
        if (fd >= 0)
            ask(fd, "/v3/kv/range", "", EVERYTHING);
        keep(fd);
    }
    printf("answers: 12 asked for, unread\n");
}

/* All that is no run's, in one request. */
static void deletion(void) {
    int64_t from = now_us();
    int status = ask_once("/v3/kv/deleterange", "", "{\"key\":\"YQ==\",\"range_end\":\"eg==\"}");
    printf("deletion: %d after %lld ms\n", status, (long long)(now_us() - from) / 1000);
}

/* 9,000 watches, each of a range of its own, and ten puts that concern them all. */
static void watches(void) {
    int opened = 0;
    deletion();
    for (int i = 0; i < 9000; i++) {
        char body[128];
        int fd = begin();
        snprintf(body, sizeof(body),
                 "{\"create_request\":{\"key\":\"eHh4%04d\",\"range_end\":\"AA==\","
                 "\"start_revision\":\"1\"}}",
                 i);
        opened +=
            fd >= 0 &&
            ask(fd, "/v3/watch", "",
                i % 2 ? body : "{\"create_request\":{\"key\":\"AA==\",\"range_end\":\"AA==\"}}");
        keep(fd);
    }
    int taken = 0;
    for (int i = 0; i < 10; i++)
        taken += ask_once("/v3/kv/put", "", put_of("eHh4MDAw", VALUE)) == 200;
    printf("watches: %d opened, unread; %d of 10 puts taken\n", opened, taken);
}

static void half_open(void) {
    for (int i = 0; i < 1500; i++)
        keep(begin());
    printf("half-open: %d\n", n_held);
}

/* Requests that come a byte at a time: half of them in their headers, half in their body. */
static void slow(void) {
    static const char head[] = "POST /v3/kv/put HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ";
    static const char body[] =
        "POST /v3/kv/put HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n{";
    for (int i = 0; i < 1000; i++) {
        int fd = begin();
        if (fd >= 0)
            say(fd, i % 2 ? head : body, strlen(i % 2 ? head : body));
        keep(fd);
    }
    for (int turn = 0; turn < 10; turn++) {
        for (int i = 0; i < n_held; i++)
            send(held[i], "x", 1, MSG_NOSIGNAL);
        poll(NULL, 0, 50);
    }
    printf("slow: %d requests a byte at a time\n", n_held);
}

/* Large bodies that never end, and headers without end. */
static void large(void) {
    int cut = 0;
    for (int i = 0; i < 200; i++) {
        int fd = begin();
        memset(text, 'x', VALUE);
        int n = snprintf(text, 200,
                         i % 4 ? "POST /v3/kv/put HTTP/1.1\r\nContent-Length: 1900000\r\n\r\n"
                               : "POST /v3/kv/put HTTP/1.1\r\nX: ");
        text[n] = 'x';
        if (fd >= 0)
            cut += !say(fd, text, VALUE);
        keep(fd);
    }
    printf("large: 200 requests of a megabyte and more to come; %d were cut off\n", cut);
}

static void storm(void) {
    int n = 0;
    for (int i = 0; i < 20000; i++) {
        int fd = begin();
        n += fd >= 0;
        if (fd >= 0)
            close(fd);
    }
    printf("storm: %d connections\n", n);
}

/* One after the other on connections that are kept; what is refused is, too. */
static void many(const char *what, const char *path, const char *format, int n) {
    int fd = -1, taken = 0, refused = 0;
    for (int i = 0; i < n; i++) {
        char body[128];
        fd = fd >= 0 ? fd : begin();
        snprintf(body, sizeof(body), format, i);
        int status = fd >= 0 && ask(fd, path, "", body) ? hear(fd) : 0;
        taken += status == 200;
        refused += status == 429;
        if (!status && fd >= 0)
            close(fd);
        fd = status ? fd : -1;
    }
    close(fd);
    printf("%s: %d taken, %d refused\n", what, taken, refused);
}

/* Leases of a second, so that thousands end at once, and leases that stay. */
static void leases(void) {
    many("leases of a second", "/v3/lease/grant", "{\"ID\":\"1%06d\",\"TTL\":\"1\"}", 9000);
    many("leases", "/v3/lease/grant", "{\"ID\":\"2%06d\",\"TTL\":\"600\"}", 9000);
}

static void keys(void) {
    deletion();
    many("keys", "/v3/kv/put", "{\"key\":\"a2V5%08d\"}", 40000);
}

/* As much as fits into a transaction, of everything there is; read, as fast as it comes. */
static void deep(void) {
    static char body[1 << 16];
    size_t n = (size_t)snprintf(body, sizeof(body), "{\"success\":[");
    for (int i = 0; i < 128; i++)
        n += (size_t)snprintf(body + n, sizeof(body) - n, "%s{\"request_range\":%s}", i ? "," : "",
                              EVERYTHING);
    snprintf(body + n, sizeof(body) - n, "]}");
    int64_t bytes = 0, until = now_us() + 2000000;
    struct pollfd p[40];
    for (int i = 0; i < 40; i++) {
        p[i] = (struct pollfd){.fd = begin(), .events = POLLIN};
        if (p[i].fd >= 0)
            ask(p[i].fd, i % 2 ? "/v3/kv/txn" : "/v3/kv/range", "", i % 2 ? body : EVERYTHING);
        keep(p[i].fd);
    }
    while (now_us() < until && poll(p, 40, 100) > 0)
        for (int i = 0; i < 40; i++) {
            ssize_t k = p[i].revents ? recv(p[i].fd, answer, sizeof(answer), 0) : 0;
            bytes += k > 0 ? k : 0;
            if (p[i].revents && k <= 0)
                p[i].fd = -1;
        }
    printf("deep: %lld megabytes read\n", (long long)(bytes >> 20));
}

static void pages(void) {
    int origin = ask_once("/v3/kv/put", "Origin: http://example.com\r\n", put_of("eHh4", 3));
    int fd = begin();
    static const char rebound[] = "GET /metrics HTTP/1.1\r\nHost: example.com\r\n\r\n";
    int host = fd >= 0 && say(fd, rebound, sizeof(rebound) - 1) ? hear(fd) : 0;
    close(fd);
    printf("pages: %d for an Origin, %d for a Host\n", origin, host);
    if (origin != 403 || (host != 403 && !token[0]))
        exit(1);
}

static const struct {
    const char *name;
    void (*attack)(void);
} attacks[] = {
    {"load", load},           {"fill", fill}, {"answers", answers}, {"watches", watches},
    {"half-open", half_open}, {"slow", slow}, {"large", large},     {"storm", storm},
    {"leases", leases},       {"keys", keys}, {"deep", deep},       {"deletion", deletion},
    {"pages", pages},
};

/* ---- who looks at it meanwhile ---- */

static int by_size(const void *a, const void *b) {
    int64_t p = *(const int64_t *)a, q = *(const int64_t *)b;
    return (p > q) - (p < q);
}

static void must(int status, const char *what) {
    if (status != 200) {
        fprintf(stderr, "spawn_attack: %s was answered with %d: %.300s\n", what, status, answer);
        exit(1);
    }
}

/* /rankrun/probe/cur, then /rankrun/probe/<inc>/s/<uid>. */
static int beats(void) {
    static int64_t took[100000];
    static const char session[] =
        "{\"key\":\"L3JhbmtydW4vcHJvYmUvMDAwMDAwMDAwMDAwMDAwMC9zLzAwMDAwMDAwMDAwMDAwMDAwM"
        "DAwMDAwMDAwMDAwMDAw\",\"value\":\"e30=\"}";
    size_t n = 0;
    must(ask_once("/v3/kv/put", "", "{\"key\":\"L3JhbmtydW4vcHJvYmUvY3Vy\",\"value\":\"e30=\"}"),
         "a run");
    int fd = begin();
    struct pollfd end = {.fd = 0, .events = POLLIN};
    puts("beating");
    fflush(stdout);
    do {
        int64_t from = now_us();
        must(ask(fd, "/v3/kv/put", "", session) ? hear(fd) : 0, "a beat");
        took[n++] = now_us() - from;
    } while (n < sizeof(took) / sizeof(*took) && poll(&end, 1, 100) == 0);
    qsort(took, n, sizeof(*took), by_size);
    printf("beats %zu median_us %lld most_us %lld\n", n, (long long)took[n / 2],
           (long long)took[n - 1]);
    return 0;
}

static int newcomer(void) {
    int64_t from = now_us();
    int status = ask_once("/v3/kv/range", "", "{\"key\":\"YQ==\"}");
    must(status, "a newcomer");
    printf("newcomer_us %lld\n", (long long)(now_us() - from));
    return 0;
}

static int attack(const char *name, int seconds) {
    bool all = strcmp(name, "all") == 0, found = false;
    for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
        if (!all && strcmp(name, attacks[i].name) != 0)
            continue;
        found = true;
        attacks[i].attack();
        let_go(seconds);
    }
    if (!found)
        fprintf(stderr, "spawn_attack: no attack has the name %s\n", name);
    return !found;
}

int main(int argc, char **argv) {
    struct rlimit files;
    const char *from = getenv("ATTACK_FROM");
    token = getenv("ATTACK_TOKEN") ? getenv("ATTACK_TOKEN") : "";
    if (argc < 3)
        return 64;
    store = (struct sockaddr_in){.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)atoi(argv[1])),
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
    own = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (from && inet_pton(AF_INET, from, &own.sin_addr) != 1)
        return 64;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGPIPE, SIG_IGN);
    if (strcmp(argv[2], "beats") == 0)
        return beats();
    if (strcmp(argv[2], "newcomer") == 0)
        return newcomer();
    return attack(argv[2], argc > 3 ? atoi(argv[3]) : 60);
}
