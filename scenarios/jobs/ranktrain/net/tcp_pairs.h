/* tcp_pairs: what one rank sends to another, over the connection of the two. */
#pragma once

#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/net/tcp_links.h"
#include "scenarios/jobs/ranktrain/net/tcp_message.h"

#include <stdbool.h>

struct tcp_pairs {
    struct tcp_links *links;
    struct collective_call *call; /* NULL: nothing is under way */
    struct tcp_message message;
    uint64_t sent[BOOTSTRAP_MEMBERS], got[BOOTSTRAP_MEMBERS];
    int64_t started_ns;
};

/* A COLLECTIVE_SEND or COLLECTIVE_RECEIVE; as start and poll of collective.h. */
int tcp_pairs_start(struct tcp_pairs *p, struct collective_call *call, struct err *err);
int tcp_pairs_poll(struct tcp_pairs *p, int timeout_ms, struct err *err);
