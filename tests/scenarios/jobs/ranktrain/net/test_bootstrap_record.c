/* How a group forms in a network that is played: whom each rank calls and what it says, who is let in and who is refused,
 * what all are told, and what comes of each call that fails. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/net/bootstrap.h"

#include "base/sha256.h"

#include <arpa/inet.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { WAKE_FD = 900, ANSWER = 24, TABLE_LEAST = 1000, PEER_BYTES = 5, SHARED = 9 };

static struct {
    int64_t now_ns;
    const struct bootstrap_request *request;
    bool away; /* nobody listens, mostly */
} net;

static const char run_id[] = "job-7";

static struct link_address address_of(uint32_t host, int port) {
    struct link_address a = {.length = sizeof(struct sockaddr_in)};
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(host)}};
    memcpy(&a.addr, &v4, sizeof(v4));
    return a;
}

static struct link_address address_draw(int port) {
    return address_of(draw(3) ? 0x0a000000 + (uint32_t)draw(9) : 0x7f000001, port);
}

static int played_clock(clockid_t id, struct timespec *ret) {
    assert_int_equal(id, CLOCK_MONOTONIC);
    net.now_ns += 1000000;
    *ret = (struct timespec){net.now_ns / 1000000000, net.now_ns % 1000000000};
    return 0;
}

/* ---- connections ---- */

static const char *wait_of(const struct link_wait *w) {
    static char text[64];
    snprintf(text, sizeof(text), "within %lld, woken by %d",
             (long long)(w->deadline_ns - net.now_ns), w->wake_fd);
    return text;
}

static int played_resolve(const char *host, int port, struct link_address *ret, struct err *err) {
    if (fails("resolve %s, %d", host, port) || draw(12) == 0)
        return err_say(err, -EAGAIN, "%s is not known", host);
    *ret = address_draw(port);
    return 0;
}

static int played_connect(const struct link_address *to, const struct link_wait *w) {
    char name[LINK_NAME];
    if (fails("connect to %s, %s", link_name(to, name), wait_of(w)))
        return -errno;
    static const int ends[] = {-ECONNREFUSED, -ETIMEDOUT, -ECANCELED};
    int luck = net.away && draw(9) ? 0 : draw(30);
    return luck < 3 ? ends[luck] : played_open_from(draw(2));
}

/* The table of a group: what of it is told. */
struct table {
    unsigned char session[DOOR_SESSION];
    int32_t ring_port;
    struct link_address peers[BOOTSTRAP_MEMBERS];
};

static void say_table(const void *p) {
    struct table t;
    char name[LINK_NAME];
    memcpy(&t, p, sizeof(t));
    note("  table %016llx, %d", (unsigned long long)on_record_sum(0, t.session, sizeof(t.session)),
         t.ring_port);
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++)
        if (t.peers[i].length)
            note("  %d is %s", i, link_name(&t.peers[i], name));
}

static int played_send(int fd, const void *p, size_t n, const struct link_wait *w) {
    if (n == sizeof(struct table))
        say_table(p);
    if (fails("send %zu to %d, %s: %016llx", n, fd, wait_of(w),
              n < TABLE_LEAST ? (unsigned long long)on_record_sum(0, p, n) : 0))
        return -errno;
    int luck = draw(60);
    return luck ? 0 : -ECANCELED;
}

static int played_receive(int fd, void *p, size_t n, const struct link_wait *w) {
    if (fails("receive %zu from %d, %s", n, fd, wait_of(w)))
        return -errno;
    static const int ends[] = {-ECONNRESET, -ETIMEDOUT, -ECANCELED};
    int luck = draw(60);
    if (luck < 3)
        return ends[luck];
    if (n == ANSWER) {
        struct {
            uint64_t magic;
            uint32_t code;
            int32_t world;
            int64_t round;
        } a = {DOOR_MAGIC + (draw(30) == 0), draw(3) ? 1 : (uint32_t)draw(9), draw(9), draw(99)};
        note("  answer %u", a.code);
        memcpy(p, &a, sizeof(a));
    } else if (n == sizeof(struct table)) {
        struct table t = {.ring_port = 7000 + draw(9)};
        for (int i = 0; i < DOOR_SESSION; i++)
            t.session[i] = (unsigned char)draw(256);
        for (int i = 1; i < net.request->world; i++)
            t.peers[i] = address_draw(8000 + i);
        memcpy(p, &t, sizeof(t));
    } else
        for (size_t i = 0; i < n; i++)
            ((char *)p)[i] = (char)draw(256);
    return 0;
}

static int played_ready(int fd, short events, const struct link_wait *w) {
    note("pause for %d, %s", events, wait_of(w));
    assert_int_equal(fd, -1);
    net.now_ns = w->deadline_ns;
    return draw(40) ? -ETIMEDOUT : -ECANCELED;
}

static int played_peer(int fd, struct link_address *ret) {
    note("peer of %d", fd);
    *ret = address_draw(1);
    return 0;
}

static int played_port(int fd) {
    note("port of %d", fd);
    return 6000 + draw(9);
}

/* ---- doors ---- */

static int played_door_open(struct door *ret, int port, struct err *err) {
    *ret = (struct door){.listener = -1};
    if (fails("listen on %d", port))
        return err_set(err, -errno, "listen on port %d", port);
    ret->listener = played_open_from(draw(2));
    note("  as %d", ret->listener);
    return 0;
}

static void played_door_close(struct door *d) {
    played_file_close(&d->listener);
}

static void draw_digest(unsigned char ret[DOOR_DIGEST], const char *text) {
    char hex[65];
    sha256_of(text, strlen(text), hex);
    memcpy(ret, hex, DOOR_DIGEST);
}

/* Who calls is awaited, or is so but for one thing. */
static struct door_hello who_calls(void) {
    const struct bootstrap_request *q = net.request;
    struct door_hello h = {.magic = DOOR_MAGIC,
                           .purpose = DOOR_JOIN,
                           .rank = 1 + draw(q->world - 1),
                           .world = q->world,
                           .port = 9000 + draw(9),
                           .round = q->round};
    draw_digest(h.run, run_id);
    memcpy(h.job, q->job, sizeof(h.job));
    switch (draw(18)) {
    case 0:
        h.purpose = draw(2) ? DOOR_RING : DOOR_PAIR;
        break;
    case 1:
        h.rank = draw(2) ? draw(2) - 1 : q->world + draw(2);
        break;
    case 2:
        h.world += draw(2) ? 1 : -1;
        break;
    case 3:
        h.round += draw(2) ? 1 : -1;
        break;
    case 4:
        h.run[draw(DOOR_DIGEST)] ^= 1;
        break;
    case 5:
        h.job[draw(DOOR_DIGEST)] ^= 1;
        break;
    }
    return h;
}

static int played_door_wait(struct door *d, const struct link_wait *w, const int *watched, int n,
                            struct door_hello *ret, int *ret_gone) {
    for (int i = 0; i < n; i++)
        note("  watching %d", watched[i]);
    *ret = (struct door_hello){0};
    if (fails("wait at %d, %s", d->listener, wait_of(w)))
        return -errno;
    int luck = draw(60);
    *ret_gone = n ? draw(n) : 0;
    if (luck < 3)
        return luck == 0 && n ? -EPIPE : luck == 1 ? -ECANCELED : -ETIMEDOUT;
    *ret = who_calls();
    int fd = played_open();
    note("  rank %d of %d calls for %u, as %d", ret->rank, ret->world, ret->purpose, fd);
    return fd;
}

static ssize_t played_random(void *p, size_t n, unsigned flags) {
    if (fails("random %zu, %u", n, flags))
        return -1;
    for (size_t i = 0; i < n; i++)
        ((char *)p)[i] = (char)draw(256);
    return (ssize_t)n;
}

#define clock_gettime played_clock
#define link_resolve  played_resolve
#define link_connect  played_connect
#define link_send     played_send
#define link_receive  played_receive
#define link_ready    played_ready
#define link_peer     played_peer
#define link_port     played_port
#define link_close    played_file_close
#define door_open     played_door_open
#define door_wait     played_door_wait
#define door_close    played_door_close
#define getrandom     played_random
#define close         played_close
#include "scenarios/jobs/ranktrain/net/bootstrap.c"

static void say_group(const struct peer_group *g) {
    char name[LINK_NAME];
    note("> rank %d of %d, session %016llx, door %d", g->rank, g->world,
         (unsigned long long)on_record_sum(0, g->session, sizeof(g->session)), g->door.listener);
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++)
        if (g->links[i] != -1 || g->peers[i].length)
            note(">   %d is %s, by %d", i, link_name(&g->peers[i], name), g->links[i]);
}

/* What is shared, one after another, until something goes wrong. */
static void share_all(struct bootstrap *b) {
    struct err err = {0};
    char mine[PEER_BYTES] = "mine", all[BOOTSTRAP_MEMBERS * PEER_BYTES] = "",
         shared[SHARED] = "of me";
    int r = bootstrap_share(b, shared, sizeof(shared) - 1, &err);
    note("> shared %d, %d %s, %016llx", r, err.code, err.msg,
         (unsigned long long)on_record_sum(0, shared, sizeof(shared)));
    for (int from = 0; from < b->request.world && r == 0; from++) {
        r = bootstrap_share_from(b, from, shared, sizeof(shared) - 1, &err);
        note("> shared from %d: %d, %d %s, %016llx", from, r, err.code, err.msg,
             (unsigned long long)on_record_sum(0, shared, sizeof(shared)));
    }
    if (r == 0) {
        r = bootstrap_exchange(b, mine, sizeof(mine), all, &err);
        note("> exchanged %d, %d %s, %016llx", r, err.code, err.msg,
             (unsigned long long)on_record_sum(0, all, sizeof(all)));
    }
    if (r == 0) {
        r = bootstrap_meet(b, &err);
        note("> met %d, %d %s", r, err.code, err.msg);
    }
}

static void form(uint64_t seed) {
    static struct bootstrap b;
    struct err err = {0};
    struct bootstrap_request q = {.world = draw(9) ? 2 + draw(4) : 1,
                                  .master_addr = "master",
                                  .master_port = 29500,
                                  .run_id = run_id,
                                  .round = 5,
                                  .wait = {.wake_fd = WAKE_FD}};
    net.now_ns = INT64_C(4000000000);
    q.wait.deadline_ns = net.now_ns + (draw(3) ? 400000000 : 60000000);
    q.rank = draw(3) ? draw(q.world) : 0;
    for (int i = 0; i < DOOR_DIGEST; i++)
        q.job[i] = (unsigned char)draw(256);
    net.request = &q;
    net.away = draw(4) == 0;
    note("rank %d of %d", q.rank, q.world);
    int r = bootstrap_join(&b, &q, draw(12) ? &err : NULL);
    note("> joined %d, %d %s", r, err.code, err.msg);
    say_group(&b.group);
    if (r == 0)
        share_all(&b);
    bootstrap_end(&b);
    say_group(&b.group);
}

static const struct play plays[] = {{"tests/scenarios/jobs/ranktrain/net/record/bootstrap.txt",
                                     form,
                                     200,
                                     true,
                                     {ECONNRESET, EADDRINUSE}}};

static void test_how_a_group_forms_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_a_group_forms_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
