/* evidence: one way in which the world shows that a fault was felt. One file per kind, one const
 * struct, one line in faults/evidence.h; a fault names its kinds, and was felt when each of them
 * has been seen of all of its targets.
 *
 * A kind keeps what it knows of a target of a firing in the target's `known`, at the kind's own
 * place. What may be NULL has nothing to do there. */
#pragma once

#include "harness/run/entry.h"

struct evidence {
    const char *what;   /* the sentence of the record when it was seen */
    const char *absent; /* what may be the reason when it was not */
    bool by_wire;       /* counted by the wire; where there is none, by the kernel: at_sockets */
    const char *at_sockets, *at_table; /* the latter where a filter of packets has counted */
    bool by_disk;                      /* read on a disk of the job */
    bool by_probe;                     /* told by what is ours in the job's programs */
    /* Read in the store by our own client, before the fault is brought in force and then; the words
     * of `rankquake inquire store-read`. NULL: nothing is. */
    const char *reads_before, *reads_after;
    bool of_scheduler; /* it is the node's scheduler that is asked; these words are the record's */
    bool counts; /* the wire's counters are asked for before the fault is in force and undone */
    bool unannounced; /* no record tells of it: every record is an occasion to look */
    bool told;        /* by the helper of a node on another host, which is not asked */
    bool momentary;   /* it lasts as long as the fault: later it is another's doing */
    bool answers;     /* inject only begins it: with this the fault is in force */
    /* The fault is about to be brought in force. Returns what is known of the target from now
     * on. */
    void *(*begin)(struct run_entry *a, struct bound *b);
    /* Whether this record, which came after the fault had fired, tells something of the target. */
    bool (*learn)(struct run_entry *a, struct bound *b, const struct record *r);
    bool (*felt)(struct bound *b);
    /* A better reason than `absent`, of what was seen of this target; NULL: there is none. */
    const char *(*why)(const struct run_entry *a, const struct bound *b);
    void (*put)(const struct run_entry *a, struct json_writer *w); /* figures of the record */
};

/* For a kind of which one record is enough: takes down when it came, true the first time; and what
 * is its `felt` then. */
bool evidence_note(struct bound *b, const struct record *r);
bool evidence_noted(struct bound *b);

extern const struct evidence *const evidences[EVIDENCES_N];
