/* gate: whether runs have become slower than those of before, so that a pipeline can stop at it.
 * **Pure.**
 *
 * What makes the question hard is a machine whose speed drifts: runs that were made one after the
 * other differ from those of an hour ago without any change of the code. So
 *
 *   - runs are compared with those alone that found the machine about as fast, as the calibration
 *     of each run has measured it; what is left of a difference there is taken out by how much the
 *     time has followed the calibration until now (`follows`);
 *   - where runs of both kinds were made alternately, each is compared with its neighbour, and the
 *     drift is in both;
 *   - else a difference must be larger than those between blocks of as many runs of the base are,
 *     which nobody has changed anything between, and larger than what the worst job would show of a
 *     machine that was a little slower by then.
 *
 * What cannot be told so is open: neither an alarm nor an all-clear. "No slower" is said when the
 * upper limit of the difference (95 %) is below what must be caught, twice what is let pass; else
 * the runs are too few for the noise of this machine, and how many more are wanted is told. Times
 * are compared as ratios (by their logarithms).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GATE_RUNS = 10,       /* at least so many of each kind */
    GATE_BASE_MAX = 100,  /* of the base those that are nearest in time */
    GATE_MORE_MAX = 1000, /* who would need more need not ask how many */
};

struct gate_run {
    int64_t time_ns;
    double ms;             /* above 0 */
    double calibration_ms; /* 0: not measured */
    bool mine;             /* one of those that are judged; else of the base */
};

enum gate_answer {
    GATE_SAME,    /* no slower: by less than must be caught, at 95 % */
    GATE_SLOWER,  /* by chance alone hardly ever, and by more than is let pass */
    GATE_FEW,     /* open: there are too few runs */
    GATE_MACHINE, /* open: too few of the base found the machine as fast */
    GATE_DRIFT,   /* open: slower, but no more than the machine drifts, or nobody knows how much */
    GATE_NOISE,   /* open: neither is sure; so many runs on a machine as noisy cannot tell */
};

struct gate_options {
    size_t runs;   /* GATE_RUNS */
    double level;  /* 0.005: of false alarms among all findings that are settled together */
    double slower; /* 0.1: what is slower by less is let pass; by twice as much must be caught */
};

struct gate_finding {
    enum gate_answer answer;
    bool paired;             /* both kinds alternated in time */
    size_t n, base_n, alike; /* runs; of the base; of these on a machine as fast, or pairs */
    double median_ms, base_ms;
    double ratio;       /* 1.2: slower by 20 %, after the machine is allowed for */
    double most;        /* the ratio that it may be slower by, at 95 %; INFINITY: nobody knows */
    size_t more;        /* where it is noise: so many more runs of each would do, about */
    double p;           /* of the rank test */
    double superiority; /* rank_test.h */
    double machine;     /* calibration of v over that of all of the base; 0: not measured */
    double follows;     /* how much of a change of the calibration the time shows, 0 to 1.5 */
    double drift;       /* the ratio that the machine's drift alone may bring; 0: nobody knows */
    size_t blocks;      /* of the base, from which that is known */
};

/* Fills all but `more` and the answer, which is one of FEW and MACHINE, or stays for gate_settle
 * (SAME). Puts
 * v in order of time. */
void gate_compare(struct gate_finding *ret, struct gate_run *v, size_t n,
                  const struct gate_options *o);
/* Decides, by Holm's method, so that the level holds for all of them together. */
void gate_settle(struct gate_finding *v, size_t n, const struct gate_options *o);

const char *gate_answer_name(enum gate_answer a); /* "same", "slower", "open" */
