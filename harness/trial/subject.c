#include "harness/trial/subject.h"

#include "base/sys/clock.h"
#include "scenarios/jobs/rankquake.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
    TICK_MS = 10,
    TICKS_PER_STEP = 2,
    WAIT_MS = 100, /* for a peer that does not answer */
    PART = 4096,   /* bytes of an exchange by TCP */
    DATAGRAM = 1200,
    DATAGRAMS = 6, /* in a tick */
    CLIENTS_MAX = 8,
    WANTED_MIB = 96,
    TRIPS_WANTED = 3,
    EXIT_FAILED = 1,
    EXIT_STUCK = 9
};
/* How long both go on after it was undone, so that a slower one comes to the same end; and at most. */
static const int64_t linger_ns = 250000000, stuck_ns = 8000000000;

struct subject_progress { /* of the fault, as the history tells */
    int fd;
    char part[1 << 16];
    size_t n;
    int64_t in_force_ns, over_ns; /* by our own clock; 0: not yet */
    bool shown, undone, given_up;
};

struct subject_peer {
    int control, stream, datagrams; /* of rank 0 they listen; -1: not there */
    int clients[CLIENTS_MAX];
    struct sockaddr_in at;
    int64_t trips; /* exchanges that were answered since the fault was over */
};

struct subject_state {
    const struct subject_task *s;
    struct subject_progress progress;
    struct subject_peer peer;
    struct rankquake q;
    int rank, world;
    bool said;
    uint64_t ticks, steps;
};

static char region[4096];

/* ---- the fault ---- */

static bool tells(const char *line, const char *kind) {
    char sign[100];
    snprintf(sign, sizeof(sign), "\"kind\":\"%s\",\"id\":\"" TRIAL_ID "\"", kind);
    return strstr(line, sign);
}

static void take_line(struct subject_progress *p, const char *line) {
    if (tells(line, "fault-in-force") && !p->in_force_ns)
        p->in_force_ns = clock_monotonic_ns();
    p->shown |= tells(line, "fault-evidence");
    p->undone |= tells(line, "fault-recovered");
    p->given_up |= tells(line, "fault-failed") || tells(line, "fault-not-fired");
}

/* A line that is longer than the part is read in pieces: none of those above is. */
static void look(struct subject_progress *p, const char *file) {
    ssize_t n;
    if (p->fd < 0)
        p->fd = open(file, O_RDONLY | O_CLOEXEC);
    while (p->fd >= 0 && (n = read(p->fd, p->part + p->n, sizeof(p->part) - 1 - p->n)) > 0) {
        p->n += (size_t)n;
        p->part[p->n] = '\0';
        char *line = p->part, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            take_line(p, line);
        }
        p->n = strlen(line);
        memmove(p->part, line, p->n);
        if (p->n == sizeof(p->part) - 1)
            p->n = 0;
    }
}

/* Frames are counted when it is undone: nothing shows it before. */
static bool is_ripe(const struct subject_state *t) {
    const struct subject_progress *p = &t->progress;
    return p->shown ||
           (p->in_force_ns && clock_monotonic_ns() > p->in_force_ns + t->s->patience_ns);
}

/* ---- what it exchanges ---- */

static void ask(const char *name) {
    struct addrinfo *found;
    if (name && getaddrinfo(name, NULL, NULL, &found) == 0)
        freeaddrinfo(found);
}

static void set_wait(int fd) {
    const struct timeval wait = {.tv_usec = WAIT_MS * 1000};
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)); /* of connect, too */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void drop(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static bool find_master(struct sockaddr_in *ret) {
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    const char *name = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    if (!name || !port || getaddrinfo(name, port, &hints, &found) != 0)
        return false;
    memcpy(ret, found->ai_addr, sizeof(*ret));
    freeaddrinfo(found);
    return true;
}

static int dial(const struct sockaddr_in *to, int type) {
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    set_wait(fd);
    if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) != 0)
        drop(&fd);
    return fd;
}

static bool exchange(int fd) {
    char part[PART] = {0};
    ssize_t got = 0, n = 1;
    if (send(fd, part, sizeof(part), MSG_NOSIGNAL) != (ssize_t)sizeof(part))
        return false;
    for (; n > 0 && got<(ssize_t)sizeof(part); got += n> 0 ? n : 0)
        n = recv(fd, part, sizeof(part), 0);
    return n > 0;
}

static void send_datagrams(int fd) {
    char text[DATAGRAM] = {0};
    for (int i = 0; i < DATAGRAMS; i++)
        send(fd, text, sizeof(text), MSG_NOSIGNAL | MSG_DONTWAIT);
    while (recv(fd, text, sizeof(text), MSG_DONTWAIT) > 0)
        continue;
}

/* Rank 0 tells each that connects at which port the rest goes on. */
static void connect_anew(struct subject_peer *p) {
    struct sockaddr_in at;
    uint16_t port;
    if (!find_master(&at))
        return;
    int fd = dial(&at, SOCK_STREAM);
    bool told = fd >= 0 && recv(fd, &port, sizeof(port), MSG_WAITALL) == sizeof(port);
    drop(&fd);
    if (!told)
        return;
    at.sin_port = port;
    if (memcmp(&at, &p->at, sizeof(at)) != 0) {
        p->at = at;
        drop(&p->stream);
        drop(&p->datagrams);
    }
}

static bool visit(struct subject_peer *p) {
    if (!p->at.sin_port)
        return false;
    if (p->stream < 0)
        p->stream = dial(&p->at, SOCK_STREAM);
    if (p->datagrams < 0)
        p->datagrams = dial(&p->at, SOCK_DGRAM);
    if (p->datagrams >= 0)
        send_datagrams(p->datagrams);
    if (p->stream >= 0 && exchange(p->stream))
        return true;
    drop(&p->stream);
    return false;
}

/* ---- rank 0 ---- */

static int offer(struct sockaddr_in *at, int type) {
    const int on = 1;
    socklen_t len = sizeof(*at);
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof(*at)) != 0 ||
        (type == SOCK_STREAM && listen(fd, CLIENTS_MAX) != 0) ||
        getsockname(fd, (struct sockaddr *)at, &len) != 0)
        drop(&fd);
    return fd;
}

static void open_doors(struct subject_peer *p) {
    struct sockaddr_in at;
    if (p->control >= 0 || !find_master(&at))
        return;
    struct sockaddr_in other = at;
    other.sin_port = 0;
    drop(&p->stream);
    drop(&p->datagrams);
    p->stream = offer(&other, SOCK_STREAM);
    p->datagrams = offer(&other, SOCK_DGRAM);
    p->at = other;
    if (p->stream >= 0 && p->datagrams >= 0)
        p->control = offer(&at, SOCK_STREAM);
}

static void let_in(struct subject_peer *p) {
    int fd;
    while (p->control >= 0 && (fd = accept4(p->control, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        send(fd, &p->at.sin_port, sizeof(p->at.sin_port), MSG_NOSIGNAL);
        close(fd);
    }
    while (p->stream >= 0 &&
           (fd = accept4(p->stream, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        int i = 0;
        while (i < CLIENTS_MAX - 1 && p->clients[i] >= 0)
            i++;
        drop(&p->clients[i]);
        set_wait(fd);
        p->clients[i] = fd;
    }
}

static bool answer(struct subject_peer *p) {
    char part[PART];
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    ssize_t n;
    bool any = false;
    while (p->datagrams >= 0 && (n = recvfrom(p->datagrams, part, sizeof(part), MSG_DONTWAIT,
                                              (struct sockaddr *)&from, &len)) > 0)
        sendto(p->datagrams, part, (size_t)n, MSG_DONTWAIT, (struct sockaddr *)&from, len);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (p->clients[i] < 0)
            continue;
        while ((n = recv(p->clients[i], part, sizeof(part), 0)) > 0)
            any |= send(p->clients[i], part, (size_t)n, MSG_NOSIGNAL) == n;
        if (n == 0 || errno != EAGAIN)
            drop(&p->clients[i]);
    }
    return any;
}

/* Until the tick is over; whoever is asked answers at once. */
static bool serve(struct subject_peer *p, int64_t until_ns) {
    bool any = false;
    open_doors(p);
    for (int64_t left; (left = until_ns - clock_monotonic_ns()) > 0;) {
        struct pollfd fds[CLIENTS_MAX + 3] = {{.fd = p->control, .events = POLLIN},
                                              {.fd = p->stream, .events = POLLIN},
                                              {.fd = p->datagrams, .events = POLLIN}};
        for (int i = 0; i < CLIENTS_MAX; i++)
            fds[3 + i] = (struct pollfd){.fd = p->clients[i], .events = POLLIN};
        poll(fds, CLIENTS_MAX + 3, (int)(left / 1000000) + 1);
        let_in(p);
        any |= answer(p);
    }
    return any;
}

/* ---- what it wants ---- */

static void *stand_by(void *arg) {
    for (;;)
        pause();
    return arg;
}

static pid_t have_child(void) {
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

/* The kernel ends the one that is the least, where it ends any. */
static void take_memory(void) {
    size_t n = (size_t)WANTED_MIB << 20;
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "1000", 4) < 0)
        fd = -1;
    char *v = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; v != MAP_FAILED && i < n; i += 4096)
        v[i] = 1;
    _exit(0);
}

static void want_all(const struct subject_state *t, int64_t until_ns) {
    if (t->ticks % 20 == 0 && fork() == 0)
        take_memory();
    if (t->ticks % 5 == 0 && fork() == 0)
        _exit(0);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    while (clock_monotonic_ns() < until_ns)
        clock_realtime_ns();
}

/* One puts a new file there, the others look at it. */
static void point_to(const char *dir, int rank, bool puts) {
    char next[4096], latest[4096];
    struct stat st;
    snprintf(latest, sizeof(latest), "%s/latest", dir);
    snprintf(next, sizeof(next), "%s/next-%d", dir, rank);
    if (!puts) {
        stat(latest, &st);
        return;
    }
    int fd = open(next, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0)
        rename(next, latest);
    drop(&fd);
}

static void save(const char *dir, int rank, bool puts) {
    char path[4096];
    mkdir(dir, 0777);
    snprintf(path, sizeof(path), "%s/saved-%d", dir, rank);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0 && write(fd, region, sizeof(region)) > 0)
        fsync(fd);
    drop(&fd);
    point_to(dir, rank, puts);
}

/* ---- the whole ---- */

static void wait_until(int64_t ns) {
    const struct timespec at = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

static void tick(struct subject_state *t) {
    int64_t end_ns = clock_monotonic_ns() + TICK_MS * INT64_C(1000000);
    clock_realtime_ns();
    if (t->s->wants && t->progress.in_force_ns && !t->progress.undone)
        want_all(t, end_ns - TICK_MS * INT64_C(300000));
    if (t->s->saves && t->ticks % 4 == 0)
        save(t->s->saves, t->rank, t->s->paces);
    bool went = false;
    if (t->ticks % 5 == 0)
        ask(t->s->asks);
    if (t->rank == 0) {
        went = serve(&t->peer, end_ns);
    } else {
        if (t->ticks % 5 == 0)
            connect_anew(&t->peer);
        went = visit(&t->peer);
        wait_until(end_ns);
    }
    t->peer.trips += went && t->progress.over_ns;
    if (++t->ticks % TICKS_PER_STEP == 0 && (went || t->rank == 0))
        rankquake_step(&t->q, ++t->steps, 0, 1, NULL, 0);
}

static void say_shown(struct subject_state *t) {
    if (t->said || !t->s->paces || !is_ripe(t))
        return;
    t->said = true;
    puts("shown");
    fflush(stdout);
}

static int number_of(const char *name, int absent) {
    const char *value = getenv(name);
    return value ? atoi(value) : absent;
}

/* Whether it is over; in the end that what was struck goes on is the kernel's to say: it ends by
 * itself, with 0. */
static bool is_over(struct subject_state *t, int *ret) {
    struct subject_progress *p = &t->progress;
    bool over = p->given_up || (t->s->lasts ? p->undone : is_ripe(t));
    int64_t now = clock_monotonic_ns();
    *ret = 0;
    if (t->s->fails && p->in_force_ns && number_of("TORCHELASTIC_RESTART_COUNT", 0) == 0)
        return *ret = EXIT_FAILED, true;
    if (!over)
        return false;
    if (!p->over_ns)
        p->over_ns = now;
    if (!t->s->lasts || p->given_up)
        return true;
    if (now > p->over_ns + stuck_ns)
        return *ret = EXIT_STUCK, true;
    return t->peer.trips >= TRIPS_WANTED && now > p->over_ns + linger_ns;
}

int subject_run(const struct subject_task *s) {
    static struct subject_state t;
    pthread_t second;
    int code;
    t = (struct subject_state){.s = s,
                               .progress = {.fd = -1},
                               .peer = {.control = -1, .stream = -1, .datagrams = -1},
                               .rank = number_of("RANK", 0),
                               .world = number_of("WORLD_SIZE", 1)};
    for (int i = 0; i < CLIENTS_MAX; i++)
        t.peer.clients[i] = -1;
    pid_t child = have_child();
    pthread_create(&second, NULL, stand_by, NULL);
    rankquake_open(&t.q);
    rankquake_region(&t.q, "weights", region, sizeof(region));
    rankquake_ready(&t.q);
    for (look(&t.progress, s->history); !is_over(&t, &code); look(&t.progress, s->history)) {
        say_shown(&t);
        tick(&t);
    }
    if (child > 0)
        kill(child, SIGKILL);
    rankquake_close(&t.q);
    return code;
}
