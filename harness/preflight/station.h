/* station: one host, as preflight asks it. A process of our program there (outpost.h) reads questions
 * from its standard input, a JSON object a line, and answers each with one. How it is reached is the
 * caller's: by words in front of the program, as `ssh HOST` or `podman exec -i NAME`; so whatever
 * starts a program with its standard streams is a way to a host.
 *
 * A host that does not answer in time is silent from then on: it is asked no more, and why is kept.
 * Nobody waits for one that hangs in its kernel. */
#pragma once

#include "base/json.h"
#include "base/sys/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct station {
    const char *host;    /* its name for people */
    const char *address; /* by which the others reach it */
    struct process process;
    int to, from, said; /* its standard streams */
    struct buf heard;
    char why[300]; /* it is silent; "": it is not */
    int times;     /* it was started */
};

#define STATION_NONE ((struct station){.process = PROCESS_NONE, .to = -1, .from = -1, .said = -1})

/* Starts the program on a host. words: NULL-ended; NULL: our own, on this host. Never fails: a host that
 * cannot be asked is silent. host and address must outlive it. */
void station_open(struct station *ret, const char *host, const char *address,
                  const char *const *words);
void station_close(struct station *s);

/* Asks; the answer is heard later. text: a JSON object. */
void station_ask(struct station *s, const char *text);
/* The input of the program there ends, with which the program does. What all are told first, all do at the
 * same time. */
void station_end(struct station *s);
/* One that has become silent is started anew, twice at most; true: it was. */
bool station_open_again(struct station *s, const char *const *words);
/* The answer, within until_ns of the monotonic clock; NULL: it is silent, or has been. */
const struct json *station_hear(struct station *s, struct arena *a, int64_t until_ns);
