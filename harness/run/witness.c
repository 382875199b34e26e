/* The kernel's word that whoever waits for a fault still stood at its moment when the fault had come in
 * force: in which system call its thread is, before it is let go. */
#include "harness/run/entry.h"

#include "base/sys/system_calls.h"
#include "harness/run/evidence/seen.h"

/* NULL: none that has a name here. */
static const char *name_of(long call) {
    const char *const *name = system_call_names;
    while (*name && system_call_number(*name) != call)
        name++;
    return call < 0 ? NULL : *name;
}

static void record(struct run_entry *a, const char *node, pid_t pid, pid_t by,
                   const struct proc_thread *t) {
    struct json_writer *w = entry_record(a, SOURCE_KERNEL, "held");
    const char state[2] = {t->state, '\0'};
    json_put_string(w, "node", node);
    json_put_i64(w, "pid", pid);
    json_put_i64(w, "by", by);
    json_put_i64(w, "thread", t->tid);
    json_put_string(w, "state", state);
    json_put_i64(w, "call", t->call);
    if (name_of(t->call))
        json_put_string(w, "name", name_of(t->call));
    engine_recorded(a->owner->engine);
}

/* Who sent an event reads the one byte that lets it go on, or is on its way there; who has ended tells
 * by that. */
static void on_sender(void *arg, const char *node, pid_t pid, pid_t speaker) {
    struct proc_thread t;
    if (seen_waiting(speaker, &t))
        record(arg, node, pid, speaker, &t);
}

void entry_record_held(struct run_entry *a) {
    const struct timeline *t = a->owner;
    observer_kept(t->engine->observer, a->tag, on_sender, a);
    for (size_t i = 0; i < t->waiting_n; i++) {
        const struct waiting *w = &t->waiting[i];
        struct proc_thread at;
        if (w->tag == a->tag && w->node && proc_thread(w->call.pid, w->call.thread, &at))
            record(a, node_plan(w->node)->name, w->call.pid, w->call.pid, &at);
    }
}
