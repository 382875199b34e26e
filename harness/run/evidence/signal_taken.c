/* What became of a signal that a process was sent, by the kernel's word: it ended by it (or with 128
 * and its number, as one does that has handled it and goes), or stands still, or has taken it out
 * of its queue to handle it. A store that handles it ends with what it likes, and as it serves until
 * it is told to end, any exit will do. A signal that is ignored is forgotten on the spot, and
 * nothing shows that it was ever sent. */
#include "harness/run/evidence/evidence.h"

#include "base/sys/signals.h"
#include "harness/carrier/host_process.h"
#include "harness/run/evidence/seen.h"

#include <signal.h>
#include <sys/wait.h>

struct sent {
    int signo;
    bool caught, ignored; /* when it was about to be sent */
    bool ended_by;
};

static uint64_t bit_of(int signo) {
    return UINT64_C(1) << (signo - 1);
}

/* Of a process on another host its helper tells, with the answer. */
static void note_before(struct sent *s, pid_t pid) {
    struct proc_signals now;
    if (!seen_signals(pid, true, &now))
        return;
    s->caught = now.caught & bit_of(s->signo);
    s->ignored = now.ignored & bit_of(s->signo);
}

static void *begin(struct run_entry *a, struct bound *b) {
    struct sent *s = arena_new(&a->owner->engine->arena, struct sent);
    s->signo = WTERMSIG(a->plan->fault->status(&a->args));
    note_before(s, b->target.pid);
    return s;
}

static bool is_exit(const struct record *r) {
    return r->source == SOURCE_KERNEL && (record_is(r, "worker-exit") ||
                                          record_is(r, "agent-exit") || record_is(r, "store-exit"));
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    struct sent *s = b->known[EVIDENCE_signal_taken];
    if (!s || !is_exit(r) || r->pid != b->target.pid)
        return false;
    int64_t code = json_get_i64(r->fields, "code", -1);
    bool handled = code == 128 + s->signo || (record_is(r, "store-exit") && code >= 0);
    if (host_process_is(b->target.pid))
        note_before(s, b->target.pid);
    bool ended_by = json_get_i64(r->fields, "signal", 0) == s->signo || (s->caught && handled);
    s->ended_by |= ended_by;
    return ended_by;
}

static bool is_a_stop(int signo) {
    return signo == SIGSTOP || signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

/* Sent to the process, it waited in the queue that all threads share; whoever caught it before and
 * still does has it no longer because it was handed to the program. */
static bool was_handled(const struct sent *s, pid_t pid) {
    struct proc_signals now;
    return s->caught && seen_signals(pid, false, &now) && now.caught & bit_of(s->signo) &&
           !(now.pending & bit_of(s->signo));
}

static bool felt(struct bound *b) {
    struct sent *s = b->known[EVIDENCE_signal_taken];
    if (host_process_is(b->target.pid))
        note_before(s, b->target.pid);
    return s->ended_by || was_handled(s, b->target.pid) ||
           (is_a_stop(s->signo) && seen_stands_still(b->target.pid));
}

static const char *why(const struct run_entry *a, const struct bound *b) {
    const struct sent *s = b->known[EVIDENCE_signal_taken];
    struct arena *m = &a->owner->engine->arena;
    if (s->ignored)
        return arena_printf(m, "%s ignored %s", b->target.name, signal_name(s->signo));
    if (s->caught)
        return arena_printf(m, "%s has a handler for %s and was not seen to come to it",
                            b->target.name, signal_name(s->signo));
    return NULL;
}

const struct evidence evidence_signal_taken = {
    .what = "the target has taken the signal",
    .absent = "it has no handler for the signal, and neither ended nor stopped by it",
    .unannounced = true,
    .begin = begin,
    .learn = learn,
    .felt = felt,
    .why = why,
};
