/* document: the text of active_version, torchelastic's state of a rendezvous, read and changed.
 *
 * A JSON object: "status", from joinable on "version" (a number as a string) and "participants"
 * ([0, 1, ...]), from frozen on "keep_alives" (whole keys, in the order of confirmation), in final
 * "num_workers_waiting". Of ours are "rankrun", an object that gives for the participants that are
 * rankrun agents who they are, "rankrun_nodes" likewise what their nodes are called, "rankrun_hosts"
 * the full names of those that have one (rendezvous_config.host), and "rankrun_end" of a closed one: how the job ended. What is not known here is passed on, as torchrun
 * does. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum document_status {
    DOCUMENT_ABSENT,
    DOCUMENT_SETUP,
    DOCUMENT_JOINABLE,
    DOCUMENT_FROZEN,
    DOCUMENT_FINAL,
    DOCUMENT_CLOSED,
    DOCUMENT_STRANGE, /* nothing that torchelastic wrote */
};

struct json;

struct document {
    struct arena arena;
    enum document_status status;
    const char *text; /* as it was read; "" when absent */
    int64_t modified; /* etcd's index of it, 0 when absent */
    int64_t version;
    int n; /* participants */
    int waiting;
    int confirmed; /* keep_alives */
    const struct json *top;
};

/* Of a change what is to be different; {.add_rank = -1, .waiting = -1} is none. */
struct document_edit {
    const char *status; /* NULL: as it is */
    int add_rank;       /* to the participants, as uid; -1: none */
    const char *uid;
    const char *node; /* what its node is called; NULL: not said */
    const char *host; /* its full name; NULL: not said */
    bool begin_keep_alives;
    const char *add_keep_alive; /* NULL: none */
    int waiting;                /* -1: as it is */
    const char *end;            /* how the job failed, "" when it did not; NULL: not said */
};

/* d: all zero, or read before. text: NULL when there is none; copied. */
void document_read(struct document *d, const char *text, int64_t modified);
void document_write(const struct document *d, const struct document_edit *e, struct buf *out);
void document_fini(struct document *d);

/* What that participant's node is called; "" when it does not say. */
const char *document_node(const struct document *d, int rank);
/* That participant's host, "" when it does not say. */
const char *document_host(const struct document *d, int rank);
/* Which participant uid is; -1: none. */
int document_rank(const struct document *d, const char *uid);
bool document_has_keep_alive(const struct document *d, const char *key);
/* All participants are rankrun agents. */
bool document_is_pure(const struct document *d);
/* What was said by `end`, or NULL. */
const char *document_end(const struct document *d);
/* Calls fn for each keep_alive until it returns true; returns whether one did. */
bool document_any_keep_alive(const struct document *d, bool (*fn)(void *arg, const char *key),
                             void *arg);
