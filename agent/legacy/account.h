/* account: what the keys of one run over torchelastic's legacy etcd rendezvous (legacy.h) say, read
 * at one index: for who looks at a job from outside and takes no part in it. Pure.
 *
 * They say less than rankrun's own: no host but rank 0's, no bounds, no restarts (every agent
 * counts its own), and of how the job ended only what a rankrun agent has added. */
#pragma once

#include "agent/core/tree.h"
#include "agent/legacy/document.h"

struct account_member {
    const char *uid;  /* of a rankrun agent; NULL: it is none, so torchrun's */
    const char *role; /* NULL: it has not told yet */
    int slots;        /* workers; 0: the same */
    int rank_base;    /* of its first worker; -1: not told of it, or of one before it */
    bool confirmed;   /* in a frozen state */
    bool alive;       /* its rank_<R> is there: renewed within the last 10 s */
    bool done;        /* its workers have ended; torch from 2.4 on does not say whose */
};

struct account {
    int64_t index;                  /* etcd's */
    struct document doc;            /* DOCUMENT_ABSENT: between two versions, or before the first */
    int64_t version;                /* 0: none is named */
    int n;                          /* members */
    int world;                      /* 0: not all have told */
    const char *addr, *port;        /* the master's; NULL: not told */
    struct account_member *members; /* by rank, n of them */
};

/* The folder that holds every key of the run; prefix: NULL for torchrun's. */
const char *account_folder(struct arena *a, const char *prefix, const char *run_id);

/* Reads what a GET of that folder answered. What ret points to lives in the arena and in ret. */
void account_read(struct arena *a, const char *folder, const struct tree_answer *answer,
                  struct account *ret);
void account_fini(struct account *c);

/* joining, forming, running, closed; as of rankrun's own. */
const char *account_phase(const struct account *c);
/* joining, forming, running, done, ending; gone: its key is, and so its workers are. */
const char *account_member_state(const struct account *c, const struct account_member *m);
