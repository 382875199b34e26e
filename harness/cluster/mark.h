/* mark: what tells the processes of one run from all others of a machine.
 *
 * Whatever a run starts has its mark in the environment from its exec on: 128 random bits, and
 * which harness it belongs to. Nobody can put one into the environment of a process that is not his
 * own; so who writes numbers of processes into a file proves nothing by it, and a mark that he has
 * read somewhere helps him to no process whose own harness lives. What a job starts with an empty
 * environment has lost it, and is not known by it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { MARK_SIZE = 128 };

/* Draws a mark for a run of this process; what is started from now on carries it. The process
 * listens at an abstract socket of that name, so that mark_harness finds it. */
void mark_begin(void);
void mark_end(void); /* what is started from now on carries none */
/* "RANKQUAKE_MARK=..." of the run that goes on in this process; "": none does. */
const char *mark_own(void);

/* The first mark in a process's environment; false: it has none, or may not be looked at. */
bool mark_of(pid_t pid, char ret[MARK_SIZE]);
/* The process has this very mark, and began after the harness that the mark names. */
bool mark_is_carried(const char *mark, pid_t pid);
/* The harness that the mark names was one of this pid namespace, and is dead. False is also the
 * answer for what is no mark. */
bool mark_is_orphaned(const char *mark);
/* The process at whose mark_begin this mark was drawn, as the kernel names it to us; 0: it has
 * ended, is in another network namespace, or this is no mark. */
pid_t mark_harness(const char *mark);
