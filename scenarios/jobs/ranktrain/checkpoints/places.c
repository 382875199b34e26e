#include "scenarios/jobs/ranktrain/checkpoints/places.h"

#include "base/sha256.h"
#include "base/sys/file.h"

#include <errno.h>
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

/* By opening it: what a client of NFS has cached of a directory does not count then. Returns 1, 0, or a -errno
 * where it cannot be told: two that take one directory for two would write over each other. */
static int sees(const struct bootstrap *b, int dir, int rank, struct err *err) {
    char token[TOKEN];
    token_name(b, rank, token);
    FILE_CLOSE int fd = openat(dir, token, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 || errno == ENOENT || errno == ESTALE)
        return fd >= 0;
    return err_set(err, -errno, "look for %s", token);
}

/* The first rank of from..below-1 whose file is in dir. Returns 1, 0 when there is none, or a -errno. */
static int first_seen(const struct bootstrap *b, int dir, int from, int below, int *ret,
                      struct err *err) {
    for (int other = from; other < below; other++) {
        int r = sees(b, dir, other, err);
        if (r > 0)
            *ret = other;
        if (r)
            return r;
    }
    return 0;
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
    if (r == 0)
        r = first_seen(b, dir, 0, rank, &keeper, err);
    if (r == 0 && !left)
        r = first_seen(b, dir, rank + 1, world, &keeper, err);
    if (r >= 0)
        r = bootstrap_exchange(b, &keeper, sizeof(keeper), p.keeper, err);
    if (left)
        unlinkat(dir, token, 0);
    if (r < 0)
        return r;
    settle(&p, world);
    *ret = p;
    return 0;
}
