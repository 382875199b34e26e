/* serve: the program `rankrun store`. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tls;

struct serve_config {
    const char *host;
    uint16_t port;          /* 0: a free one */
    const char *quarantine; /* see agent/store/marker.h */
    const char *token;      /* NULL: none is demanded */
    bool draw_token;        /* one of its own, which agents are told by MUNGE where it is there */
    struct tls *tls;        /* taken over; NULL: plain */
    bool clients_certified; /* of tls: it asks for certificates of clients */
    size_t memory_mb, connections_max; /* see server_limits_of */
    const char *names;                 /* see server_allow */
};

/* Serves until SIGTERM or SIGINT, with one line on stdout when it listens. Returns 0, or -errno
 * with err when it cannot listen. */
int serve_run(const struct serve_config *c, struct err *err);
