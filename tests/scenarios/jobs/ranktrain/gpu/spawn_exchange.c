/* Every exchange of the GPU library's collective among the ranks of one world, each judged by what
 * comes of it:
 *
 *     spawn_exchange all|silent|goes [OP]
 *
 * all: parts that are even, uneven and with one rank alone, and none; a server that takes from
 * whoever comes first. Ends with "rank 1: 61 exchanges are right". silent and goes: rank 0 takes no
 * part, or gives up, in the exchange OP (its number in collective.h), and the others say what they
 * are told. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who is where, RANKTRAIN_CUDA which
 * library. Exit: 0, 1 something is wrong, 3 there is no library or no device. */
#include "scenarios/jobs/ranktrain/gpu/backend.h"
#include "scenarios/jobs/ranktrain/net/bootstrap.h"
#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "tests/scenarios/jobs/ranktrain/model/fashion.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 40000, MORE = 4000000, WORLD_MAX = 16 }; /* MORE: than a socket takes */

/* How the numbers are divided among the ranks. */
enum cut { EVEN, UNEVEN, ONE, CUTS };

static struct {
    const struct collective *collective;
    void *c, *compute;
    const struct compute *cuda;
    int rank, world, done;
    int64_t limit_ns, data[MORE];
    size_t bounds[WORLD_MAX + 1];
    struct err err;
} s;

static int64_t value(int rank, size_t i) {
    return (int64_t)(rank + 1) * 1000003 + (int64_t)i * 7;
}

static void cut(enum cut how, size_t n) {
    for (int r = 0; r <= s.world; r++) {
        size_t w = (size_t)s.world, k = (size_t)r;
        size_t at[CUTS] = {n * k / w, n * k * k / (w * w), r > s.world / 2 ? n : 0};
        s.bounds[r] = at[how] * sizeof(*s.data);
    }
}

/* Returns 1, or the error. */
static int exchange(enum collective_op op, size_t n, int *peer) {
    struct collective_call call = {.op = op,
                                   .data = s.data,
                                   .bytes = n * sizeof(*s.data),
                                   .bounds = s.bounds,
                                   .peer = *peer,
                                   .deadline_ns = deadline_in_ns(s.limit_ns)};
    int r = s.collective->start(s.c, &call, &s.err);
    while (r == 0)
        r = s.collective->poll(s.c, 20, &s.err);
    *peer = call.peer;
    s.done += r == 1;
    return r;
}

static void fill(size_t n) {
    for (size_t i = 0; i < n; i++)
        s.data[i] = value(s.rank, i);
}

static int64_t wanted(enum collective_op op, size_t i, int peer) {
    int64_t sum = 0;
    int owner = 0;
    while (i * sizeof(*s.data) >= s.bounds[owner + 1])
        owner++;
    for (int r = 0; r < s.world; r++)
        sum += value(r, i);
    return op == COLLECTIVE_ALL_GATHER                              ? value(owner, i)
           : op == COLLECTIVE_BROADCAST || op == COLLECTIVE_RECEIVE ? value(peer, i)
                                                                    : sum;
}

static void judge(enum collective_op op, size_t n, int peer) {
    bool own = op == COLLECTIVE_REDUCE_SCATTER;
    size_t from = own ? s.bounds[s.rank] / sizeof(*s.data) : 0;
    size_t to = own ? s.bounds[s.rank + 1] / sizeof(*s.data) : n;
    for (size_t i = from; i < to; i++)
        if (s.data[i] != wanted(op, i, peer)) {
            printf("rank %d: exchange %d of %zu numbers: number %zu is wrong\n", s.rank, (int)op, n,
                   i);
            exit(1);
        }
}

static void must(int r) {
    if (r == 1)
        return;
    printf("rank %d: %s\n", s.rank, s.err.msg);
    exit(1);
}

static void play_round(enum collective_op op) {
    static const size_t sizes[] = {0, 1, 1001, NUMBERS};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
        for (enum cut how = EVEN; how < CUTS; how++) {
            int root = (int)k % s.world;
            cut(how, sizes[k]);
            fill(sizes[k]);
            must(exchange(op, sizes[k], &root));
            judge(op, sizes[k], root);
        }
}

/* Rank 0 takes from whoever comes first, as often as there are others, and answers each. */
static void play_server(void) {
    int seen = 0, server = 0;
    cut(EVEN, 1001);
    fill(1001);
    for (int i = 1; s.rank == 0 && i < s.world; i++) {
        int peer = COLLECTIVE_ANY;
        must(exchange(COLLECTIVE_RECEIVE, 1001, &peer));
        judge(COLLECTIVE_RECEIVE, 1001, peer);
        seen |= 1 << peer;
        fill(1001);
        must(exchange(COLLECTIVE_SEND, 1001, &peer));
    }
    if (s.rank > 0) {
        must(exchange(COLLECTIVE_SEND, 1001, &server));
        must(exchange(COLLECTIVE_RECEIVE, 1001, &server));
        judge(COLLECTIVE_RECEIVE, 1001, server);
    } else if (seen != (1 << s.world) - 2)
        must(-1);
}

static void play_all(void) {
    for (enum collective_op op = COLLECTIVE_ALL_REDUCE; op <= COLLECTIVE_BROADCAST; op++)
        play_round(op);
    play_server();
    play_round(COLLECTIVE_ALL_REDUCE); /* all are there still */
    printf("rank %d: %d exchanges are right\n", s.rank, s.done);
}

/* Rank 0 is silent until the others have given up, or goes at once. */
static void play_missing(struct bootstrap *b, bool silent, enum collective_op op) {
    size_t n = op < COLLECTIVE_SEND ? NUMBERS : MORE;
    int peer = 0;
    cut(EVEN, n);
    fill(n);
    s.limit_ns = silent ? INT64_C(300000000) : s.limit_ns;
    if (s.rank > 0) {
        int r = exchange(op, n, &peer);
        printf("rank %d: %d: %s\n", s.rank, r, r == 1 ? "is done" : s.err.msg);
    }
    if (silent)
        bootstrap_meet(b, &s.err);
    s.collective->abort(s.c);
}

static int number_of(const char *variable) {
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

static int join(struct bootstrap *b, struct err *err) {
    const struct bootstrap_request q = {
        .rank = s.rank,
        .world = s.world,
        .master_addr = getenv("MASTER_ADDR"),
        .master_port = number_of("MASTER_PORT"),
        .run_id = "exchange",
        .wait = {.deadline_ns = deadline_in_ns(INT64_C(60000000000)), .wake_fd = -1}};
    int r = bootstrap_join(b, &q, err);
    b->group.pairs = true;
    if (r == 0 && s.rank == 0)
        r = s.collective->token(b->group.token, err);
    if (r == 0)
        r = bootstrap_share(b, b->group.token, sizeof(b->group.token), err);
    if (r == 0)
        r = s.collective->open(&s.c, &b->group, &q.wait, err);
    return r == 0 ? bootstrap_meet(b, err) : r;
}

static int open_all(struct bootstrap *b, struct err *err) {
    const struct gpu_backend *gpu;
    char label[COMPUTE_LABEL];
    const struct compute_place at = {.model = fashion_model("lenet", 0),
                                     .batches = 1,
                                     .local_rank = number_of("LOCAL_RANK"),
                                     .wake_fd = -1,
                                     .limit_ns = INT64_C(60000000000)};
    int r = backend_open(&gpu, err);
    if (r == 0)
        r = gpu->compute->open(&at, &s.compute, label, err);
    if (r < 0)
        return r;
    s.cuda = gpu->compute;
    s.collective = gpu->collective;
    r = s.collective->prepare(err);
    return r == 0 ? join(b, err) : r;
}

int main(int argc, char **argv) {
    static struct bootstrap b;
    s.rank = number_of("RANK");
    s.world = number_of("WORLD_SIZE");
    s.limit_ns = INT64_C(60000000000);
    if (argc < 2 || s.world > WORLD_MAX)
        return 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (open_all(&b, &s.err) < 0) {
        printf("rank %d: %s\n", s.rank, s.err.msg);
        return 3;
    }
    if (strcmp(argv[1], "all") == 0)
        play_all();
    else
        play_missing(&b, strcmp(argv[1], "silent") == 0, (enum collective_op)atoi(argv[2]));
    bootstrap_end(&b);
    int r = s.collective->close(s.c, &s.err);
    if (r == 0)
        r = s.cuda->close(s.compute, &s.err);
    return r < 0;
}
