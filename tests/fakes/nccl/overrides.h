/* overrides: what the fake is asked to do wrong, in RANKTRAIN_FAKE_NCCL, between commas:
 *
 *     version=21300          ncclGetVersion says so
 *     hang@init              no communicator ever forms
 *     kill@init              the process is killed when its communicator begins to form
 *     hang@collective:12     the 12th group of calls neither ends nor fails, and sends nothing
 *     error=6@collective:12  it fails with that result (6: ncclRemoteError)
 *     drop@collective:12     it ends, but what one peer has sent is not added
 *     hang@abort             ncclCommAbort does not return, and lets go of nothing
 *     hang@finalize          ncclCommFinalize does not get done
 *     leak                   the root of an id goes on listening when all have called
 *     rank=1  round=2        all of it for that rank, in that round (RANKRUN_ROUND) only
 *     report=FILE            appends a line when the process ends in order: report.h */
#pragma once

#include <stdbool.h>

struct overrides {
    int version; /* 0: an ordinary one */
    bool hang_init, kill_init, hang_abort, hang_finalize, leak;
    int hang_collective, drop_collective, error_collective; /* 0: none */
    int error;
    int rank, round; /* -1: all */
    char report[256];
};

/* Read once from the environment; ends the process at a word it does not know, for a test that
 * plants nothing shows nothing. */
const struct overrides *overrides(void);

/* They are meant for that rank, in this round. */
bool overrides_meet(int rank);
