/* probe_wishes: what an operator asks of hosts, as a command line says it: what probes compare with. */
#pragma once

#include "harness/verbs.h"

enum { PROBE_PORTS_MAX = 32 };

struct probe_wishes {
    const char *shared; /* the directory that is to be shared; NULL: none is said to be */
    int64_t space_mb, floor_mb_s, grace_s;
    int64_t ports[PROBE_PORTS_MAX];
    size_t ports_n;
    const char **scripts; /* for sbatch; NULL-ended, in the arena of who reads */
};

/* Reads what PROBE_WISHES_OPTIONS are told. Returns 0, or the exit code after saying what is wrong. */
int probe_wishes_read(const struct arguments *a, struct arena *arena, struct probe_wishes *ret);
/* The JSON object that probes are given (probe.h), in the arena. */
const char *probe_wishes_text(const struct probe_wishes *w, struct arena *a);

/* The rows of a verb's options. */
#define PROBE_WISHES_OPTIONS                                                                       \
    {"--ports", "PORTS", "29400,29500: those of the job, which must be free and reached"},         \
        {"--space", "MB", "how much must be free (default: 1024)"},                                \
        {"--script", "FILE", "a script for sbatch, which is read; may be repeated"},               \
        {"--floor", "MB_S", "less between two hosts is a failure"}, {                              \
        "--grace", "SECONDS",                                                                      \
            "how long a job may take to save when it is told to leave (default: 30)"               \
    }
