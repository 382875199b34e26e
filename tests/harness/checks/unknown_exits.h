/* unknown_exits: a worker was seen to end but not how: what each check then says, and why. */
#pragma once

#include "tests/harness/checks/wrongs.h"

static const struct wrong unknown_exits[] = {
    {"model",
     UNKNOWN,
     "the kernel did not tell",
     KILLED,
     {{"worker-exit", "\"pid\":121", "\"code\":0", "\"unknown\":true"}}},
    {"one_outcome",
     UNKNOWN,
     "the kernel did not tell how rank 1 on n0 ended",
     KILLED,
     {{"worker-exit", "\"pid\":121", "\"code\":0", "\"unknown\":true"}}},
    {"one_outcome",
     UNKNOWN,
     "on Linux before 6.15 (this is 6.1.0-9) only root can see it",
     KILLED,
     {{"\"run\"", NULL, "\"control\":false", "\"kernel\":\"6.1.0-9\",\"exits\":\"zombie\""},
      {"worker-exit", "\"pid\":121", "\"code\":0", "\"unknown\":true"}}},
    {"one_outcome",
     UNKNOWN,
     "the kernel's word of how rank 1 on n0 ended was lost",
     KILLED,
     {{"\"run\"", NULL, "\"control\":false", "\"kernel\":\"6.1.0-9\",\"exits\":\"events\""},
      {"worker-exit", "\"pid\":121", "\"code\":0", "\"unknown\":true"}}},
    {"outcome",
     UNKNOWN,
     "the kernel did not tell how rank 1 on n0 ended",
     KILLED,
     {{"worker-exit", "\"pid\":121", "\"code\":0", "\"unknown\":true"}}},
};

enum { UNKNOWN_EXITS = sizeof(unknown_exits) / sizeof(*unknown_exits) };
