/* provider: how hosts are reached on which nodes are to run. One file per provider, one const struct,
 * one line in providers.h. A provider knows a command whose standard streams are a node helper's
 * (harness/node); all else is the same everywhere. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* What was asked for besides the hosts. */
struct provider_wish {
    const char *ssh;     /* the words before the host; NULL: as the provider has it */
    const char *helper;  /* which copy of the helper on the host: a hash of ours, in hex */
    const char *program; /* our own helper, which hosts find at the same path */
    size_t offered;      /* bytes of it, which are sent to whoever says `copy`; 0: none are */
};

struct provider {
    const char *name, *summary;
    const char *hosts; /* what a host is in its words: "a name that ssh knows" */
    bool tells_way;    /* the helper knows by which connection it is reached (SSH_CONNECTION) */
    /* Whether a host may be called so. Returns 0, or -EINVAL with a sentence. */
    int (*check)(const char *host, struct err *err);
    /* Hosts that are known without being named. NULL: they have to be named. Returns 0 with at least
     * one, in the arena, or -EINVAL with a sentence. */
    int (*find)(struct arena *a, const char *const **ret, size_t *ret_n, struct err *err);
    bool
        copies; /* where no helper is, the command asks for what is offered by a frame {"op":"copy"}, and starts that */
    /* The command that reaches the helper of a host; strings live in the arena. */
    const char *const *(*reach)(const struct provider_wish *w, const char *host, struct arena *a);
    /* The command that starts the outpost of preflight there: `rankquake preflight --outpost`, of the rankquake beside
     * w->program. */
    const char *const *(*outpost)(const struct provider_wish *w, const char *host, struct arena *a);
};

/* The rankquake that is beside our own helper; in the arena. */
const char *provider_rankquake(const struct provider_wish *w, struct arena *a);

extern const struct provider *const providers[];        /* NULL-ended, sorted by name */
const struct provider *provider_find(const char *name); /* NULL: there is none */
