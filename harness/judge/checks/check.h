/* check: one question asked of a history. One file per check, one const struct, one line in
 * checks.h.
 *
 * A check declares the sources it may read and is given a history from which all others have been
 * taken out (verdict_judge filters), so it cannot be fooled by what it did not name. A claim may be
 * read only for what the job alone can know, and where something outside sees it too it is
 * compared. */
#pragma once

#include "harness/judge/verdict.h"

#define SOURCES(s) (1u << SOURCE_##s)

/* What only the job can tell, by events or (all but the shards) by what it prints. */
enum {
    NEEDS_STEPS = 1,
    NEEDS_RESUME = 2,
    NEEDS_MODEL = 4,
    NEEDS_SHARDS = 8,
    NEEDS_COMMUNICATOR = 16,
    NEEDS_WEIGHTS = 32,
    NEEDS_SAMPLES = 64
};

struct check {
    const char *name;    /* as in `list checks` */
    const char *summary; /* one line */
    const char *text;    /* what it means, for explain */
    const char *example; /* what asks for it, "expect: {..}", or a run that shows it */
    enum finding_class class;
    unsigned sources; /* SOURCES(KERNEL) | ... ; SOURCE_HARNESS is always given */
    unsigned
        needs_events; /* what the job must tell to be judged so: NEEDS_STEPS | ...; 0: nothing */
    bool told;        /* it only compares what workers were given, whenever that was heard */
    bool leads;       /* what others of its class find follows from it where it fails */
    bool on_gpus;     /* it judges what is done on GPUs, when nodes are given any */
    /* Why this scenario gives nothing to judge, whatever happens, else NULL. It is skipped then.
     * May be NULL: there is always something. */
    const char *(*not_applicable)(const struct scenario *s);
    bool (*judge)(const struct trial *t, struct finding *f); /* fills it; true: it passed */
};

/* For checks about rounds. False when no worker was seen to start, with the finding filled: nothing
 * to judge where the job was meant to fail, an open question where it was meant to train. */
bool check_sees_rounds(const struct trial *t, struct finding *f);

/* The finding for a worker that was seen to end, but not how: why this host did not tell it. */
bool check_unknown_exit(const struct trial *t, struct finding *f, const char *broken,
                        const struct worker *w);

/* What the launcher said of a node, or with NULL of any, in that time and a second more: that its
 * agent could not reach the store in time and has ended its workers for that, by force. Nothing
 * else shows it; a claim makes nothing pass. NULL: nothing. Needs SOURCES(LAUNCHER). */
const struct record *check_said_fenced(const struct history *h, const char *node, int64_t from_ns,
                                       int64_t to_ns);

/* By then the guard of a node of the round may have ended this worker by force (NULL: any), because
 * the host was so short of time that its agent was not heard for longer than it may be silent.
 * Nobody records who sends a signal: this is told by how late the harness was itself. Launchers
 * that have no guard never do that. */
bool check_may_be_fenced(const struct trial *t, const struct round *r, const struct worker *w,
                         int64_t by_ns);

/* Something that the job printed was not read, or came too fast for each line to be recorded. */
bool check_output_has_gaps(const struct history *h);

/* The job is launched by a template: whatever that is, it is not asked for torchrun's variables. */
bool check_template(const struct trial *t);

/* For idle: why no checkpoints of the job can be read from outside, else NULL. A directory that
 * each node has for itself is many, and nobody reads them. */
const char *check_no_checkpoints(const struct scenario *s);
/* What a complete checkpoint of the job is, is known: job.checkpoint.complete says it, or some look
 * at the directory has found one of ranktrain's format, be it damaged. Where it is not, an empty
 * look shows nothing: the job may save in a format of its own. Needs SOURCES(DISK). */
bool check_knows_checkpoints(const struct trial *t);
/* A fault that damages disks and was in force at some time from then to then: what was complete may
 * not be so any more, and the job is not to blame. The newest one's fault-in-force; NULL: none was. */
const struct record *check_disk_fault(const struct trial *t, int64_t from_ns, int64_t to_ns);
/* The newest commit that the job has told before that record, in whatever way; NULL: none. */
const struct record *check_commit_before(const struct trial *t, int64_t seq);

/* How long a launcher lets its workers end by themselves after the first signal: after a worker of
 * the round has failed (its checkpoint is older anyway), or after a change of members or a signal.
 * -1: the job sets times that are not known here. */
int64_t check_grace_ns(const struct scenario *s, bool after_failure);

/* Of an agent whose command line is wrong; of one that cannot reach the store, and so cannot know how the
 * job ends. */
enum { CHECK_EXIT_REFUSED = 64, CHECK_EXIT_UNKNOWN = 69 };

struct agent_end;
/* The launcher has taken its command line for wrong, by its exit code: 64, of another launcher than
 * rankrun any but 0. Whether there were workers is not asked. */
bool check_refused(const struct trial *t, const struct agent_end *a);

/* The end of an agent, and whether a fault of the timeline has brought it about: killed it or its
 * node, or told it to leave. */
struct agent_end {
    const char *node;
    int64_t pid, start_ns, exit_ns; /* exit_ns 0: it was never seen to end */
    int code, signal;               /* of a template's every failure is 1 */
    int64_t seq;                    /* of its end, else of its start */
    const char *fault_id;           /* of the fault that ended it, or kept it from the store until
                                     * it gave up; NULL: none */
    int told_to_leave;              /* by that fault: by this signal, or 0 */
    bool spare; /* semantics: torchrun, and it never had a worker: it may end as it likes */
};
/* The agents of all nodes, in order of start; the first 1024 at most. Needs SOURCES(KERNEL), and
 * for spare SOURCES(PROBE). */
struct agent_end *check_agents(const struct trial *t, size_t *ret_n);

/* When agents began and ended, of all nodes: for checks that ask it again and again. Needs
 * SOURCES(KERNEL). */
struct agent_moves {
    struct agent_move {
        int64_t t_ns;
        bool came;
    } * v;
    size_t n;
};
struct agent_moves check_agent_moves(const struct trial *t);

/* The fault was aimed at this node, its agent or the store, which all nodes need; not at a worker.
 */
bool check_names_node(const struct incident *i, const char *node);
/* The fault took the store, or the node whose agent serves it, with all that it knew of the job. */
bool check_took_store(const struct trial *t, const struct incident *i);

/* Which checks will have something to judge in a run of this scenario, and why others will not.
 * gpus: nodes are given GPUs. */
void checks_forecast(const struct scenario *s, bool gpus, struct buf *out);
/* The same of any job that tells nothing: what is left of the checks, and what would bring back the
 * others. */
void checks_without_events(struct buf *out);

/* What becomes of workers, and what they are given, is torchrun's to say: under semantics: torchrun,
 * but not of rankrun over torchelastic's legacy protocol. That leaves it no count of the job's own and
 * no order of the nodes; all else it promises as ever. */
bool check_by_torchrun(const struct scenario *s);

/* Where check_by_torchrun() nothing is promised for a node whose agent a fault has killed, stopped
 * or cut off: its workers may live on. The first such fault that was in force there by then; NULL:
 * none, or another launcher. */
const struct incident *check_forsaken(const struct trial *t, const char *node, int64_t by_ns);

/* By how much the time from the end of a worker to a moment of another may be off: 0 on one node, and
 * where all clocks are ours. */
int64_t check_off_ns(const struct worker *ended, const struct worker *w, enum worker_moment m);
/* " +- 0.4 ms", to stand behind that time; "" for 0. */
const char *check_off_text(char *out, size_t size, const struct worker *ended,
                           const struct worker *w, enum worker_moment m);

extern const struct check *const checks[]; /* alphabetical, NULL-ended */
const struct check *check_find(const char *name);
