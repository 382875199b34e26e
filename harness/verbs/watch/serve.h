/* serve: `watch RUN --serve`: a run as it goes on, for whoever opens its page. */
#pragma once

#include "base/sys/folder.h"
#include "base/sys/tcp.h"

#include <stdbool.h>

struct serve_wish {
    struct tcp_endpoint at; /* as door_address has read it */
    bool beyond, strict;    /* strict: as in rounds.h */
};

/* Prints the page's address, and returns the exit status after saying on stderr what went wrong: when a run
 * that went on has ended and its pages were told, or at a signal. */
int serve_history(const struct folder *run, const struct serve_wish *wish);
