/* schedule: what happens in a simulated run, as data. A seed's schedule is drawn; one that fails
 * can be made smaller, written down and played again.
 *
 * What is not in it (how long each message takes, which one is lost, how long workers work, how
 * clocks go) is derived from the seed and from whom it is about: with a fault less, the rest of the
 * run stays the same as far as it does not depend on that fault. */
#pragma once

#include "harness/sim/sim.h"

struct buf;
struct err;
struct history;

#define SIM_MS 1000000LL

enum {
    SIM_NODE_NONE = -1,   /* the fault is not about one node */
    SIM_NODE_WRITER = -2, /* the sender of the transaction that it waits for */
    SIM_AFTER_MAX = 1000,
};

struct sim_entry {
    int64_t at_ns; /* since the beginning */
    int fault;     /* in sim_faults() */
    int node;
    /* 0: at that time. Else right after that many transactions (no beats) were applied from then
     * on: before their answers and watch events have reached anybody. */
    int after;
    int64_t span_ns; /* how long it lasts, where it lasts */
    int64_t back_ns; /* the agent is started again so long after; 0: it stays away */
    int watch;       /* in sim_watches(), where it strikes a watch */
};

/* The watches that an agent has, by name; NULL-ended. */
const char *const *sim_watches(void);

struct sim_schedule {
    uint64_t seed; /* of everything that is not said here */
    int agents, min, max, max_restarts;
    int loss, late;         /* messages lost, and very late, of a thousand */
    int fragile;            /* groups of workers, of a thousand, that fail by themselves */
    int64_t slow_ns;        /* every message takes up to this ... */
    int64_t slow_answer_ns; /* ... and every answer up to so much more */
    int64_t work_ns;        /* a round's work takes up to this */
    int64_t trouble_ns;     /* then everything heals */
    bool patient;           /* no round's work is over before that */
    bool plain;             /* as in sim_config */
    bool calm;              /* there is no trouble: healed from the beginning */
    bool usual;             /* the profile is default, not fast */
    bool even;              /* all clocks go alike */
    bool hosted;            /* the others reach the store through n0's agent, which ends last */
    bool seated;            /* group ranks are fixed; more agents than max come for a taken one */
    bool lifeline;          /* agents have one */
    bool gang;              /* the loss of a node ends the job */
    int spares;             /* the last nodes, that wait as spares */
    struct sim_entry *entries; /* by time */
    int n_entries;
};

/* Never fails; same config, same schedule. sim_schedule_fini frees what it holds. */
void sim_draw(const struct sim_config *config, struct sim_schedule *ret);
void sim_schedule_fini(struct sim_schedule *s);
/* Any bytes are a schedule, and bytes that differ little are schedules that do: for a fuzzer. */
void sim_decode(const uint8_t *data, size_t n, struct sim_schedule *ret);
void sim_schedule_copy(const struct sim_schedule *s, struct sim_schedule *ret);
/* Puts it in its place by time; the caller has seen to the room for it. */
void sim_schedule_add(struct sim_schedule *s, const struct sim_entry *e);

enum { SIM_FREE_ROUNDS = 500 /* in an hour, where nothing else is said */ };

/* What the seed says of its job beside that: in most seeds the same. */
struct sim_terms {
    bool count_by_node;  /* what workers are told of restarts */
    int max_free_rounds; /* in an hour; 0: any */
    int64_t last_call_ns, join_timeout_ns, give_up_ns;
    bool impatient;  /* one of the last two is short */
    bool roles;      /* nodes have different ones */
    bool unnamed;    /* its agents name no attempt */
    bool neighbours; /* other jobs are in the store, of names that begin alike */
    bool in_process; /* the only agent has its store within itself */
    bool hasty;      /* timers come up to a millisecond early */
    bool beside;     /* another job of several agents runs in the store */
};
struct sim_terms sim_terms(const struct sim_schedule *s);

/* The other job's name: its keys come right behind the end of those of "job". */
#define SIM_BESIDE "job0"
/* Its schedule: the same store and network, on nodes of the same names, and no faults but those of
 * the store; it holds nothing to be freed. */
void sim_beside(const struct sim_schedule *s, struct sim_schedule *ret);

/* Whether the two stand in one rack, a third of the nodes. */
bool sim_in_rack(int nodes, int node, int other);
/* The node's fixed group rank + 1; 0: it has none. */
int sim_seat(const struct sim_schedule *s, int node);

/* Plays it; with trace, every event is printed. */
void sim_play(const struct sim_schedule *s, bool trace, struct sim_result *ret);
/* The same, and written to h as the harness would have recorded it live; goes on to the end also
 * when an invariant is broken, of which ret holds the first. */
void sim_record(const struct sim_schedule *s, bool trace, struct history *h,
                struct sim_result *ret);
/* As sim_play; out gets the exchange, for people (transcript.h). */
void sim_transcribe(const struct sim_schedule *s, struct buf *out, struct sim_result *ret);
/* The scenario file that goes with such a history. */
void sim_scenario(const struct sim_schedule *s, const struct history *h, const struct sim_result *r,
                  struct buf *out);
/* Records it into a run directory, which is made: scenario.yaml and history.jsonl, as `rankquake
 * judge` reads them. Returns 0, or an error that names the file. */
int sim_record_into(const struct sim_schedule *s, const char *dir, struct sim_result *ret,
                    struct err *err);
