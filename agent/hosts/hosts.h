/* hosts: the hosts of a job that is started by one command. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stddef.h>

enum { HOSTS_MAX = 4096, HOST_SLOTS_MAX = 1024 };

struct host {
    const char *name; /* for ssh, and by which the others reach it; an address has no brackets */
    int slots;        /* workers on it; 0: not said */
};

struct hosts {
    struct host *list;
    size_t n;
};

/* "a,b:2,[fe80::1]:4". Returns 0, or -EINVAL and which word is wrong. */
int hosts_parse_list(const char *text, struct arena *a, struct hosts *ret, struct err *err);
/* One host a line: "a", "b:2" or "b slots=2" (as mpirun's), '#' begins a comment. An error names
 * path and line. text may hold anything. */
int hosts_parse_file(const char *text, size_t len, const char *path, struct arena *a,
                     struct hosts *ret, struct err *err);
