#include "faults/target.h"

#include "base/sys/process.h"
#include "base/sys/signals.h"

#include <errno.h>

static const int64_t end_wait_ns = 5000000000;

int target_signal(const struct target *t, int signo, struct err *err) {
    struct process p = {t->pid, t->pidfd};
    if (t->pidfd < 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    if (t->far)
        return t->ops->signal_program(t->node, signo, err);
    int r = process_signal_living(&p, signo);
    if (r == -ESRCH)
        return err_say(err, r, "%s has ended already", t->name);
    return r ? err_set(err, r, "send %s to %s", signal_name(signo), t->name) : 0;
}

int target_wait_end(const struct target *t, struct err *err) {
    struct process p = {t->pid, t->pidfd};
    if (t->pidfd < 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    int r = process_wait_end(&p, end_wait_ns);
    if (r == -ETIME)
        return err_say(err, r, "%s has not ended 5 s after SIGKILL: it hangs in the kernel",
                       t->name);
    return r ? err_set(err, r, "wait for the end of %s", t->name) : 0;
}
