/* preflight: the probes asked of a set of hosts, before jobs are tried on them. */
#pragma once

#include "base/texts.h"
#include "harness/preflight/probe.h"

struct preflight_host {
    const char *name;
    const char *address; /* by which the others reach it */
    const char *const
        *words; /* that start an outpost there, NULL-ended; NULL: by preflight's `via` */
};

struct preflight {
    const struct preflight_host *hosts; /* none: this one alone */
    size_t hosts_n;
    const char *via;   /* words that start our program there, "ssh {host} rankquake"; NULL: here */
    const char *given; /* a JSON object: probe.h */
    const char *const *only; /* names of probes, NULL-ended; empty: all */
    const char *const *without;
    const char *const *results; /* files of results.h on this host, NULL-ended; NULL: none */
    /* Told of each when it has ended; NULL: nobody is. */
    void (*told)(void *arg, const char *name, const struct probe_answer *a);
    void *arg;
};

/* Asks, and writes an array: of each probe name, status, seen, and figures by host. Returns whether none
 * has failed. */
bool preflight_run(const struct preflight *f, struct json_writer *w);

/* Whether all of these files can be read and are known; else err names the first. */
bool preflight_check_results(const char *const *files, struct err *err);

/* "n0,n1=10.0.0.2"; in the arena. Returns how many, or -EINVAL with the form. */
int preflight_hosts(const char *text, struct arena *a, struct preflight_host **ret,
                    struct err *err);
