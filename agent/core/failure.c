#include "agent/core/failure.h"

#include <stdio.h>

enum { HOW_SIZE = 48 };

static const char *how_it_ended(int status, char how[HOW_SIZE]) {
    int signo = status & 0x7f;
    if (signo)
        snprintf(how, HOW_SIZE, "was killed by signal %d", signo);
    else
        snprintf(how, HOW_SIZE, "exited with code %d", status >> 8 & 0xff);
    return how;
}

const char *failure_text(struct arena *a, const struct failure *f) {
    char how[HOW_SIZE];
    if (!f->uid[0])
        return f->error;
    if (f->local_rank < 0)
        return arena_printf(a, "node %s: %s", f->node, f->error);
    return arena_printf(a, "rank %d (local rank %d on node %s) %s%s%s", f->rank, f->local_rank,
                        f->node, how_it_ended(f->wait_status, how), f->error[0] ? ": " : "",
                        f->error);
}

void failure_of_guard(struct failure *f, int64_t pid, int wait_status) {
    char how[HOW_SIZE];
    bool killed = wait_status & 0x7f;
    f->rank = f->local_rank = -1;
    f->pid = pid;
    f->wait_status = wait_status;
    snprintf(f->error, sizeof(f->error), "the workers' guard (pid %lld) %s, and they with it; %s",
             (long long)pid, how_it_ended(wait_status, how),
             killed ? "not by its own timer, so a worker, somebody on this node or the kernel (out "
                      "of memory?) has ended it"
                    : "it needs a timer, signals and memory: see ulimit -a");
}
