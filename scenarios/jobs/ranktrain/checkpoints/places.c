#include "scenarios/jobs/ranktrain/checkpoints/places.h"

#include "base/sha256.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { TOKEN = 96 };

static void token_name(const struct bootstrap *b, int rank, char ret[TOKEN]) {
    char hex[65];
    sha256_of(b->group.session, sizeof(b->group.session), hex);
    snprintf(ret, TOKEN, ".place-%.16s.round-%lld.rank-%d", hex, (long long)b->request.round, rank);
}

static bool leave(int dir, const char *token) {
    FILE_CLOSE int fd = openat(dir, token, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return fd >= 0;
}

/* By opening it: what a client of NFS has cached of a directory does not count then. */
static bool sees(const struct bootstrap *b, int dir, int rank) {
    char token[TOKEN];
    token_name(b, rank, token);
    FILE_CLOSE int fd = openat(dir, token, O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

static void settle(struct checkpoint_places *p, int world) {
    p->n = 0;
    for (int rank = 0; rank < world; rank++) {
        while (p->keeper[rank] != p->keeper[p->keeper[rank]])
            p->keeper[rank] = p->keeper[p->keeper[rank]];
        p->n += p->keeper[rank] == rank;
    }
}

int places_find(struct bootstrap *b, int dir, struct checkpoint_places *ret, struct err *err) {
    int rank = b->request.rank, world = b->request.world, keeper = rank;
    struct checkpoint_places p = {0};
    char token[TOKEN];
    token_name(b, rank, token);
    bool left = world > 1 && leave(dir, token);
    int r = bootstrap_meet(b, err);
    for (int other = 0; r == 0 && other < rank && keeper == rank; other++)
        if (sees(b, dir, other))
            keeper = other;
    for (int other = rank + 1; r == 0 && !left && other < world && keeper == rank; other++)
        if (sees(b, dir, other))
            keeper = other;
    if (r == 0)
        r = bootstrap_exchange(b, &keeper, sizeof(keeper), p.keeper, err);
    if (left)
        unlinkat(dir, token, 0);
    if (r < 0)
        return r;
    settle(&p, world);
    *ret = p;
    return 0;
}
