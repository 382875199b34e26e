/* probe: one question asked of this host, answered by trying, never by guessing. One const struct
 * per question, one line in probes.h. A probe runs in a child of its own (probe_try), so it may
 * move into namespaces, load libraries, install filters and die. */
#pragma once

#include "faults/fault.h"

#include <stdbool.h>

enum probe_status {
    PROBE_WORKS,
    PROBE_LACKS,  /* fix says what would change that */
    PROBE_UNASKED /* it has to be asked for, or nothing is lost either way */
};

struct probe_given {
    const char *etcd; /* HOST:PORT of a store that jobs will use; NULL: none named */
};

struct probe_result {
    const struct probe_given *given;
    enum probe_status status;
    char seen[240];
    char fix[360];
};

/* Nodes need the probes of one of the two parts; the rest is for all. */
enum probe_part { PROBE_FOR_ALL, PROBE_FOR_NAMESPACES, PROBE_FOR_PROCESSES, PROBE_PARTS };

struct probe {
    const char *name;
    const char *gives; /* what cannot be done without it */
    unsigned need;     /* FAULT_NEEDS_*: faults with that need cannot be injected without it */
    enum probe_part part;
    bool demo; /* no scenario runs without it; of a part: not with nodes of that kind */
    bool (*look)(struct probe_result *ret); /* ends in an answer, and returns it */
};

/* Within ten seconds; a probe that dies or hangs lacks what it looked for. */
void probe_try(const struct probe *p, const struct probe_given *given, struct probe_result *ret);

/* The three answers of a probe; the last texts given count. Only the first returns true. */
bool probe_works(struct probe_result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool probe_lacks(struct probe_result *r, const char *fix, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool probe_unasked(struct probe_result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A switch of the kernel by its path below /proc/sys; -1: there is none. */
long probe_sysctl(const char *name);

/* The one command or flag that would most likely give this host namespaces. */
const char *probe_flag_for_namespaces(void);
