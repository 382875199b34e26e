#include "harness/cluster/seen_process.h"

#include "base/sys/proc.h"

#include <unistd.h>

void seen_process_put(struct json_writer *w, pid_t pid) {
    struct proc_thread t;
    struct proc_signals signals;
    bool waits = proc_waits_for_byte(pid, &t);
    if (!waits && !proc_thread(pid, pid, &t))
        return;
    const char state[2] = {t.state, '\0'};
    json_object(w, NULL);
    json_put_i64(w, "pid", pid);
    json_put_bool(w, "still", proc_stands_still(pid));
    json_put_bool(w, "waits", waits);
    json_put_i64(w, "thread", t.tid);
    json_put_string(w, "state", state);
    json_put_i64(w, "call", t.call);
    if (proc_signals(pid, &signals)) {
        json_put_i64(w, "pending", (int64_t)signals.pending);
        json_put_i64(w, "blocked", (int64_t)signals.blocked);
        json_put_i64(w, "ignored", (int64_t)signals.ignored);
        json_put_i64(w, "caught", (int64_t)signals.caught);
    }
    json_end_object(w);
}

void seen_node_put(struct json_writer *w) {
    json_object(w, NULL);
    json_put_i64(w, "pid", 0);
    json_put_bool(w, "still", proc_all_stand_still(getpid()));
    json_end_object(w);
}
