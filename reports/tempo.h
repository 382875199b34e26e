/* tempo: how fast work goes, and how long the rest of it will take. Pure.
 *
 * What counts is the newer half of the time since it began: work that is slow at first, or answers from
 * a cache at first, says little about the rest. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TEMPO_SAMPLES = 32 };

struct tempo {
    struct tempo_sample {
        int64_t t_ns, done;
    } v[TEMPO_SAMPLES], newest; /* newest: when done last changed */
    size_t n;
    int64_t gap_ns; /* between samples, doubled whenever there is no room for another one */
};

/* Begins anew, at that time with so much done. */
void tempo_begin(struct tempo *t, int64_t now_ns, int64_t done);
/* So much is done. Where it is less than before (a job that went back to a checkpoint) it begins anew. */
void tempo_note(struct tempo *t, int64_t now_ns, int64_t done);
/* Units a second, as of the newest of them; 0: not known yet. */
double tempo_rate(const struct tempo *t);
/* Until all of total are done; -1: not known. The unit at work counts down, and no further than its end. */
int64_t tempo_left_ns(const struct tempo *t, int64_t now_ns, int64_t total);
