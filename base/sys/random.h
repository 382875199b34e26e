/* random: identities that must differ between machines and runs (session ids, ports to try).
 * Everything that must be repeatable draws from base/rand instead, seeded from here once. */
#pragma once

#include <stdint.h>

/* From the kernel; never fails (a kernel without getrandom is older than what we run on). */
uint64_t random_u64(void);
