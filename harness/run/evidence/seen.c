#include "harness/run/evidence/seen.h"

#include "harness/carrier/host_process.h"

bool seen_stands_still(pid_t pid) {
    struct host_process_look look;
    if (!host_process_is(pid))
        return proc_stands_still(pid);
    return host_process_look_at(pid, false, &look) && look.still;
}

bool seen_signals(pid_t pid, bool before, struct proc_signals *ret) {
    struct host_process_look look;
    if (!host_process_is(pid))
        return proc_signals(pid, ret);
    if (!host_process_look_at(pid, before, &look))
        return false;
    *ret = (struct proc_signals){look.pending, look.blocked, look.ignored, look.caught};
    return true;
}

bool seen_waiting(pid_t pid, struct proc_thread *ret) {
    struct host_process_look look;
    if (!host_process_is(pid))
        return proc_waits_for_byte(pid, ret) || proc_thread(pid, pid, ret);
    if (!host_process_look_at(pid, false, &look))
        return false;
    *ret = (struct proc_thread){look.thread, look.state, look.call};
    return true;
}
