/* fault: one injected trouble. One file per fault, one const struct, one line in faults.h.
 *
 * A fault on processes runs in the node helper (FAULT_IN_NODE), so that one file serves a laptop
 * and a real host; a fault on a node as a whole or on the wire runs in the harness. `inject`
 * returns when the fault is in force: the process is dead, the signal delivered, the port silent.
 * It may wait for that by polling the target's pidfd with a deadline, never by sleeping. What shows
 * that it was felt is found by the harness in evidence, never by the fault itself: `evidence` names
 * what to look for. */
#pragma once

#include "faults/effect.h"
#include "faults/target.h"

#include <stddef.h>
#include <stdint.h>

enum fault_where { FAULT_IN_NODE, FAULT_IN_HARNESS };

/* What the history must hold after t0 for the fault to count as felt: EVIDENCE() of a kind, or the
 * sum of several, which must all be there. */
enum fault_evidence {
#define X(name) EVIDENCE_##name,
#include "faults/evidence.h"
#undef X
    EVIDENCES_N
};
#define EVIDENCE(name) (UINT64_C(1) << EVIDENCE_##name)
_Static_assert(EVIDENCES_N <= 64, "a set of kinds of evidence is a number of 64 bits");

/* What must be possible besides starting and signalling processes. Nodes in namespaces have silence,
 * tracing and the wire by themselves; nodes that are processes of the host have what the host allows
 * (need.h). */
enum fault_need {
    FAULT_NEEDS_SILENCE = 1, /* that what is sent to and from a node is dropped */
    FAULT_NEEDS_TRACE = 2,   /* that a process is made to do something (ptrace) */
    FAULT_NEEDS_WIRE = 4,    /* that frames pass us, which only namespaces have */
    /* That programs take an object of ours along, which stands before the C library (clock_page.h);
     * and that a node has uptimes of its own (a time namespace). */
    FAULT_NEEDS_PRELOAD = 8,
    FAULT_NEEDS_UPTIME = 16,
    FAULT_NEEDS_CALLS = 128,     /* that a program's system calls wait for us (call_watch.h) */
    FAULT_NEEDS_NAMES = 32,      /* that nodes ask a name server for each other, on the wire */
    FAULT_NEEDS_SCHEDULER = 256, /* that a scheduler has started the job: cluster.scheduler */
    FAULT_NEEDS_DISK = 64,       /* that what nodes write passes us: a disk of ours (FUSE) */
};

/* What serves the store, in nodes that are there for it alone. */
struct fault_store {
    bool etcd; /* a real one; else rankrun's own */
    int members;
    bool rankrun;        /* rankrun's agents meet there, and keep a job as they do */
    int64_t quota_bytes; /* of an etcd, as the scenario says; 0: its own */
};

struct fault_param {
    /* type: int | string (which .check reads) | text (any) | bool | duration | nodes ("n0,n1") |
     * groups ("n0,n1|n2", instead of a target); default_text: NULL where there is none */
    const char *name, *type, *default_text, *text;
};

struct fault_args { /* `with:` of the scenario; strings as written, validated against params */
    const struct fault_arg { const char *key, *value; } * v;
    size_t n;
    uint64_t seed;
    /* Of one that changes while it lasts: all its arguments from that time after it came in force
     * on; the first at 0. */
    const struct fault_step {
        int64_t at_ns;
        const struct fault_arg *v;
        size_t n;
    } * steps;
    size_t steps_n;
};

enum { FAULT_STEPS_MAX = 16 };

/* What of a fault may depend on its arguments. */
struct fault_course {
    unsigned effects, needs;
    uint64_t evidence;
    int64_t lasts_ns;  /* after which it is undone by itself; 0: it is not */
    int64_t every_ns;  /* from one time that it comes to the next, where it comes several times */
    int64_t follow_ns; /* after which its second part follows */
    int times;         /* how often it comes to whom it has struck, 1 at least */
};

enum { FAULT_STATUS_FAILED = -2 };

struct fault {
    const char *name, *summary;
    unsigned effects; /* EFFECT_*; LASTING: ends with recover, else there is nothing to undo */
    unsigned targets; /* TARGET_* it may be aimed at */
    unsigned needs;   /* FAULT_NEEDS_* */
    enum fault_where where;
    /* It holds a node to these, a bit for each enum node_limit: on another host its helper does so. */
    unsigned limits;
    bool profile;                     /* it can have steps, at most FAULT_STEPS_MAX */
    bool by_cloud;                    /* nodes in namespaces have a metadata service */
    uint64_t evidence;                /* EVIDENCE() */
    const struct fault_param *params; /* ended by {0} */
    const char *undo;                 /* a sentence for the plan */
    const char *blast;                /* what else it touches, for the plan */
    const char *example;              /* an entry of a timeline, for explain */
    /* Of a fault on the store alone: what is wrong with being aimed at such a store, found likewise.
     * NULL: nothing. */
    int (*suits)(const struct fault_args *a, const struct fault_store *store, struct err *err);
    /* What is wrong with the arguments, found before anything is done. NULL: nothing can be. */
    int (*check)(const struct fault_args *a, struct err *err);
    /* Changes what differs with these arguments from what is said above. NULL: nothing does. */
    void (*course)(const struct fault_args *a, struct fault_course *ret);
    /* EVIDENCE(signal_taken): that of the signal that was sent. EVIDENCE(target_exit): the wait
     * status that a target has which this fault ended, -1: any, FAULT_STATUS_FAILED: any but exit
     * code 0. Else an end of its own, later,
     * would pass for evidence. NULL: any. */
    int (*status)(const struct fault_args *a);
    /* What of the target it keeps in the run's directory, in target.keep: "core". NULL returned:
     * nothing. For FAULT_IN_NODE on a worker. */
    const char *(*keeps)(const struct fault_args *a);
    /* Of one on what programs do to a disk: the rule that it brings in force, without its root, and the disk. NULL: it
     * is none. */
    int (*rule)(const struct fault_args *a, struct disk_rule *ret, enum node_place *ret_place,
                struct err *err);
    /* A path of this host that it reads; NULL returned: none. */
    const char *(*reads)(const struct fault_args *a);
    /* The region of a worker's memory that it is about; NULL returned: none that was announced. */
    const char *(*region)(const struct fault_args *a);
    /* -EINPROGRESS: it has begun, and the node tells when it is in force (node_ops.cut_power). */
    int (*inject)(const struct target *t, const struct fault_args *a, struct err *err);
    int (*recover)(const struct target *t, const struct fault_args *a, struct err *err);
    /* The second part of what it does, course.follow_ns after it came in force. NULL: there is none.
     * Not called where the run ends before. */
    int (*follow)(const struct target *t, const struct fault_args *a, struct err *err);
};

static inline bool fault_has(const struct fault *f, unsigned effects) {
    return f->effects & effects; /* any of these */
}
/* On another host a node's helper does it, though it is done to the node as a whole. */
static inline bool fault_is_of_helper(const struct fault *f) {
    return f->limits || f->rule || f->needs & FAULT_NEEDS_PRELOAD;
}
struct fault_course fault_course(const struct fault *f, const struct fault_args *a);
/* A node that it ends is on again when it is undone. */
static inline bool fault_returns_node(const struct fault *f) {
    return fault_has(f, EFFECT_ENDS_NODE) && fault_has(f, EFFECT_LASTING);
}
const struct fault *fault_find(const char *name); /* NULL: no such fault */
/* "process", "node", "network", "clock", "disk", "store" or "scheduler": what it is done to, and the folder that its file
 * is in. */
const char *fault_family(const struct fault *f);
extern const char *const fault_evidence_names[EVIDENCES_N]; /* as in faults/evidence.h */
extern const struct fault *const faults[];                  /* alphabetical, NULL-ended */
extern const size_t faults_n;                               /* without the NULL */
const char *fault_arg(const struct fault_args *a, const char *key, const char *absent);
/* The argument "signal" as a number, or -EINVAL. */
int fault_signal(const struct fault_args *a, int absent, struct err *err);
