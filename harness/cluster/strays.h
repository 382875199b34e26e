/* strays: processes of a run's nodes that live although their node's helper does not, known by
 * their environment: the launcher of a node is given a TMPDIR in the run's scratch directory, and
 * whatever it starts inherits it. Only where nodes are processes; a namespace keeps its own. */
#pragma once

#include "agent/sys/process.h"

#include <stddef.h>

/* Those of this scratch directory (absolute), each held by its pidfd. */
size_t strays_of(const char *scratch, struct process **ret);
void strays_free(struct process *all, size_t n); /* lets go of them; they live on */
