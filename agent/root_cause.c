#include "agent/root_cause.h"

#include "agent/core/keys.h"
#include "agent/workers/guard.h"
#include "base/str.h"
#include "base/sys/line.h"
#include "base/sys/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

void root_cause_note(struct root_cause *c, int64_t round, int local_rank, pid_t pid, int status,
                     const char *error) {
    char how[64];
    const struct line_field fields[] = {{"local_rank", NULL, local_rank}, {"pid", NULL, pid}};
    const struct line line = {
        .level = LINE_ERROR, .what = "worker", .round = round, .fields = fields, .n_fields = 2};
    *c = (struct root_cause){local_rank, status, pid};
    line_put(&line, "round %lld, local rank %d, pid %d: %s%s%s", (long long)round, local_rank,
             (int)pid, process_status_text(status, how, sizeof(how)), error[0] ? ": " : "", error);
}

/* The sentence of the exit names rank, node and reason; this is what one needs to find its traces.
 */
void root_cause_print(const struct failure *f, int64_t round, bool earlier) {
    char when[64] = "";
    time_t s = (time_t)(f->realtime_ns / 1000000000);
    struct tm tm;
    if (f->realtime_ns && gmtime_r(&s, &tm))
        strftime(when, sizeof(when), " at %Y-%m-%d %H:%M:%S UTC", &tm);
    const struct line_field fields[] = {
        {.key = "node", .text = f->node}, {"rank", NULL, f->rank}, {"pid", NULL, f->pid}};
    const struct line line = {
        .level = LINE_ERROR, .what = "failure", .round = round, .fields = fields, .n_fields = 3};
    if (f->rank >= 0)
        line_put(&line, "first failure of round %lld%s: node %s, rank %d, pid %lld%s",
                 (long long)round, earlier ? " of that run" : "", f->node, f->rank,
                 (long long)f->pid, when);
}

void root_cause_hand_on(const struct root_cause *c, const struct failure *f, const char *node,
                        const struct guard *g) {
    const char *to = getenv("TORCHELASTIC_ERROR_FILE");
    int status = c->wait_status;
    struct err err = {0};
    bool ours =
        c->pid && f->pid == c->pid && f->local_rank == c->local_rank && str_eq(f->node, node);
    if (!to || !to[0] || !ours)
        return;
    int code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    int rc = guard_hand_on_error(g, c->local_rank, code, to, &err);
    if (rc < 0)
        line_say(LINE_WARNING, "failure",
                 "TORCHELASTIC_ERROR_FILE: the failed worker's error file is not handed on: %s",
                 err.msg);
}
