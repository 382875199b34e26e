/* impairer: what becomes of one frame, by all impairments that are in force. Pure: the time is told
 * and draws come from each impairment's seed, so that the same frames meet the same fate.
 *
 * An impairment that stays while others come and go keeps what it knows: its draws, how full its
 * link is, when it began. */
#pragma once

#include "faults/mechanism/frame.h"
#include "faults/mechanism/impairment.h"

#include <stdbool.h>

enum { IMPAIRER_PORTS_MAX = 64, IMPAIRER_MAX = 32 };

struct impairer;

/* Who is in which group: ports of different groups are parted; < 0: in none, untouched. */
struct impaired {
    int group[IMPAIRER_PORTS_MAX];
    struct impairment how;
    int64_t id; /* the same from list to list, as long as it stays */
};

struct passage { /* a frame on its way */
    int from, to;
    unsigned plane; /* PLANE_*; 0: none, which is touched only with all planes */
    const struct frame *frame;
    int64_t now_ns;
};

struct fate {
    bool dropped, cut; /* cut: as by a partition */
    unsigned deeds;    /* 1 << DEED_* */
    int64_t late_ns;   /* in its order, or, if reordered, behind those sent later */
    uint64_t bit;      /* DEED_CORRUPTED: modulo the bits of its payload */
    bool checksum_right;
};

struct impairer *impairer_new(void);
struct impairer *impairer_free(struct impairer *m); /* NULL is allowed; returns NULL */
/* These are in force from now on, and no others. False: there are more than IMPAIRER_MAX, and
 * nothing has changed. */
bool impairer_set(struct impairer *m, const struct impaired *list, size_t n, int64_t now_ns);

/* Whether anything is done to frames of this direction, and whether it is done to packets as they
 * are on a cable: then what the sender left to the card must be done before. */
bool impairer_touches(const struct impairer *m, int from, int to);
bool impairer_wants_packets(const struct impairer *m, int from, int to);
/* What the resolver does to a question of a port for the name of another one (-1: for a name that
 * is no port's). lies: the question is one that can be answered wrongly, with *ret_address. The
 * impairment that came first counts. */
enum names_fate impairer_names(const struct impairer *m, int from, int named, bool lies,
                               uint32_t *ret_address);
/* Draws. */
struct fate impairer_decide(struct impairer *m, const struct passage *p);
