/* opened_case: a planted case line by line, read once, so that a check can be asked of it with some lines being others. */
#pragma once

#include "harness/history/history.h"
#include "harness/judge/checks/check.h"
#include "tests/harness/judge/checks/cases.h"

#include "base/rand.h"

struct opened_case {
    const struct planted_case *of;
    const struct check *check;
    struct scenario scenario;
    struct arena arena;
    struct history whole;
    char **lines;       /* one for each record of whole */
    struct finding is;  /* what the check says of it as it is */
    struct buf history; /* what it was made of */
};

void opened_case_open(struct opened_case *c, const struct planted_case *of);
void opened_case_close(struct opened_case *c);

/* A generator that is seeded by the name of the case, so that one more case leaves all others as they were. */
struct rand opened_case_rand(const struct planted_case *c, uint64_t seed);

/* What the check says of this history, under that scenario. */
void opened_case_ask(const struct opened_case *c, const struct scenario *s, const struct history *h,
                     struct finding *ret);

/* The records of one line or two, whose numbers are given to them where they come to stand; false: they would not have
 * been read. */
bool opened_case_parse(struct history *ret, const char *lines);
/* All records, numbered anew, with those of instead[i] in place of the one on line i; NULL: it stays. */
void opened_case_put_together(struct history *ret, struct arena *a, const struct opened_case *c,
                              const struct history *const *instead);
/* What the check says with these lines in place of the one; NULL: without it. False: they would not have been read. */
bool opened_case_ask_instead(const struct opened_case *c, const struct scenario *s, size_t at,
                             const char *instead, struct finding *ret);

/* The line is not in the history that the case is made of. Its number may be another. */
bool opened_case_is_planted(const struct opened_case *c, size_t at);
/* It proves what is found. */
bool opened_case_proves(const struct opened_case *c, size_t at);
