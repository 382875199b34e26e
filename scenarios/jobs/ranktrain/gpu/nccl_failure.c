#include "scenarios/jobs/ranktrain/gpu/nccl_failure.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NEIGHBOURS = 3 * LINK_NAME, WORDS = 200 };

struct nccl_peers nccl_peers_of(const struct peer_group *g) {
    struct nccl_peers p = {.rank = g->rank, .world = g->world};
    memcpy(p.at, g->peers, sizeof(p.at));
    return p;
}

/* "10.0.0.3": NCCL has ports of its own. */
static const char *host_name(const struct link_address *a, char ret[LINK_NAME]) {
    link_name(a, ret);
    char *colon = strrchr(ret, ':');
    if (colon)
        *colon = 0;
    size_t n = strlen(ret);
    if (*ret == '[' && n > 1) {
        memmove(ret, ret + 1, n - 2);
        ret[n - 2] = 0;
    }
    return ret;
}

const char *nccl_peer_name(const struct nccl_peers *p, int rank, char ret[LINK_NAME + 16]) {
    char host[LINK_NAME];
    snprintf(ret, LINK_NAME + 16, "rank %d at %s", rank, host_name(&p->at[rank], host));
    return ret;
}

static bool mentions(const char *words, const char *host) {
    size_t n = strlen(host);
    for (const char *at = words; n && (at = strstr(at, host)); at++)
        if (at[n] == '<' &&
            (at == words || (!isalnum((unsigned char)at[-1]) && !strchr(".:-", at[-1]))))
            return true;
    return false;
}

/* By one of the names that /etc/hosts has for the address. No name server is asked: it may be what
 * cannot be reached. */
static bool mentions_name(const char *words, const struct link_address *a) {
    const struct sockaddr_in *v4 = (const void *)&a->addr;
    bool found = false;
    sethostent(0);
    for (const struct hostent *h; !found && v4->sin_family == AF_INET && (h = gethostent());) {
        if (h->h_addrtype != AF_INET ||
            memcmp(h->h_addr_list[0], &v4->sin_addr, sizeof(v4->sin_addr)) != 0)
            continue;
        found = mentions(words, h->h_name);
        for (char **name = h->h_aliases; !found && *name; name++)
            found = mentions(words, *name);
    }
    endhostent();
    return found;
}

/* The one rank that NCCL has written about, as "10.0.0.3<40911>" or "n3<40911>"; -1: none, or
 * several. */
static int named_rank(const struct nccl_peers *p, const char *words) {
    int found = -1;
    for (int r = 0; r < p->world && strchr(words, '<'); r++) {
        char host[LINK_NAME];
        if (r == p->rank ||
            (!mentions(words, host_name(&p->at[r], host)) && !mentions_name(words, &p->at[r])))
            continue;
        if (found >= 0)
            return -1;
        found = r;
    }
    return found;
}

static void neighbours(const struct nccl_peers *p, char ret[NEIGHBOURS]) {
    char one[LINK_NAME + 16], other[LINK_NAME + 16];
    int next = (p->rank + 1) % p->world, prev = (p->rank + p->world - 1) % p->world;
    *ret = 0;
    if (p->world == 2)
        snprintf(ret, NEIGHBOURS, "; its only peer is %s", nccl_peer_name(p, next, one));
    if (p->world > 2)
        snprintf(ret, NEIGHBOURS, "; its neighbours in the ring are %s and %s",
                 nccl_peer_name(p, prev, one), nccl_peer_name(p, next, other));
}

int nccl_fail(const struct nccl_peers *p, int result, const char *words, const char *doing,
              struct err *err) {
    char around[NEIGHBOURS], name[LINK_NAME + 16], said[WORDS + 16] = "";
    int length = words ? (int)strcspn(words, "\n") : 0;
    if (length)
        snprintf(said, sizeof(said), " (NCCL: %.*s)", length < WORDS ? length : WORDS, words);
    int rank = named_rank(p, words ? words : "");
    if (result == NCCL_REMOTE_ERROR && rank >= 0)
        return err_say(err, -ECONNRESET, "%s is gone: %s: %s%s", nccl_peer_name(p, rank, name),
                       doing, nccl_result_name(result), said);
    neighbours(p, around);
    if (result == NCCL_REMOTE_ERROR)
        return err_say(err, -ECONNRESET, "a peer is gone: %s: %s%s%s", doing,
                       nccl_result_name(result), said, around);
    if (result == NCCL_INVALID_USAGE && words && strstr(words, "Duplicate GPU"))
        return err_say(err, -EINVAL,
                       "more ranks than devices: %s: two ranks of one node share a GPU, and NCCL "
                       "wants one for each%s; start fewer workers per node",
                       doing, said);
    return err_say(err, result == NCCL_INVALID_USAGE ? -EINVAL : -EIO, "%s: %s (%d)%s%s", doing,
                   nccl_result_name(result), result, said, around);
}

int nccl_late(const struct nccl_peers *p, double within_s, const char *doing, struct err *err) {
    char around[NEIGHBOURS];
    neighbours(p, around);
    return err_say(err, -ETIMEDOUT, "%s has not ended within %.3g s, and NCCL names nobody%s",
                   doing, within_s, around);
}
