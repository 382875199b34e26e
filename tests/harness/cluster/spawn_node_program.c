/* What the tests of the cluster run in nodes: spawn_node_program WHAT ARG... ends 0 when it saw
 * what it should, else 1 with a line on stderr. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

/* Everything waits for the other side, but not for ever. */
static void be_patient(int fd) {
    struct timeval wait = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

static int listen_at(int port) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (void *)&addr, sizeof(addr)) != 0 || listen(fd, 64) != 0)
        return -1;
    return fd;
}

/* Tells the harness that it is ready: one connection to RANKQUAKE_EVENTS, kept open. */
static int tell(void) {
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const char *path = getenv("RANKQUAKE_EVENTS");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (!path)
        return -1;
    strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 1);
    return connect(fd, (void *)&addr, sizeof(addr));
}

static void *echo(void *arg) {
    int c = (int)(intptr_t)arg;
    char bytes[65536];
    for (ssize_t n; (n = read(c, bytes, sizeof(bytes))) > 0;)
        if (write(c, bytes, (size_t)n) != n)
            break;
    close(c);
    return NULL;
}

/* serve PORT: echoes what each connection sends, for ever. */
static int serve(const char *port) {
    pthread_t thread;
    int fd = listen_at(atoi(port));
    if (fd < 0 || tell() != 0)
        return fail("listen");
    for (;;) {
        int c = accept(fd, NULL, NULL);
        if (c >= 0 && pthread_create(&thread, NULL, echo, (void *)(intptr_t)c) == 0)
            pthread_detach(thread);
    }
}

static int connect_to(const char *node, const char *port) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(node, port, &hints, &found) != 0)
        return -1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    be_patient(fd);
    int r = connect(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return r == 0 ? fd : -1;
}

static bool exchange(int fd, size_t bytes) {
    char *sent = malloc(bytes), *got = malloc(bytes);
    memset(sent, 'x', bytes);
    size_t n = 0;
    bool ok = write(fd, sent, bytes) == (ssize_t)bytes;
    for (ssize_t r; ok && n < bytes; n += (size_t)r)
        ok = (r = read(fd, got + n, bytes - n)) > 0;
    ok = ok && memcmp(sent, got, bytes) == 0;
    free(sent);
    free(got);
    return ok;
}

/* ask NODE PORT BYTES */
static int ask(const char *node, const char *port, const char *bytes) {
    int fd = connect_to(node, port);
    if (fd < 0 || !exchange(fd, (size_t)atoi(bytes)))
        return fail(node);
    return 0;
}

/* lose NODE PORT loud|silent: exchanges a byte, tells the harness, and waits for the other side to
 * be lost: by a FIN or RST, or by nothing at all, which TCP calls a timeout. */
static int lose(const char *node, const char *port, const char *how) {
    char byte;
    unsigned give_up_ms = 1000;
    int fd = connect_to(node, port), beat_s = 1, on = 1;
    if (fd < 0 || !exchange(fd, 1))
        return fail(node);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, sizeof(give_up_ms));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &beat_s, sizeof(beat_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &beat_s, sizeof(beat_s));
    if (tell() != 0)
        return fail("tell");
    ssize_t n = read(fd, &byte, 1);
    bool loud = n == 0 || (n < 0 && errno == ECONNRESET);
    bool silent = n < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH);
    if (strcmp(how, "loud") == 0 ? loud : silent)
        return 0;
    return fail(n == 0 ? "end of file" : "read");
}

/* unheard NODE PORT: calls, and for a second nothing comes back, not even a refusal. */
static int unheard(const char *node, const char *port) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(node, port, &hints, &found) != 0)
        return fail(node);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, 1000) == 0 ? 0 : fail("an answer came");
}

/* What a node that shares the host's IPC namespace would leave to the host. */
static bool make_system_v(void) {
    return semget(IPC_PRIVATE, 1, 0600) >= 0 && msgget(IPC_PRIVATE, 0600) >= 0;
}

/* litter end|all|wait PORT: leaves a process, a port and a file in shared memory behind, with all
 * semaphores and a queue too, or tells the harness that they are there and waits with them. */
static int litter(const char *how, const char *port) {
    int ready[2];
    char byte, name[64];
    snprintf(name, sizeof(name), "/dev/shm/litter-%s", port);
    if (pipe(ready) != 0)
        return fail("pipe");
    if (fork() == 0) {
        setsid();
        int fd = listen_at(atoi(port)), shm = open(name, O_CREAT | O_WRONLY, 0600);
        bool made = strcmp(how, "all") != 0 || make_system_v();
        if (fd < 0 || shm < 0 || !made || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    if (read(ready[0], &byte, 1) != 1)
        return fail("litter");
    if (strcmp(how, "wait") == 0 && tell() == 0)
        for (;;)
            pause();
    return 0;
}

/* view NAME CWD FILE: the node is what it should be. */
static int view(const char *name, const char *cwd, const char *file) {
    char text[4096];
    errno = 0;
    if (gethostname(text, sizeof(text)) != 0 || strcmp(text, name) != 0)
        return fail("host name");
    if (!getcwd(text, sizeof(text)) || strcmp(text, cwd) != 0)
        return fail("directory");
    if (access(file, R_OK) != 0)
        return fail(file);
    if (access("/tmp/rankquake-other-node", F_OK) == 0)
        return fail("/tmp is not the node's own");
    close(open("/tmp/rankquake-other-node", O_CREAT | O_WRONLY, 0600));
    struct addrinfo *found, hints = {.ai_family = AF_INET};
    const char *const names[] = {"n0", "n1", "n2", "localhost", name};
    for (int i = 0; i < 5; i++) {
        if (getaddrinfo(names[i], NULL, &hints, &found) != 0)
            return fail(names[i]);
        freeaddrinfo(found);
    }
    int server = listen_at(5000), client = connect_to("localhost", "5000");
    return server < 0 || client < 0 ? fail("localhost") : 0;
}

/* big: an environment longer than a packet arrived whole. */
static int big(const char *length) {
    const char *value = getenv("BIG");
    return value && strlen(value) == (size_t)atoi(length) ? 0 : fail("BIG");
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "serve") == 0 && argc == 3)
        return serve(argv[2]);
    if (strcmp(what, "ask") == 0 && argc == 5)
        return ask(argv[2], argv[3], argv[4]);
    if (strcmp(what, "lose") == 0 && argc == 5)
        return lose(argv[2], argv[3], argv[4]);
    if (strcmp(what, "view") == 0 && argc == 5)
        return view(argv[2], argv[3], argv[4]);
    if (strcmp(what, "unheard") == 0 && argc == 4)
        return unheard(argv[2], argv[3]);
    if (strcmp(what, "litter") == 0 && argc == 4)
        return litter(argv[2], argv[3]);
    if (strcmp(what, "big") == 0 && argc == 3)
        return big(argv[2]);
    if (strcmp(what, "wait") == 0 && tell() == 0)
        for (;;)
            pause();
    fprintf(stderr, "%s: what?\n", what);
    return 2;
}
