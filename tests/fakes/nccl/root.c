/* The root of an id: a thread that waits for all ranks to call, tells each who the others are, and
 * ends. It has no deadline and hears of no abort; a rank that calls twice ends it, and nobody is
 * told: all of that as in NCCL 2.28. */
#include "tests/fakes/nccl/comm.h"
#include "tests/fakes/nccl/form.h"
#include "tests/fakes/nccl/overrides.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

struct root {
    int listener;
    uint64_t magic;
};

static bool take_call(const struct root *r, struct hello *ret) {
    int fd = -1;
    bool good = false;
    if (socket_accept(r->listener, -1, &fd) == ncclSuccess)
        good = socket_receive(fd, ret, sizeof(*ret), -1) == ncclSuccess && ret->magic == r->magic;
    socket_close(&fd);
    return good;
}

/* Returns false when it is over with this id. */
static bool gather(const struct root *r, struct rank_place places[RANKS], int *ret_world) {
    bool here[RANKS] = {false};
    int world = 0;
    for (int n = 0; n == 0 || n < world; n++) {
        struct hello h;
        while (!take_call(r, &h))
            continue;
        if (n == 0)
            world = h.world;
        int rank = h.place.rank;
        if (h.world != world || rank < 0 || rank >= world || world > RANKS)
            return complain(ncclInternalError, "Bootstrap Root : mismatch in info from procs"),
                   false;
        if (here[rank])
            return complain(ncclInternalError,
                            "Bootstrap Root : rank %d of %d ranks has already checked in", rank,
                            world),
                   false;
        here[rank] = true;
        places[rank] = h.place;
    }
    *ret_world = world;
    return true;
}

static void *root_run(void *arg) {
    struct root *r = arg;
    struct rank_place places[RANKS];
    int world = 0;
    prctl(PR_SET_NAME, "NCCL BootstrapR");
    memset(places, 0, sizeof(places));
    if (gather(r, places, &world))
        for (int i = 0; i < world; i++) {
            int fd = -1;
            if (socket_connect(&places[i].root, -1, &fd) == ncclSuccess)
                socket_send(fd, places, sizeof(places), -1);
            socket_close(&fd);
        }
    if (overrides()->leak)
        pause();
    socket_close(&r->listener);
    free(r);
    return NULL;
}

ncclResult_t root_start(ncclUniqueId *ret) {
    struct root *root = calloc(1, sizeof(*root));
    struct id id;
    pthread_t thread;
    memset(&id, 0, sizeof(id));
    ncclResult_t r = socket_place(&id.root);
    if (r == ncclSuccess)
        r = socket_listen(&id.root, &root->listener);
    if (r == ncclSuccess && getrandom(&id.magic, sizeof(id.magic), 0) < 0)
        r = ncclSystemError;
    root->magic = id.magic;
    if (r != ncclSuccess || pthread_create(&thread, NULL, root_run, root) != 0) {
        free(root);
        return r == ncclSuccess ? ncclSystemError : r;
    }
    pthread_detach(thread);
    memset(ret, 0, sizeof(*ret));
    memcpy(ret, &id, sizeof(id));
    return ncclSuccess;
}
