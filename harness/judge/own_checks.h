/* own_checks: the checks of a scenario that are programs of the user's own.
 *
 * Each gets history.jsonl on its standard input and prints one JSON object. Whatever it does
 * otherwise (crash, hang, say something else) is unknown, and unknown is never a pass. What it is
 * started with is what the scenario says, in the caller's directory and environment. */
#pragma once

#include "base/sys/folder.h"
#include "harness/judge/verdict.h"

/* Adds a finding for each. dir: the run directory, in which checks/NAME.log gets what a program
 * says on its standard error; NULL: nobody keeps that. file: the open history; each reads it from
 * its beginning. run false: they are not started, and each is unknown. */
void own_checks_judge(struct verdict *v, const struct scenario *s, const struct history *h,
                      int file, const struct folder *dir, bool run);

/* Takes what a program printed: 0, or -EBADMSG with what is wrong with it; f is then untouched. */
int own_check_read(struct finding *f, const struct history *h, const char *text, size_t len,
                   struct err *err);
