/* outpost: our program on a host that preflight asks: `rankquake preflight --outpost`. It answers
 * questions from standard input, one after the other, until that ends. */
#pragma once

#include "base/json.h"

#include <stdbool.h>
#include <sys/types.h>

struct outpost {
    pid_t server; /* answers connections of other outposts; 0: there is none */
    int ring;     /* the socket at which the neighbour of an all-reduce comes; -1: none */
    int hold;     /* the lock of this host, for as long as we live; below 0: it is not ours */
};

/* One kind of question. It adds members to the answer; what cannot be done is a member "error". */
struct errand {
    const char *name;
    void (*run)(struct outpost *o, const struct json *asked, struct json_writer *w);
    bool apart; /* in a process of its own: what it touches may hang for ever */
};

extern const struct errand errands_net[], errands_disk[], errands_host[]; /* ended by {0} */

/* Nobody is listened to any more. */
void outpost_end_server(struct outpost *o);

/* "error": the sentence with the text of an errno; r below 0. */
void errand_failed(struct json_writer *w, int r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns when there are no more questions. */
void outpost_serve(void);
