/* probe: one question that preflight asks of the hosts that jobs will run on, before anything is
 * tried. One file per probe in probes/, one const struct, one line in probes.h. It is asked in
 * processes of its own, one on each host (station.h), which hang alone. */
#pragma once

#include "harness/preflight/station.h"

enum probe_status { PROBE_PASS, PROBE_FAIL, PROBE_SKIP };
extern const char *const probe_status_names[]; /* "pass" ... */

struct probe;

/* What is asked of whom. */
struct probing {
    const struct probe *of;
    struct station *v; /* of each host, in order */
    size_t n;
    const struct json *given; /* what operators say: shared, space_mb, ports, floor_mb_s ... */
    int64_t until_ns;         /* when all of it must be over */
    struct arena *arena;
    struct json_writer *figures; /* an object, which the probe fills */
    struct probe_answer *ret;
};

struct probe_answer {
    enum probe_status status;
    char seen[2000]; /* one sentence or a few */
    int64_t took_ns; /* -1: it was not asked here */
};

struct probe {
    const char *name;
    const char *text;  /* what it asks, for people */
    int64_t within_ns; /* all of it */
    bool for_many;     /* there is nothing to ask of one host alone */
    /* On a host: members of an answer. "skip" says why there is nothing to look at. */
    void (*look)(const struct json *given, struct json_writer *w);
    /* Here: asks the stations, and ends in exactly one of the three below. */
    void (*ask)(struct probing *p);
};

extern const struct probe *const probes[]; /* alphabetical, NULL-ended */
const struct probe *probe_find(const char *name);

/* The end of a probe. Those after the first of a failure are added to its sentence. */
void probe_pass(struct probing *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void probe_fail(struct probing *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void probe_skip(struct probing *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool probe_has_failed(const struct probing *p);

/* Asks all hosts the same and hears them; ret has n answers, NULL for who is silent, which has been told as
 * a failure then. text: a JSON object. */
const struct json **probe_ask_all(struct probing *p, const char *text);
/* The same of one. */
const struct json *probe_hear(struct probing *p, size_t i);
/* What the probe's look says on each host; of which each is put into the figures, by the host's name. */
const struct json **probe_look_all(struct probing *p);

/* Of a text of each host (NULL: none): fails, and names who differs from what most have. */
void probe_equal(struct probing *p, const char *what, const char *const *texts);
