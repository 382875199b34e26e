/* host_left: what helpers that are gone have left on this host, and which are at work. Whatever a helper
 * starts has the helper's name in its environment, from its exec on: its number, when it began, and the
 * run. Nobody else can put that into the environment of a process, and a process that carries it while
 * that helper is gone has been left. Helpers at work are in the log of acts (host_record.h). Of the
 * caller's user only. */
#pragma once

#include "base/json.h"

/* Of what this process starts from now on. */
void host_left_mark(const char *run);
const char *host_left_name(void); /* as it is in the log */

/* A helper by the name that what it makes on a host begins with, SPACE.PID.START: its namespace of processes, its number
 * there, and when it was started. False also where that namespace is not ours: nobody here can tell who lives there. */
bool host_left_has_gone(const char *owner, int *ret_pid);

/* Answers {do: "look" | "clean" | "halt", run}: adds {at_work: [{run, pid, error}], left: [{run, pid, name,
 * error}], pages: [{pid, error}]} to w, pages being those of clocks (host_clock.h), by the helper that has gone.
 * clean: what was left is mended and ended, and pages are removed. halt: helpers at work, of the run that is
 * named or of any, are told to end, and waited for. error: null where that was done. */
void host_left_answer(const struct json *order, struct json_writer *w);
