/* tree: requests to etcd's v2 API, and what came of them, in plain data.
 *
 * Source of the protocol: etcd's documentation of its v2 keys API (GET, PUT, DELETE below /v2/keys
 * with ttl, prevExist, prevValue, refresh, wait and waitIndex) and its error codes. Keys are paths
 * that begin with a slash; a read takes all that is below its key, and is asked of the quorum. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tree_verb {
    TREE_VERSION, /* what serves the endpoint: the text of the answer is etcd's version */
    TREE_GET,
    TREE_PUT,
    TREE_DELETE,
    TREE_WAIT, /* for the first change at or below key from from_index on; has no time limit */
};

enum tree_exist { TREE_ANY, TREE_ABSENT, TREE_PRESENT };

struct tree_request {
    enum tree_verb verb;
    const char *key;
    const char *value;     /* of PUT; NULL: none, which etcd keeps as "" */
    const char *compare;   /* only if the value is this text; NULL: whatever it is */
    enum tree_exist exist; /* of PUT: what must be there before */
    int64_t ttl_s;         /* 0: stays; a PUT without it takes away the one there was */
    bool dir;
    bool refresh; /* only the ttl is set anew, and nobody who waits is told */
    int64_t from_index;
    int64_t timeout_ms; /* of all but WAIT: after it the result is LOST */
};

enum tree_result {
    TREE_LOST, /* nothing came back, or nothing that says what was done: it may come into force */
    TREE_DONE,
    TREE_MISSING, /* etcd's 100 */
    TREE_CHANGED, /* 101: compare did not hold */
    TREE_EXISTS,  /* 105 */
    TREE_CLEARED, /* 401: from_index is too old to wait from; read again */
    TREE_REFUSED, /* any other code */
    TREE_NO_V2,   /* an etcd that does not serve this API */
    TREE_STRANGE, /* no etcd */
};

struct tree_node {
    const char *key;
    const char *value; /* "" for a directory */
    bool dir;
    bool gone; /* of a WAIT: deleted or expired, with all below it */
    int64_t modified;
};

struct tree_answer {
    enum tree_result result;
    int64_t index; /* etcd's, when it answered; 0: it did not say */
    /* GET: all at and below the key; PUT: the node as it is now; WAIT: the one that changed, or
     * none when etcd ended the wait. */
    const struct tree_node *nodes;
    size_t n;
    const char *text; /* VERSION: the version; not DONE: why, for people; never NULL */
};
