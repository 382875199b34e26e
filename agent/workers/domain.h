/* domain: what processes a job of --sandbox may reach, by Landlock.
 *
 * Whoever is in a domain can trace, read and write the memory of, take descriptors from, signal and
 * call by abstract socket only what is in it as well. The guard enters one of its own, and every
 * worker is born into it: so the workers of one group share memory among themselves as ever, and no
 * other process of their user is theirs, nor the agent. */
#pragma once

#include "base/err.h"

enum domain_reach {
    DOMAIN_NONE,   /* the kernel has no Landlock that a job could live in (Linux < 5.19) */
    DOMAIN_MEMORY, /* memory and descriptors only, no signals and sockets (Linux < 6.12) */
    DOMAIN_WHOLE,
};

/* How far a domain reaches on this kernel. */
enum domain_reach domain_reach(void);

/* Enters a new one, with no new privileges set before; 0 also where there is none. */
int domain_enter(struct err *err);
