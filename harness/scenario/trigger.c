/* Loads when: the trigger of an entry. */
#include "base/str.h"
#include "base/sys/system_calls.h"
#include "harness/scenario/reader.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What a job may send (rankquake.h); a step has a word of its own. */
static const char *const events[] = {
    "ready",
    "first-collective",
    "checkpoint-begin",
    "checkpoint-write",
    "checkpoint-commit",
    "resume",
    "exit-barrier",
    "done",
    "other",
    NULL,
};

static void read_event(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct trigger *t = out;
    if (n->type == YAML_SCALAR && str_eq(n->text, "step")) {
        diagnostics_add(r->d, n->place, "event: step has a word of its own; write step: N");
        return;
    }
    int i = reader_choice(r, k, n, events, NULL);
    t->event = i < 0 ? "" : events[i];
}

static void read_phase(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const phases[] = {
        "join", "last-call", "ack", "start", "first-collective", "exit-barrier", NULL};
    struct trigger *t = out;
    int i = reader_choice(r, k, n, phases, NULL);
    t->phase = i < 0 ? "" : phases[i];
}

/* It is told in the same way, by a build that has it. */
static void read_failpoint(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const names[] = {"answer-lost", "certified-under-ack", "coordinator-unheard",
                                        NULL};
    struct trigger *t = out;
    int i = reader_choice(r, k, n, names, NULL);
    if (t->phase)
        diagnostics_add(r->d, n->place, "when has a phase and a failpoint; give one");
    t->phase = i < 0 ? "" : names[i];
    t->failpoint = true;
}

static void read_after(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct trigger *t = out;
    if (!reader_is_scalar(r, k, n))
        return;
    t->after_id = n->text;
    int i = reader_id(r, k, n->text, n->place);
    if (t->ends && i >= 0 && i != (int)r->ids_read)
        t->after = i; /* what ends it may come later */
    else if (t->ends && i >= 0)
        diagnostics_add(
            r->d, n->place,
            "after: \"%s\" is this entry itself; use for to say how long the fault lasts", n->text);
    else if (i >= (int)r->ids_read)
        diagnostics_add(r->d, n->place,
                        "after: \"%s\" %s; a fault can only follow one that stands above it",
                        n->text, i == (int)r->ids_read ? "is this very entry" : "comes later");
    else if (i >= 0)
        t->after = i;
}

const char *const file_op_names[] = {"open", "write", "rename", "close", NULL};

static void read_op(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    int i = reader_choice(r, k, n, file_op_names, NULL);
    ((struct trigger *)out)->op = i < 0 ? FILE_OP_OPEN : (enum file_op)i;
}

/* NULL: it can match a name. */
static const char *what_is_wrong(const char *glob) {
    size_t len = strlen(glob);
    if (!len || glob[len - 1] == '/')
        return "names no file";
    if (strchr(glob, '{'))
        return "is looked for in the job's directories already; leave the placeholder and its "
               "slash out";
    for (const char *p = glob; *p; p++) {
        if (*p == '\\' && !*++p)
            return "ends with a backslash that quotes nothing";
        if (*p == '[' && !strchr(p + 1, ']'))
            return "has a [ without its ]";
    }
    char text[4096];
    snprintf(text, sizeof(text), "/%s/", glob);
    return strstr(text, "/../") || strstr(text, "/./")
               ? "has . or .. in it, which no path has that "
                 "it is compared with"
               : NULL;
}

static void read_file(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    if (!reader_is_scalar(r, k, n))
        return;
    const char *wrong = what_is_wrong(n->text);
    if (wrong)
        diagnostics_add(r->d, n->place, "file: \"%s\" %s", n->text, wrong);
    ((struct trigger *)out)->file = n->text;
}

static void read_syscall(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct trigger *t = out;
    if (!reader_is_scalar(r, k, n))
        return;
    const char *why = system_call_why_not(n->text);
    t->syscall = n->text;
    t->syscall_number = system_call_number(n->text);
    if (why)
        diagnostics_add(r->d, n->place, "syscall: %s %s", n->text, why);
    else if (t->syscall_number < 0 && str_in(n->text, system_call_names))
        diagnostics_add(r->d, n->place, "syscall: this machine has no %s", n->text);
    else if (t->syscall_number < 0)
        reader_choice(r, k, n, system_call_names, NULL);
}

static void read_store(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct trigger *t = out;
    int i = reader_choice(r, k, n, store_operation_names, NULL);
    t->store = i < 0 ? "" : store_operation_names[i];
    t->operation = i < 0 ? STORE_OPERATION_NONE : (enum store_operation)i;
}

static void read_log(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    ((struct trigger *)out)->log = reader_line(r, k, n);
}

#define AT(member)   .offset = offsetof(struct trigger, member)
#define SAID(member) .said = offsetof(struct trigger, member)
enum { STEPS_MAX = 1000000000, ROUNDS_MAX = 1000000 };

const struct section section_when = {
    "when",
    "When a fault fires: all conditions that are named must have been met, in any order.",
    (const struct key[]){
        {"step", "a whole number", NULL,
         "A worker of the target has applied update s and has not begun s+1.", "when: {step: 137}",
         reader_i64, AT(step), SAID(has_step), .min = 1, .max = STEPS_MAX, .form = "<int>"},
        {"round", "a whole number", NULL, "The first worker of round r has started.",
         "when: {round: 2, step: 160}", reader_int, AT(round), SAID(has_round), .min = 1,
         .max = ROUNDS_MAX, .form = "<int>"},
        {"time", "a duration", NULL,
         "Since the steady state: every worker of round 1 has sent its first step.",
         "when: {time: 20s}", reader_duration, AT(time_ns), SAID(has_time), .form = "<duration>"},
        {"event", "the kind of a job's event", NULL,
         "The nth event of that kind from the target's workers together: ready, first-collective, "
         "checkpoint-begin, checkpoint-write, checkpoint-commit, resume, exit-barrier, done or "
         "other.",
         "when: {event: checkpoint-write, nth: 2}", read_event, SAID(has_event),
         .form = "ready | first-collective | checkpoint-begin | checkpoint-write | "
                 "checkpoint-commit | resume | exit-barrier | done | other"},
        {"nth", "a whole number", "1",
         "Which one: of the events, of the lines, of the operations and calls, of the requests to "
         "the store, or of those that reach the phase.",
         "when: {event: checkpoint-commit, nth: 3}", reader_int, AT(nth), .min = 1,
         .max = STEPS_MAX},
        {"after", "the id of an entry above", NULL,
         "The trigger is armed once that fault is in force.", "when: {after: dark, step: 160}",
         read_after, .form = "<id>"},
        {"plus", "a duration", NULL, "Fires this much later than the condition is met.",
         "when: {after: dark, plus: 2s}", reader_duration, AT(plus_ns)},
        {"within", "a duration", "(limits.total)",
         "If the condition is not met by then, the fault counts as not fired.", "within: 30s",
         reader_duration, AT(within_ns), .min = 1},
        {"hold", "true or false", "(true for step, event, phase, file, syscall and store)",
         "Stops the thread that sent the event, or that is about to do the operation, until the "
         "fault is in force, so that the target has "
         "done exactly that much; a request to the store waits on the wire. What is read from the "
         "job's output (observe) is never held.",
         "hold: false", reader_bool, AT(hold)},
        {"patient", "true or false", "false",
         "When the conditions are met and nothing matches the target, wait (again for within) "
         "until something does. Without it the fault then counts as not fired.",
         "when: {time: 20s, patient: true}", reader_bool, AT(patient)},
        {"phase", "a place in a round", NULL,
         "The target has reached this phase: join, last-call, ack (an agent says so), start (a "
         "worker is about to be executed), first-collective or exit-barrier. With round: r, in "
         "that round; the first four lie before its first worker.",
         "when: {round: 2, phase: ack}", read_phase,
         .form = "join | last-call | ack | start | first-collective | exit-barrier"},
        {"failpoint", "a place in rankrun", NULL,
         "An agent of a debug build of rankrun (make BUILD=debug) has reached this place: "
         "answer-lost (the store has a transaction, and the agent has not heard the answer), "
         "coordinator-unheard (the same for a head that it wrote), certified-under-ack (it is "
         "about to send an ack). Other builds have no such places, so the trigger never fires.",
         "when: {failpoint: coordinator-unheard}", read_failpoint,
         .form = "answer-lost | certified-under-ack | coordinator-unheard"},
        {"log", "a regular expression", NULL,
         "The nth line that the target has written: a worker, an agent, or what runs on a node, on "
         "standard output or standard error. It is read some milliseconds later, so nothing can be "
         "held there.",
         "when: {log: '/saving checkpoint/', nth: 2}", read_log, .form = "<line>"},
        {"file", "a file name with * ? [...]", NULL,
         "A worker of the target, or a process that it has started, is about to do `op` to a file "
         "that is like this, for the nth time: the kernel holds the process in that system call, "
         "before it takes effect, until the fault is in force. So a save that the job does not "
         "announce is hit exactly. The glob is compared with the file's name, or where it has a "
         "slash with its path: below {shared}, {disk}, {tmp}, job.checkpoint.dir or the directory "
         "that the job was started in; one that begins with / with the whole path. dir/** is all "
         "that lies below dir. What goes "
         "around these calls (a mapping, io_uring) is not seen. The job can gain no privileges by "
         "an exec meanwhile (no sudo).",
         "when: {file: 'snapshot*', op: write, nth: 3}", read_file, .form = "<text>"},
        {"op", "an operation on a file", NULL,
         "Of `file`: open (to write; nothing has been emptied yet), write (of some of its bytes), "
         "rename (the glob may be like the old name or the new one; the new name is not there "
         "yet), close (of what was opened to write).",
         "when: {file: '*.pt', op: rename}", read_op, .form = "open | write | rename | close"},
        {"syscall", "the name of a system call", NULL,
         "A worker of the target, or a process that it has started, is about to make this system "
         "call for the nth time, all of them together: the kernel holds it there, before it takes "
         "effect, until the fault is in force. For programs that send no events. The name is the "
         "kernel's, and not the library's: openat and not open, fsync, connect, sendto, recvmsg, "
         "clone3. A call that is answered without the kernel (clock_gettime) or that threads wait "
         "for each other with (futex) is refused. What a job does before it is a worker is not "
         "counted, and what is watched can gain no privileges by an exec (no sudo).",
         "when: {syscall: fsync, nth: 3}", read_syscall, .form = "<text>"},
        {"store", "an operation of the store", NULL,
         "A node of the target asks the store for this for the nth time, or where the target is "
         "the "
         "store, anybody does: the request waits on the wire, before the store has it, until the "
         "fault is in force. For launchers and programs that send no events. Read in plain HTTP, "
         "as rankrun and torchrun's etcd backends speak it (etcd's v3 JSON gateway, and v2): put, "
         "range (a read), delete, txn, compact, lease-grant, keep-alive, lease-revoke or watch. "
         "What an agent asks of a store on its own node does not pass the wire, and TLS, gRPC and "
         "torch's TCPStore (c10d) cannot be read there.",
         "when: {store: txn, nth: 5}", read_store,
         .form = "put | range | delete | txn | compact | lease-grant | keep-alive | lease-revoke | "
                 "watch"},
        {0},
    },
    .any_of = "step round time event phase failpoint log file syscall store after",
};
