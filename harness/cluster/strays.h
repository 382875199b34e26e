/* strays: processes of a run that live although what should have ended them does not, known by the
 * run's mark. Only where nodes are processes; a namespace keeps its own. */
#pragma once

#include "base/sys/process.h"

#include <stddef.h>

/* The processes that carry the mark, but the caller's own and those that descend from it, each held
 * by its pidfd. */
size_t strays_of(const char *mark, struct process **ret);
void strays_free(struct process *all, size_t n); /* lets go of them; they live on */
