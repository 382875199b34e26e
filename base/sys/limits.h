/* limits: what this host lets a user have. A program that meets one of them dies of something else:
 * so it is looked for before, and told by name. */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Gives the stack so many bytes, and all that is started from here on. 0, or -ENOMEM with a
 * sentence where the hard limit is lower. */
int limits_want_stack(size_t bytes, struct err *err);

/* The address space or the data that a process may have, whichever is less, in bytes; -1: any. */
int64_t limits_memory(void);
/* The memory of this machine, in bytes. */
int64_t limits_host_memory(void);
/* How many descriptors a process may have open; -1: any. */
int64_t limits_files(void);
/* How many processes and threads this user may have; -1: any, as root does outside of user
 * namespaces. */
int64_t limits_processes(void);
/* How many it has, as far as /proc shows them. */
int64_t limits_processes_used(void);
/* How many processes the kernel has killed for want of memory since the host was booted; -1: it
 * does not say. */
int64_t limits_killed_for_memory(void);
/* How often the kernel had no room for a neighbour's hardware address since the host was booted, in
 * any network namespace: they share one table. -1: it does not say, as in all namespaces but the
 * first. */
int64_t limits_neighbours_refused(void);
/* The same of that file of the kernel's, /proc/net/stat/arp_cache: a line of names, and one of
 * hexadecimal numbers for each processor. */
int64_t limits_table_fulls(FILE *f);
/* How many neighbours may be known at once; -1: it does not say. */
int64_t limits_neighbours(void);
