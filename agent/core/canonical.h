/* canonical: what of a state matters, so that two states that will behave alike look alike.
 *
 * Numbers that are only ever compared - revisions, ids of requests - matter by their order alone;
 * times matter by how far they lie from now, and not beyond what they are compared with. Those are
 * written down as numbers, for the caller to rank together with the numbers of other states (a
 * revision in an agent is one of the store's). All else is hashed byte by byte: a field nobody has
 * thought of here makes states differ, and never makes two different ones look alike. */
#pragma once

#include "agent/core/rendezvous.h"

/* Classes of numbers; those of one class are compared with each other. Revisions of the store are
 * class 0, the ones of beats a class of their own per session: they are compared for equality. */
enum { CANONICAL_REVISION = 0 };
uint64_t canonical_beats_of(const char *uid);

struct canonical_number {
    bool is_time;
    uint64_t class;  /* not of a time */
    int64_t value;   /* of a time: CLOCK_MONOTONIC of the agent */
    int64_t past_ns; /* a time that has passed matters as long as this */
};

struct canonical {
    uint64_t hash;
    struct canonical_number *numbers; /* freed by the caller */
    size_t n, cap;
};

void canonical_fini(struct canonical *c);
void canonical_clear(struct canonical *c);

uint64_t canonical_mix(uint64_t hash, uint64_t word);
void canonical_bytes(struct canonical *c, const void *p, size_t size);
void canonical_order(struct canonical *c, uint64_t class, int64_t value);
void canonical_time(struct canonical *c, int64_t at_ns, int64_t past_ns);
void canonical_key(struct canonical *c, const struct store_key *key);
void canonical_value(struct canonical *c, enum key_kind kind, const union value *value);

/* ids: the class of this agent's requests, watches included; the one after it is that of its beats.
 * Not looked at: what the agent is configured as, its generator (rendezvous_reseed), the job's
 * lease and what people are told. */
void rendezvous_canonical(const struct rendezvous *r, uint64_t ids, struct canonical *c);
