/* wide: loops over elements in the widest registers the CPU has, chosen when the program starts.
 *
 * Elements do not meet one another in such a loop, and contraction is off, so not one bit of the
 * result depends on it. Include it below all other headers: it turns up the optimiser for what
 * follows. */
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif

/* The choice is made before a sanitizer is ready for it; clang has none for functions that are not
 * to be inlined. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                \
    !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif
