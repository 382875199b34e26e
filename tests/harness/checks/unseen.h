/* unseen: no worker was seen to start, or what workers told was lost: nothing is known then. */
#pragma once

#include "tests/harness/checks/wrongs.h"

static const struct wrong unseen[] = {
    {"bounds", UNKNOWN, "no worker-start", KILLED, {{"\"probe\"", NULL, "", NULL}}},
    {"budget", UNKNOWN, "no worker-start", KILLED, {{"\"probe\"", NULL, "", NULL}}},
    {"device_memory", UNKNOWN, "no worker-start", GPUS, {{"\"probe\"", NULL, "", NULL}}},
    {"rank_order", UNKNOWN, "no worker-start", KILLED, {{"\"probe\"", NULL, "", NULL}}},
    {"ranks", UNKNOWN, "no worker-start", KILLED, {{"\"probe\"", NULL, "", NULL}}},
    {"world_sizes", UNKNOWN, "no worker-start", KILLED, {{"\"probe\"", NULL, "", NULL}}},
    {"lost_work",
     UNKNOWN,
     "events of every worker of round 1 were lost",
     KILLED,
     {{"\"pid\":11", NULL, "\"lost\":0", "\"lost\":2"}}},
    /* One of two told it all. */
    {"lost_work",
     PASS,
     "1 step made again",
     KILLED,
     {{"\"pid\":111", NULL, "\"lost\":0", "\"lost\":2"}}},
};

enum { UNSEEN = sizeof(unseen) / sizeof(*unseen) };
