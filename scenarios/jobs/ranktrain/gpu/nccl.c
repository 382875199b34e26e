/* The collective over NCCL, by a communicator that never blocks its caller.
 *
 * NCCL offers no descriptor to wait on, neither for the end of a collective nor for its failure,
 * and knows no deadline of its own. So its state is looked at in turns: an eighth of the time that
 * has passed goes by between two looks, 20 us at least and 2 ms at most, in a wait that a request
 * to end cuts short. An end is so seen late by an eighth of what it took, at little cost.
 *
 * Everything that calls NCCL or CUDA is done by the device's thread (device.h): ncclCommAbort joins
 * threads and waits for a kernel, and does not always return. */
#include "scenarios/jobs/ranktrain/gpu/nccl.h"
#include "scenarios/jobs/ranktrain/gpu/device.h"
#include "scenarios/jobs/ranktrain/gpu/nccl_api.h"
#include "scenarios/jobs/ranktrain/gpu/nccl_exchange.h"
#include "scenarios/jobs/ranktrain/gpu/nccl_failure.h"
#include "scenarios/jobs/ranktrain/gpu/nccl_interface.h"
#include "scenarios/jobs/ranktrain/gpu/nccl_pairs.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const int64_t shortest_ns = 20000, longest_ns = 2000000;
static const int64_t ending_ns = INT64_C(3000000000);

_Static_assert((int)GROUP_TOKEN == (int)NCCL_ID, "the token is NCCL's unique id");

static struct nccl_api api; /* of the process */

struct nccl {
    struct device *device;
    struct nccl_comm *comm;
    struct nccl_peers peers;
    struct nccl_id id;
    int wake_fd;
    char doing[48];
    bool aborted, stuck;

    struct collective_call *call; /* the caller's */
    struct nccl_exchange exchange;
    struct nccl_pairs pairs;
    bool listens; /* for whoever is to send what is to be received */
    int64_t started_ns, deadline_ns;
    uint64_t calls;
};

/* In the device's thread: what NCCL's answer means. Returns 1 for success, 0 for not yet, or an
 * error with its sentence. */
static int answer(struct nccl *n, int result, struct err *err) {
    if (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS)
        return result == NCCL_SUCCESS;
    cudaError_t e = result == NCCL_CUDA_ERROR ? cudaStreamQuery(n->exchange.stream) : cudaSuccess;
    if (e != cudaSuccess && e != cudaErrorNotReady)
        return device_fail(n->device, e, n->doing, err);
    return nccl_fail(&n->peers, result, api.GetLastError(n->comm), n->doing, err);
}

static int ask(struct device *d, void *arg, struct err *err) {
    struct nccl *n = arg;
    if (!n->comm) /* given up by another thread meanwhile */
        return err_say(err, -EPIPE, "%s: the collective was aborted", n->doing);
    int state = NCCL_SUCCESS, r = api.CommGetAsyncError(n->comm, &state);
    return answer(n, r == NCCL_SUCCESS ? state : r, err);
}

/* Lets a share of the time pass that has passed since. Returns -ECANCELED when woken. */
static int pass_time(const struct nccl *n, int64_t since_ns, const int *watched, int n_watched) {
    struct pollfd p[1 + BOOTSTRAP_MEMBERS] = {{.fd = n->wake_fd, .events = POLLIN}};
    int64_t ns = (deadline_now_ns() - since_ns) / 8;
    ns = ns < shortest_ns ? shortest_ns : ns > longest_ns ? longest_ns : ns;
    struct timespec t = {.tv_nsec = ns};
    for (int i = 0; i < n_watched; i++)
        p[1 + i] = (struct pollfd){.fd = watched[i], .events = POLLIN};
    ppoll(p, (nfds_t)(1 + n_watched), &t, NULL);
    return p[0].revents ? -ECANCELED : 0;
}

/* While the communicator forms nobody but the job's own links tells that a rank has left. One that
 * has spoken waits for us already and is watched no more. */
static int look_at_links(const struct nccl *n, int links[BOOTSTRAP_MEMBERS], struct err *err) {
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++) {
        char byte, name[LINK_NAME + 16];
        ssize_t got = links[i] < 0 ? -1 : recv(links[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (links[i] < 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
            continue;
        if (got <= 0)
            return err_say(err, -ECONNRESET, "%s left while the communicator was forming",
                           nccl_peer_name(&n->peers, i, name));
        links[i] = -1;
    }
    return 0;
}

static int form(struct device *d, void *arg, struct err *err) {
    struct nccl *n = arg;
    struct nccl_config config = nccl_config_unblocking();
    int r = nccl_exchange_open(&n->exchange, &api, d, n->peers.rank, n->peers.world, err);
    if (r < 0)
        return r;
    return answer(
        n, api.CommInitRankConfig(&n->comm, n->peers.world, n->id, n->peers.rank, &config), err);
}

static int form_communicator(struct nccl *n, const struct peer_group *g, const struct link_wait *w,
                             struct err *err) {
    int links[BOOTSTRAP_MEMBERS];
    int64_t begun_ns = deadline_now_ns();
    memcpy(links, g->links, sizeof(links));
    snprintf(n->doing, sizeof(n->doing), "forming the communicator");
    int r = device_do(n->device, form, n, err);
    while (r == 0) {
        r = pass_time(n, begun_ns, links, BOOTSTRAP_MEMBERS);
        if (r == 0)
            r = look_at_links(n, links, err);
        if (r == 0 && deadline_now_ns() >= w->deadline_ns)
            r = nccl_late(&n->peers, (double)(w->deadline_ns - begun_ns) / 1e9, n->doing, err);
        if (r == 0)
            r = device_do(n->device, ask, n, err);
    }
    return r < 0 ? r : 0;
}

static int put(struct device *d, void *arg, struct err *err) {
    struct nccl *n = arg;
    if (!n->comm)
        return err_say(err, -EPIPE, "%s: the collective was aborted", n->doing);
    int result, r = nccl_exchange_put(&n->exchange, n->call, n->comm, &result, err);
    if (r == 0)
        r = answer(n, result, err);
    return r == 1 ? nccl_exchange_follow(&n->exchange, err) : r;
}

/* Returns 1 when it is done. What has reached the event is right, even if a peer that has all it
 * needs has gone meanwhile. */
static int look(struct device *d, void *arg, struct err *err) {
    struct nccl *n = arg;
    int r = nccl_exchange_look(&n->exchange, err);
    if (r != 0)
        return r;
    r = ask(d, n, err);
    if (r == 1 && !n->exchange.queued)
        r = nccl_exchange_follow(&n->exchange, err);
    return r < 0 ? r : 0;
}

/* A sender says that it has something; a receiver first hears so (nccl_pairs.h). */
static int start_pair(struct nccl *n, struct err *err) {
    bool receives = n->call->op == COLLECTIVE_RECEIVE;
    const struct link_wait w = {.deadline_ns = n->deadline_ns, .wake_fd = n->wake_fd};
    int r = nccl_pairs_check(&n->pairs, n->call->peer, receives, err);
    n->listens = r == 0 && receives;
    return r == 0 && !receives ? nccl_pairs_tell(&n->pairs, n->call->peer, &w, err) : r;
}

static int nccl_start(void *c, struct collective_call *call, struct err *err) {
    struct nccl *n = c;
    bool pair = call->op == COLLECTIVE_SEND || call->op == COLLECTIVE_RECEIVE;
    if (n->aborted)
        return err_say(err, -EPIPE, "the collective was aborted");
    n->call = call;
    n->started_ns = deadline_now_ns();
    n->deadline_ns = call->deadline_ns;
    snprintf(n->doing, sizeof(n->doing), "%s %llu", nccl_exchange_name(call->op),
             (unsigned long long)++n->calls);
    int r = pair ? start_pair(n, err) : 0;
    return r < 0 || n->listens ? r : device_do(n->device, put, n, err);
}

/* Until a peer has something, for which NCCL is then asked. Returns 0 or an error. */
static int listen_to(struct nccl *n, int64_t until_ns, struct err *err) {
    int64_t until = until_ns < n->deadline_ns ? until_ns : n->deadline_ns;
    int r = nccl_pairs_hear(&n->pairs, &n->call->peer, until, err);
    if (r <= 0)
        return r;
    n->listens = false;
    r = device_do(n->device, put, n, err);
    return r < 0 ? r : 0;
}

static int late(const struct nccl *n, struct err *err) {
    double s = (double)(n->deadline_ns - n->started_ns) / 1e9;
    char name[LINK_NAME + 16];
    if (!n->listens)
        return nccl_late(&n->peers, s, n->doing, err);
    if (n->call->peer == COLLECTIVE_ANY)
        return err_say(err, -ETIMEDOUT, "no rank sent anything within %.3g s", s);
    return err_say(err, -ETIMEDOUT, "%s sent nothing within %.3g s",
                   nccl_peer_name(&n->peers, n->call->peer, name), s);
}

static int nccl_poll(void *c, int timeout_ms, struct err *err) {
    struct nccl *n = c;
    int64_t until = timeout_ms < 0 ? INT64_MAX : deadline_in_ns((int64_t)timeout_ms * 1000000);
    for (;;) {
        int r = n->listens ? listen_to(n, until, err) : 0;
        if (r == 0 && !n->listens)
            r = device_do(n->device, look, n, err);
        if (r == 1)
            nccl_exchange_take(&n->exchange);
        if (r != 0)
            return r;
        int64_t now = deadline_now_ns();
        if (now >= n->deadline_ns)
            return late(n, err);
        if (now >= until)
            return 0;
        if (!n->listens && pass_time(n, n->started_ns, NULL, 0) < 0)
            return -ECANCELED;
    }
}

/* The device's thread has not come back and uses its argument for ever. */
static bool left_behind(int r) {
    return r == -ETIMEDOUT || r == -ECANCELED;
}

static int give_up(struct device *d, void *arg, struct err *err) {
    struct nccl *n = arg;
    api.CommAbort(n->comm); /* what it answers changes nothing: the communicator is gone */
    n->comm = NULL;
    return 0;
}

static void nccl_abort(void *c) {
    struct nccl *n = c;
    struct err ignored;
    if (n->aborted)
        return;
    n->aborted = true;
    if (n->pairs.open)
        tcp_links_shut(&n->pairs.links);
    if (n->comm && left_behind(device_do_within(n->device, ending_ns, give_up, n, &ignored)))
        n->stuck = true;
}

static int finalize(struct device *d, void *arg, struct err *err) {
    struct nccl *n = arg;
    return answer(n, api.CommFinalize(n->comm), err);
}

/* In good order: what peers have not yet been sent goes out first. */
static int say_goodbye(struct nccl *n, struct err *err) {
    int64_t begun_ns = deadline_now_ns();
    snprintf(n->doing, sizeof(n->doing), "leaving the communicator");
    int r = device_do(n->device, finalize, n, err);
    while (r == 0) {
        r = pass_time(n, begun_ns, NULL, 0);
        if (r == 0 && deadline_now_ns() >= begun_ns + ending_ns)
            r = nccl_late(&n->peers, (double)ending_ns / 1e9, n->doing, err);
        if (r == 0)
            r = device_do(n->device, ask, n, err);
    }
    return r < 0 ? r : 0;
}

static int give_back(struct device *d, void *arg, struct err *err) {
    struct nccl *n = arg;
    int r = n->comm ? api.CommDestroy(n->comm) : NCCL_SUCCESS;
    n->comm = NULL;
    int e = nccl_exchange_close(&n->exchange, err);
    return e < 0 || r == NCCL_SUCCESS
               ? e
               : nccl_fail(&n->peers, r, "", "leaving the communicator", err);
}

static int nccl_close(void *c, struct err *err) {
    struct nccl *n = c;
    struct err ignored;
    if (!n)
        return 0;
    if (!n->aborted && n->comm && say_goodbye(n, &ignored) < 0)
        nccl_abort(n);
    nccl_pairs_close(&n->pairs);
    int r = n->stuck ? -ETIMEDOUT : device_do_within(n->device, ending_ns, give_back, n, &ignored);
    if (left_behind(r))
        return err_say(err, -ETIMEDOUT,
                       "NCCL did not let go of the communicator in time: leaving without it");
    free(n);
    return 0;
}

static int count_devices(struct device *d, void *arg, struct err *err) {
    cudaError_t e = cudaGetDeviceCount(arg);
    return e == cudaSuccess ? 0 : device_fail(d, e, "counting the GPUs", err);
}

static int number_of(const char *variable, int absent) {
    const char *value = getenv(variable);
    return value && *value ? atoi(value) : absent;
}

/* NCCL finds that out, too, when the communicator has formed to the half. Since 2.30 it can be told
 * to put up with it. */
static int check_devices(struct device *d, struct err *err) {
    static int count; /* the device's thread may write it late */
    int workers = number_of("LOCAL_WORLD_SIZE", number_of("LOCAL_RANK", 0) + 1);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int r = device_do(d, count_devices, &count, err);
    if (r < 0 || workers <= count || number_of("NCCL_MULTI_RANK_GPU_ENABLE", 0))
        return r;
    return err_say(
        err, -EINVAL,
        "more ranks than devices: %d workers on this node and %d GPU%s%s%s, and NCCL wants "
        "one for each: start at most %d per node (--nproc-per-node), or use "
        "--dist-backend=tcp",
        workers, count, count == 1 ? "" : "s", visible ? " of CUDA_VISIBLE_DEVICES=" : "",
        visible ? visible : "", count);
}

static int nccl_prepare(struct err *err) {
    struct device *d = device_in_use();
    if (!d)
        return err_say(
            err, -EINVAL,
            "--dist-backend=nccl sums on GPUs: it needs --device=cuda and a GPU; without "
            "one use --dist-backend=tcp");
    if (number_of("NCCL_COMM_BLOCKING", 0)) /* it overrules what the caller asks for */
        return err_say(
            err, -EINVAL,
            "NCCL_COMM_BLOCKING=%s: with it a peer that is gone is waited for without end; "
            "unset it",
            getenv("NCCL_COMM_BLOCKING"));
    int r = nccl_interface_check(getenv("NCCL_SOCKET_IFNAME"), err);
    if (r == 0)
        r = check_devices(d, err);
    return r < 0 ? r : nccl_api_load(&api, err);
}

static int draw(struct device *d, void *arg, struct err *err) {
    struct nccl_peers nobody = {.world = 1};
    int r = api.GetUniqueId(arg);
    return r == NCCL_SUCCESS ? 0
                             : nccl_fail(&nobody, r, api.GetLastError(NULL),
                                         "an id for the communicator (ncclGetUniqueId)", err);
}

/* Every id that is drawn starts a thread and opens a port, which end only when all ranks have
 * called there. So it is drawn once, when all are known to be there, and never again. */
static int nccl_token(unsigned char ret[GROUP_TOKEN], struct err *err) {
    static struct nccl_id id;
    static bool drawn;
    assert(!drawn);
    drawn = true;
    int r = device_do(device_in_use(), draw, &id, err);
    if (r == 0)
        memcpy(ret, id.bytes, sizeof(id.bytes));
    return r;
}

static int nccl_open(void **ret, struct peer_group *g, const struct link_wait *w, struct err *err) {
    struct nccl *n = mem_new(struct nccl);
    struct err ignored;
    n->device = device_in_use();
    n->peers = nccl_peers_of(g);
    n->wake_fd = w->wake_fd;
    memcpy(n->id.bytes, g->token, sizeof(n->id.bytes));
    int r = nccl_pairs_open(&n->pairs, g, w, err);
    if (r == 0)
        r = form_communicator(n, g, w, err);
    if (r < 0) {
        nccl_abort(n);
        nccl_close(n, &ignored);
        return r;
    }
    *ret = n;
    return 0;
}

const struct collective collective_nccl = {
    .name = "nccl",
    .summary = "NCCL, on GPUs",
    .prepare = nccl_prepare,
    .token = nccl_token,
    .open = nccl_open,
    .start = nccl_start,
    .poll = nccl_poll,
    .abort = nccl_abort,
    .close = nccl_close,
};
