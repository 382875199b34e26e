/* Stops every process of a node with SIGSTOP, and continues them at the end. */
#include "faults/fault.h"

#include "base/str.h"
#include "base/sys/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The helper, in which this runs, is the root of all that the node is. Who has been sent SIGSTOP
 * forks no more: the kernel looks for signals before a child comes to be. So once a look finds
 * nobody new, everybody has been sent it. */
static int signal_node(int signo, struct err *err) {
    pid_t *sent = NULL;
    size_t sent_n = 0;
    for (;;) {
        pid_t *pids;
        size_t n = process_list_descendants(getpid(), &pids), fresh = 0;
        for (size_t i = 0; i < n; i++)
            if (!process_is_among(pids[i], sent, sent_n) && kill(pids[i], signo) == 0)
                fresh++;
        free(sent);
        sent = pids;
        sent_n = n;
        if (!fresh)
            break;
    }
    free(sent);
    return sent_n ? 0 : err_say(err, -ESRCH, "nothing runs on the node");
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int r = signal_node(SIGSTOP, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    signal_node(SIGCONT, NULL); /* whoever is gone stands still no longer */
    return 0;
}

const struct fault fault_node_freeze = {
    .name = "node-freeze",
    .summary = "every process of a node stands still (SIGSTOP); its kernel lives and acknowledges",
    .effects = EFFECT_STALLS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_stopped),
    .params = (const struct fault_param[]){{0}},
    .undo = "SIGCONT to all of them, also to those that stood still before",
    .blast = "its agent, its workers and the store if it is there; peers wait, and give it up",
    .example = "{when: {step: 20}, fault: node-freeze, on: n2, for: 5s}",
    .inject = inject,
    .recover = recover,
};
