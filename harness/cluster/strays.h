/* strays: processes of a run's nodes that live although their node's helper does not, known by
 * their environment: the launcher of a node is given a TMPDIR in the run's scratch directory, and
 * whatever it starts inherits it. Only where nodes are processes; a namespace keeps its own. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Those of this scratch directory (absolute); *ret is for free(). */
size_t strays_of(const char *scratch, pid_t **ret);
void strays_end(const pid_t *pids, size_t n); /* SIGKILL */
