#include "harness/cluster/seen_process.h"

#include "base/sys/proc.h"
#include "base/sys/process.h"

#include <unistd.h>

enum { ABOVE_MAX = 8 };

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

void seen_process_put_name(struct json_writer *w, pid_t pid, uint64_t start) {
    json_put_i64(w, "pid", pid);
    json_put_i64(w, "start", (int64_t)start);
}

void seen_process_put_name_now(struct json_writer *w, pid_t pid) {
    uint64_t start = 0;
    process_start_ticks(pid, &start);
    seen_process_put_name(w, pid, start);
}

void seen_process_put_line(struct json_writer *w, pid_t pid) {
    struct process_look p;
    seen_process_put_name_now(w, pid);
    json_array(w, "above");
    for (int i = 0; i < ABOVE_MAX && process_look(pid, &p) == 0 && p.parent > 1; i++) {
        pid = p.parent;
        if (pid == getpid())
            break;
        json_object(w, NULL);
        seen_process_put_name_now(w, pid);
        json_end_object(w);
    }
    json_end_array(w);
}
