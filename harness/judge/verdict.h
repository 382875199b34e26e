/* verdict: what was found. A check answers pass, fail, unknown or skip; unknown is never a pass.
 *
 * Three separate answers: did the faults take effect, did the system do right, is the harness
 * healthy. The exit code follows from them (verdict_exit_code). */
#pragma once

#include "harness/history/goodput.h"
#include "harness/history/history.h"
#include "harness/history/incidents.h"
#include "harness/history/rounds.h"
#include "harness/scenario/scenario.h"

struct lags;
struct lost;

enum finding_status { FINDING_PASS, FINDING_FAIL, FINDING_UNKNOWN, FINDING_SKIP };
/* What kind of question a check asks; it decides the exit code. */
enum finding_class {
    CLASS_INVARIANT, /* always judged: fail is 1 */
    CLASS_EXPECT,    /* asked for by the scenario: fail is 1 unless a fault did not happen */
    CLASS_FAULTS,    /* did the faults take effect: anything but pass is 2 */
    CLASS_HARNESS,   /* is the harness healthy: fail is 3, unknown is 2 */
    CLASS_CLEANUP,   /* has the harness left something behind: fail is 5 */
};

/* Everything a check may look at. For verdict_judge the first two are enough: it gives each check a
 * history, rounds and incidents made of the sources which that check has declared. */
struct trial {
    const struct scenario *scenario;
    const struct history *history;
    const struct rounds *rounds;
    const struct incidents *incidents;
    const struct lags *lags; /* of the harness: harness/judge/checks/lags.h */
    const struct lost *lost; /* of the whole history: harness/judge/checks/lost.h */
    struct arena *arena;     /* for what a check needs until it has judged */
    void (*judged)(void *arg, size_t done, size_t of); /* told of each check; NULL: nobody is */
    void *judged_arg;
};

struct finding {
    const char *check; /* name */
    enum finding_class class;
    enum finding_status status;
    char broken[200]; /* which promise, in one sentence; for fail and unknown */
    char expected[200];
    char seen[300];
    char where[200];     /* where to look: a record, a log file, a directory */
    int64_t evidence[8]; /* seq of the records that prove it, 0-ended */
    bool lost;           /* it was answered in the last recorded run of the scenario: coverage.h */
    bool leads;          /* of its class it is shown first: what the others found follows from it */
    bool loud; /* what was seen is to be told below the headline, though it is no failure */
};

struct verdict {
    struct finding v[64];
    size_t n;
    int exit_code;          /* 0 1 2 3 5 130 */
    char lost_since[300];   /* the directory of that run; "": nothing was lost */
    struct goodput goodput; /* measured, whether anybody asked for it or not */
};

/* Fills one finding; the status decides which texts are kept. Every check function ends in exactly
 * one of these. Only finding_pass returns true, so what has found something returns it. */
bool finding_pass(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool finding_skip(struct finding *f, const char *why, ...) __attribute__((format(printf, 2, 3)));
bool finding_fail(struct finding *f, const char *broken, const char *expected, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool finding_unknown(struct finding *f, const char *broken, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* What should be, for finding_fail, in words of its own. */
const char *finding_expected(struct finding *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds evidence, whatever is found: the seq of records, of which 0 is none. */
#define finding_prove(f, ...)                                                                      \
    finding_prove_all(f, (const int64_t[]){__VA_ARGS__},                                           \
                      sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
void finding_prove_all(struct finding *f, const int64_t *seq, size_t n);

const char *finding_status_name(enum finding_status s); /* "pass" ... */
/* The finding to show first: what decided the exit code, NULL when everything is well. Of a run
 * that was interrupted only a broken invariant is worth showing. */
const struct finding *verdict_first(const struct verdict *v);

/* What that check found, or NULL. */
const struct finding *verdict_find(const struct verdict *v, const char *check);

/* Runs every check of the table over the trial. Where something of the run was lost (lost.h) what
 * fails is unknown, unless it failed before that, or it compares what workers were given (`told`)
 * and was heard while nothing was lost. */
void verdict_judge(struct verdict *v, const struct trial *t);
/* Takes one more finding, of a check that is not in the table, into a verdict that has been judged;
 * f->check must outlive it. */
void verdict_add(struct verdict *v, const struct history *h, struct finding f);
/* What stands in verdict.json. It is never read back: the verdict of a recorded run is judged
 * again.
 */
void verdict_text(const struct verdict *v, struct buf *out);
void verdict_json(const struct verdict *v, struct json_writer *w,
                  const char *key); /* the same, as one object of a larger one */
/* One scenario: 130 interrupted; 3 harness; else 1 an invariant failed, or an expect and all faults
 * took effect, as far as is known; else 2 when a fault did not take effect or a question stayed
 * open, also about the harness; else 0; 5 replaces 0 and 2. */
int verdict_exit_code(const struct verdict *v, const struct history *h);
