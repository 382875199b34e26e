/* What the observer does with all that is said to it, in a host that is played: who connects, what it runs, what it
 * says, who ends and who is held are drawn; each call and each record is on record. */
#include "tests/harness/observe/noted.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "base/sys/sent.h"
#include "harness/carrier/armed_page.h"
#include "harness/carrier/given.h"
#include "harness/carrier/host_process.h"
#include "harness/observe/pidfds.h"
#include "harness/observe/spawned.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { STEPS = 120, CLIENTS_MAX = 12, PIDS = 6, FLOOD = 2600 };

/* Each is the parent of those whose number begins so: 5 of 51 and 52, 51 of 511. */
static const pid_t pids[PIDS] = {51, 52, 511, 512, 5111, 7};

struct played_client {
    bool is;
    int fd; /* -1: on another host */
    loop_fd_fn *fn;
    void *arg;
    bool paused, ends;
    const char *says[8];
    int first, last;
    int flood; /* so many more of one message */
    struct event_client *far;
};

static struct {
    int64_t now_ns;
    struct played_client v[CLIENTS_MAX];
    struct {
        pid_t pid;
        int pidfd;
        bool ends;
    } watched[PIDS + CLIENTS_MAX];
    size_t watched_n;
    void (*ended)(void *arg, pid_t pid);
    void *ended_arg;
    loop_timer_fn *on_again;
    void *on_again_arg;
    struct observer *o;
    struct rankquake_page page;
    int page_fd;
} world;

static int64_t played_now(void) {
    return world.now_ns++;
}

/* ---- who is there ---- */

static int played_stat(const char *path, struct stat *st) {
    int pid = 0;
    *st = (struct stat){.st_dev = 3, .st_ino = 4};
    if (strcmp(path, "/probe") == 0)
        return fails("stat %s", path) ? -1 : 0;
    assert_int_equal(sscanf(path, "/proc/%d/exe", &pid), 1);
    int runs = draw(6);
    note("%d runs %d", pid, runs);
    st->st_dev = runs == 0 ? 9 : 3;
    st->st_ino = runs == 1 || runs == 2 ? 9 : 4;
    return runs == 3 ? -1 : 0;
}

static int played_process_look(pid_t pid, struct process_look *ret) {
    *ret = (struct process_look){.parent = pid / 10};
    return pid > 10 ? 0 : -ESRCH;
}

/* 7 is of another host, where its parent is known as 52. */
static bool played_is_far(pid_t pid) {
    return pid == 7;
}

static pid_t played_far_parent(pid_t pid) {
    note("parent of %d there", (int)pid);
    return 52;
}

static int played_getsockopt(int fd, int level, int name, void *value, socklen_t *len) {
    assert_true(played.open[fd] && *len == sizeof(int));
    if (fails("getsockopt %d %d %d", fd, level, name))
        return -1;
    int pidfd = played_open();
    memcpy(value, &pidfd, sizeof(pidfd));
    return 0;
}

static long played_syscall(long number, pid_t pid, int flags) {
    bool not = fails("syscall %ld %d %d", number, (int)pid, flags);
    return not ? -1 : played_open();
}

static bool played_spawned_read(struct spawned *s, pid_t pid) {
    *s = (struct spawned){.rank = draw(4) - 1, .world_size = 2 + draw(2)};
    note("%d was given %d of %d", (int)pid, s->rank, s->world_size);
    return s->rank >= 0;
}

static void played_spawned_fini(struct spawned *s) {
    note("spawned ends");
}

static void played_spawned_put(struct json_writer *w, const struct spawned *s, pid_t pid,
                               const struct json *env) {
    char number[12];
    snprintf(number, sizeof(number), "%d", s->rank);
    json_object(w, "env");
    json_put_string(w, "RANK", env ? json_get_string(env, "RANK", "") : number);
    json_put_string(w, "WORLD_SIZE", env ? json_get_string(env, "WORLD_SIZE", "") : "2");
    json_end_object(w);
}

static void played_given(struct json_writer *w, const struct given_key *k, pid_t pid) {
    json_put_i64(w, "umask", pid);
}

static void played_planned(struct json_writer *w, const struct given_key *k, pid_t parent,
                           const char *const *env, const char *cwd) {
    json_put_i64(w, "umask", parent);
    json_put_string(w, "cwd", cwd);
    json_put_string(w, "first", env[0]);
}

static void played_key(struct given_key *k) {
    memset(k, 7, sizeof(*k));
}

/* ---- pidfds ---- */

static struct pidfds *played_pidfds_new(struct loop *l, struct recorder *rec,
                                        const struct exit_sources *sources,
                                        void (*ended)(void *arg, pid_t pid), void *arg) {
    assert_true(rec == &noted.rec && sources == &exit_sources_of_host);
    world.ended = ended;
    world.ended_arg = arg;
    return (struct pidfds *)&world.watched;
}

static struct pidfds *played_pidfds_free(struct pidfds *p) {
    assert_ptr_equal(p, &world.watched);
    for (size_t i = 0; i < world.watched_n; i++)
        played_shut(world.watched[i].pidfd);
    world.watched_n = 0;
    note("pidfds end");
    return NULL;
}

static int played_pidfds_find(const struct pidfds *p, pid_t pid) {
    for (size_t i = 0; i < world.watched_n; i++)
        if (world.watched[i].pid == pid)
            return world.watched[i].pidfd;
    return -1;
}

static void played_pidfds_watch(struct pidfds *p, const char *node, pid_t pid, int pidfd,
                                int64_t since_ns) {
    note("watch %d of %s by %d since %lld", (int)pid, node, pidfd, (long long)since_ns);
    assert_true(played.open[pidfd]);
    if (played_pidfds_find(p, pid) >= 0) {
        played_shut(pidfd);
        return;
    }
    assert_true(world.watched_n < sizeof(world.watched) / sizeof(*world.watched));
    world.watched[world.watched_n].pid = pid;
    world.watched[world.watched_n].ends = false;
    world.watched[world.watched_n++].pidfd = pidfd;
}

/* The end of one is told, and then it is forgotten. */
static void end_watched(size_t i) {
    pid_t pid = world.watched[i].pid;
    world.ended(world.ended_arg, pid);
    played_shut(world.watched[i].pidfd);
    world.watched[i] = world.watched[--world.watched_n];
    struct json_writer *w = recorder_begin(&noted.rec, played_now(), SOURCE_KERNEL, "worker-exit");
    json_put_i64(w, "pid", pid);
    recorder_end(&noted.rec, NULL);
}

static void played_pidfds_drain(struct pidfds *p) {
    note("drain");
    for (size_t i = 0; i < world.watched_n;)
        if (world.watched[i].ends)
            end_watched(i);
        else
            i++;
}

static const char *played_pidfds_way(const struct pidfds *p) {
    return "by hand";
}

/* ---- sockets ---- */

static struct played_client *client_of(int fd) {
    for (int i = 0; i < CLIENTS_MAX; i++)
        if (world.v[i].is && world.v[i].fd == fd && fd >= 0)
            return &world.v[i];
    return NULL;
}

static ssize_t played_recvmsg(int fd, struct msghdr *m, int flags) {
    static const char flood[] = "{\"kind\":\"step\",\"step\":9}";
    struct played_client *c = client_of(fd);
    assert_true(c && m->msg_iovlen == 1 && m->msg_iov->iov_len == RANKQUAKE_MESSAGE_MAX + 1);
    const char *text = c->first < c->last ? c->says[c->first++] : c->flood ? flood : NULL;
    if (text == flood)
        c->flood--;
    else
        note("receive from %d, %d, %zu: %s", fd, flags, (size_t)m->msg_controllen,
             text      ? text
             : c->ends ? "the end"
                       : "nothing");
    errno = draw(2) ? EAGAIN : EINTR;
    if (!text)
        return c->ends ? (draw(2) ? 0 : (errno = ECONNRESET, -1)) : -1;
    memcpy(m->msg_iov->iov_base, text, strlen(text));
    return (ssize_t)strlen(text);
}

static ssize_t played_send(int fd, const void *data, size_t n, int flags) {
    note("let %d go: %.*s, %d", fd, (int)n, (const char *)data, flags);
    assert_true(played.open[fd]);
    return (ssize_t)n;
}

static int played_descriptors_send(int fd, const void *data, size_t len, const int *fds, size_t n,
                                   int flags) {
    note("give %d %.*s with %d of %zu, %d", fd, (int)len, (const char *)data, fds[0], n, flags);
    return 0;
}

static void played_sent_ask(int fd) {
    note("ask when sent on %d", fd);
}

static int64_t played_sent(struct msghdr *m) {
    return 4711;
}

static int played_page_make(struct armed_page *ret, struct err *err) {
    if (fails("make a page"))
        return err_set(err, -errno, "make a page");
    *ret = (struct armed_page){&world.page, world.page_fd = played_open()};
    return 0;
}

static void played_page_set(struct armed_page *p, uint32_t kinds, uint64_t next_step) {
    note("armed %x from %llu", kinds, (unsigned long long)next_step);
}

static void played_page_end(struct armed_page *p) {
    if (p->fd >= 0)
        played_shut(p->fd);
    *p = ARMED_PAGE_NONE;
}

/* ---- the loop ---- */

static struct loop_source *played_loop_fd(struct loop *l, int fd, int what, loop_fd_fn *fn,
                                          void *arg) {
    struct played_client *c = client_of(fd);
    note("listen to %d for %d", fd, what);
    c->fn = fn;
    c->arg = arg;
    return (struct loop_source *)c;
}

static void played_loop_fd_set(struct loop_source *s, int what) {
    struct played_client *c = (struct played_client *)s;
    note("listen to %d for %d now", c->fd, what);
    c->paused = !what;
}

static struct loop_source *played_loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    world.on_again = fn;
    world.on_again_arg = arg;
    return (struct loop_source *)&world.on_again;
}

static void played_timer_at(struct loop_source *s, int64_t at_ns) {
    assert_ptr_equal(s, &world.on_again);
    note("again at %lld", (long long)at_ns);
}

static struct loop_source *played_source_free(struct loop_source *s) {
    struct played_client *c = (struct played_client *)s;
    if (s == (void *)&world.on_again) {
        note("no timer any more");
        world.on_again = NULL;
    } else if (s) {
        note("listen to %d no more", c->fd);
        c->is = false;
    }
    return NULL;
}

#define stat(path, st)      played_stat(path, st)
#define process_look(p, l)  played_process_look(p, l)
#define host_process_is     played_is_far
#define host_process_parent played_far_parent
#define getsockopt          played_getsockopt
#define syscall             played_syscall
#define spawned_read        played_spawned_read
#define spawned_fini        played_spawned_fini
#define spawned_put         played_spawned_put
#define given_put           played_given
#define given_put_planned   played_planned
#define given_key_draw      played_key
#define pidfds_new          played_pidfds_new
#define pidfds_free         played_pidfds_free
#define pidfds_find         played_pidfds_find
#define pidfds_watch        played_pidfds_watch
#define pidfds_drain        played_pidfds_drain
#define pidfds_way          played_pidfds_way
#define recvmsg             played_recvmsg
#define send(f, d, n, how)  played_send(f, d, n, how)
#define descriptors_send    played_descriptors_send
#define sent_ask            played_sent_ask
#define sent_ns             played_sent
#define armed_page_make     played_page_make
#define armed_page_set      played_page_set
#define armed_page_end      played_page_end
#define loop_fd             played_loop_fd
#define loop_fd_set         played_loop_fd_set
#define loop_timer          played_loop_timer
#define loop_timer_at       played_timer_at
#define loop_source_free    played_source_free
#define clock_monotonic_ns  played_now
#define file_close          played_file_close
#include "harness/observe/events.c"
#undef stat
#undef syscall
#undef send

/* ---- what comes next ---- */

static const char *const texts[] = {
    "{\"v\":1,\"seq\":4,\"lost\":2,\"kind\":\"step\",\"step\":3,\"loss\":0.5}",
    "{\"kind\":\"step\",\"step\":5,\"armed\":1}",
    "{\"kind\":\"step\",\"step\":5,\"armed\":1}",
    "{\"kind\":\"worker-start\",\"env\":{\"RANK\":\"0\",\"WORLD_SIZE\":\"2\"}}",
    "{\"kind\":\"worker-start\",\"env\":{\"RANK\":\"1\",\"WORLD_SIZE\":\"2\"}}",
    "{\"kind\":\"exec-failed\",\"code\":2}",
    "{\"kind\":\"rank\",\"env\":{\"RANK\":\"1\",\"WORLD_SIZE\":\"3\"},\"armed\":1}",
    "{\"kind\":\"rank\",\"env\":{\"RANK\":\"2\",\"WORLD_SIZE\":\"3\"}}",
    "{\"kind\":\"launcher\",\"what\":\"round\"}",
    "{\"kind\":\"lunch\",\"source\":\"kernel\",\"t\":1,\"node\":\"x\",\"pid\":9,\"from\":1,"
    "\"sent\":2,"
    "\"bound\":3,\"there\":4,\"kept\":5}",
    "{\"kind\":\"done\",\"model\":\"ff\"}",
    "certainly {not",
    "{\"kind\":\"rank\"}",
};

/* Some are held by one or two, and some let go while it is told. */
static void on_told(const struct record *r, struct event_client *from) {
    if (!from)
        return;
    note("held %d", client_is_held(from));
    if (!client_is_held(from))
        return;
    for (int tag = 1; tag <= 3; tag++)
        if (draw(3) == 0)
            client_keep(from, tag);
    if (draw(3) == 0)
        client_keep(from, 2);
    if (draw(3) == 0)
        observer_release(world.o, 1 + draw(3));
}

static void on_end(void *arg, pid_t pid) {
    note("%s: %d has ended", (const char *)arg, (int)pid);
}

static void on_arm(void *arg, uint32_t kinds, uint64_t next_step) {
    note("%s: armed %x from %llu", (const char *)arg, kinds, (unsigned long long)next_step);
}

static void on_kept(void *arg, const char *node, pid_t pid, pid_t speaker) {
    note("%s: %s %d by %d", (const char *)arg, node, (int)pid, (int)speaker);
}

static void on_go(void *arg) {
    note("%s: it may go on", (const char *)arg);
}

static void on_forgotten(void *arg) {
    note("%s: it is forgotten", (const char *)arg);
}

static struct played_client *some_client(bool is) {
    int from = draw(CLIENTS_MAX);
    for (int i = 0; i < CLIENTS_MAX; i++)
        if (world.v[(from + i) % CLIENTS_MAX].is == is)
            return &world.v[(from + i) % CLIENTS_MAX];
    return NULL;
}

static void connect_one(void) {
    struct played_client *c = some_client(false);
    if (!c)
        return;
    *c = (struct played_client){.is = true, .fd = -1};
    if (draw(4)) {
        c->fd = played_open();
        observer_connect(world.o, draw(2) ? "n0" : "n1", c->fd, pids[draw(PIDS)]);
        return;
    }
    c->far =
        observer_join(world.o, &(struct far_speaker){.node = "n2",
                                                     .pid = pids[draw(PIDS)],
                                                     .probe = draw(2),
                                                     .end = draw(2) ? played_open() : -1,
                                                     .release = draw(2) ? on_go : NULL,
                                                     .forgotten = draw(2) ? on_forgotten : NULL,
                                                     .arg = "far"});
    if (!c->far->far.release)
        c->far->far.release = on_go; /* a socket it has not */
}

static void speak(void) {
    struct played_client *c = some_client(true);
    const char *text = texts[draw(sizeof(texts) / sizeof(*texts))];
    struct clock_stamp at = {
        .t_ns = world.now_ns, .bound_ns = draw(9), .there_ns = 77000 + draw(9)};
    if (!c)
        return;
    if (c->far && draw(6) == 0) {
        c->is = false;
        observer_leave(c->far, draw(2));
    } else if (c->far) {
        observer_hear(c->far, text, strlen(text), &at);
    } else if (draw(8) == 0) {
        c->ends = true;
    } else if (c->last < 8) {
        c->says[c->last++] = text;
    }
}

static void serve(void) {
    struct played_client *c = some_client(true);
    if (c && !c->far && !c->paused)
        c->fn(c->arg, c->fd, LOOP_READ);
    if (c && !c->far && c->is && c->first == c->last && c->first == 8)
        c->first = c->last = 0;
}

static void ask(void) {
    static const char *const env[] = {"A=B", NULL};
    ARENA_FINI struct arena a = {0};
    static const char given[] = "{\"umask\":18,\"pid\":3,\"node\":\"x\"}";
    struct clock_stamp at = {.t_ns = 9, .bound_ns = 3, .there_ns = 70};
    switch (draw(10)) {
    case 0:
        observer_arm(world.o, observer_kind(draw(2) ? "step" : "lunch"), (uint64_t)draw(9));
        return;
    case 1:
        observer_ask(world.o, draw(2), draw(2));
        return;
    case 2:
        observer_on_arm(world.o, on_arm, "elsewhere");
        return;
    case 3:
        if (draw(3) == 0)
            observer_note_sent(world.o);
        return;
    case 4:
        observer_on_end(world.o, on_end, "end");
        return;
    case 5:
        observer_kept(world.o, 1 + draw(3), on_kept, "kept");
        return;
    case 6:
        observer_record_planned(world.o, "n0", 99, env, "/home");
        return;
    case 7:
        observer_record_given(world.o, "n2", draw(2) ? 0 : 88,
                              json_parse(&a, given, strlen(given), NULL), &at);
        return;
    case 8:
        note("%d, %s, key %d", observer_worker_pidfd(world.o, pids[draw(PIDS)]),
             observer_way(world.o), observer_given_key(world.o)->bytes[15]);
        return;
    default:
        observer_release(world.o, 1 + draw(3));
    }
}

static void step(void) {
    switch (draw(12)) {
    case 0:
        connect_one();
        return;
    case 1:
    case 2:
    case 3:
        speak();
        return;
    case 4:
    case 5:
    case 6:
        serve();
        return;
    case 7:
        if (world.watched_n) /* somebody has ended, or is seen to */
            world.watched[draw((int)world.watched_n)].ends = true;
        return;
    case 8:
        observer_drain(world.o);
        return;
    case 9:
        world.now_ns += draw(300000000);
        if (draw(4) == 0)
            world.on_again(world.on_again_arg, world.now_ns);
        return;
    default:
        ask();
    }
}

/* More than a window allows: from its turns, and at the end of a worker. */
static void flood(void) {
    struct played_client *c = some_client(true);
    for (int i = 0; c && !c->far && !c->paused && i < FLOOD; i++) {
        c->flood = c->flood ? c->flood : 1;
        c->fn(c->arg, c->fd, LOOP_READ);
    }
    if (c && !c->far && c->is)
        c->flood = FLOOD;
    observer_drain(world.o);
}

static void observe(uint64_t seed) {
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    world.now_ns = 1000000000;
    noted_begin(on_told);
    world.o = observer_new((struct loop *)&world, &noted.rec, "/probe", &err);
    if (!world.o)
        note("none: %d %s", err.code, err.msg);
    if (world.o && seed % 5 == 0)
        world.o->given = GIVEN_MAX - 2;
    for (int i = 0; world.o && i < STEPS; i++)
        step();
    if (world.o && seed <= 3 && !played.fails_at)
        flood();
    assert_null(observer_free(world.o));
    noted_end();
}

static const struct play plays[] = {
    {"tests/harness/observe/record/events.txt", observe, 120, false, {0, 0}},
    {"tests/harness/observe/record/events_refused.txt", observe, 12, true, {EINVAL, EMFILE}}};

static void test_what_is_said_to_the_observer_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_what_it_does_as_each_call_fails_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_to_the_observer_is_on_record),
        cmocka_unit_test(test_what_it_does_as_each_call_fails_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
