/* impairment: what a fault on the wire does to frames between groups of nodes. Plain numbers, which
 * travel from the harness to the wire by their names; and the names of what is counted.
 *
 * The words are tc-netem's where it has them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Into what traffic is sorted by its ports. */
enum plane {
    PLANE_STORE = 1,     /* the store's port */
    PLANE_BOOTSTRAP = 2, /* MASTER_PORT of any round */
    PLANE_SSH = 4,       /* 22 */
    PLANE_DATA = 8,      /* everything else */
    PLANE_ALL = 15,
};

/* Their names, in the order of their bits. */
enum { PLANES_N = 4 };
extern const char *const plane_names[PLANES_N];

/* X(name): all are 0 where the impairment does nothing of the kind.
 *
 *   planes           PLANE_*
 *   seed             of all that is drawn
 *   direction        enum impairment_direction
 *   from_ns          it does nothing before it has been in force for so long, and nothing after
 *                    until_ns (0: it has no end)
 *   ring             the groups stand in a ring of so many, and those that are at most ring_reach
 *                    apart are left alone
 *   delay_ns         each frame is late by this, give or take up to jitter_ns, in its order;
 *                    jitter_kind: enum jitter_kind
 *   loss_ppm         so many frames of a million are lost; a link is bad for burst of them in a row
 *                    on average, and loses then bad_ppm of them (0: all), else good_ppm (Gilbert and
 *                    Elliott's model); burst 0 or 1: each for itself
 *   duplicate_ppm    so many arrive twice
 *   reorder_ppm      so many arrive reorder_ns later, behind those that were sent after them
 *   corrupt_ppm      so many arrive with one bit of their payload changed; corrupt_mends: and with a
 *                    checksum that is right for it
 *   rate_bit_s       all frames of a direction share a link of so many bits a second, before which
 *                    queue_bytes at most wait; more are dropped. Instead of that, where they are not 0:
 *                    rate_out_bit_s from the first group, rate_in_bit_s to it
 *   mtu_bytes        longer IP packets are dropped, and nobody is told
 *   resets           whatever TCP segment comes, both its ends get a RST instead
 *   refuses          who wants to connect gets a RST
 *   blocks           who wants to connect gets no answer; what is connected goes on
 *   tcp_port         the last three: of connections to this port only, 0: to all
 *   hushes           a RST that answers nothing is dropped; 2: and one that answers a segment, but
 *                    not one that answers who wants to connect
 *   flap_period_ns   of each such time nothing passes in the first flap_down_ns
 *   answers          so many answers of the store to transactions that it has applied are lost, each
 *                    with its connection; answers_to_all: to whatever it was asked
 *   names            enum names_fate: what the resolver answers the first group that asks for names
 *                    of the others; names_address: that NAMES_WRONG gives, as a number; names_all:
 *                    also for names that are no node's */
#define IMPAIRMENT_NUMBERS(X)                                                                      \
    X(planes)                                                                                      \
    X(seed)                                                                                        \
    X(direction)                                                                                   \
    X(from_ns)                                                                                     \
    X(until_ns)                                                                                    \
    X(ring)                                                                                        \
    X(ring_reach)                                                                                  \
    X(delay_ns)                                                                                    \
    X(jitter_ns)                                                                                   \
    X(jitter_kind)                                                                                 \
    X(loss_ppm)                                                                                    \
    X(burst)                                                                                       \
    X(good_ppm)                                                                                    \
    X(bad_ppm)                                                                                     \
    X(duplicate_ppm)                                                                               \
    X(reorder_ppm)                                                                                 \
    X(reorder_ns)                                                                                  \
    X(corrupt_ppm)                                                                                 \
    X(corrupt_mends)                                                                               \
    X(rate_bit_s)                                                                                  \
    X(rate_in_bit_s)                                                                               \
    X(rate_out_bit_s)                                                                              \
    X(queue_bytes)                                                                                 \
    X(mtu_bytes)                                                                                   \
    X(resets)                                                                                      \
    X(refuses)                                                                                     \
    X(blocks)                                                                                      \
    X(tcp_port)                                                                                    \
    X(hushes)                                                                                      \
    X(flap_period_ns)                                                                              \
    X(flap_down_ns)                                                                                \
    X(answers)                                                                                     \
    X(answers_to_all)                                                                              \
    X(names)                                                                                       \
    X(names_address)                                                                               \
    X(names_all)

/* Between two groups: both ways, only from the one named first, or only to it. */
enum impairment_direction { DIRECTION_BOTH, DIRECTION_FROM, DIRECTION_TO };

/* How far from delay_ns frames are late: evenly up to jitter_ns; as a bell whose standard deviation
 * that is; or never earlier, and later by jitter_ns on average, a few by very much (Pareto's second
 * kind, of shape 3). */
enum jitter_kind { JITTER_UNIFORM, JITTER_NORMAL, JITTER_PARETO };

/* What becomes of a question for a name. */
enum names_fate {
    NAMES_RIGHT,
    NAMES_SILENT,   /* no answer comes */
    NAMES_UNKNOWN,  /* NXDOMAIN: there is no such name */
    NAMES_SERVFAIL, /* the server cannot say */
    NAMES_REFUSED,  /* it does not want to */
    NAMES_WRONG,    /* another address */
};

struct impairment {
#define X(name) int64_t name;
    IMPAIRMENT_NUMBERS(X)
#undef X
};

static inline bool impairment_spares(const struct impairment *how, int g, int h) {
    int64_t apart = g < h ? h - g : g - h;
    apart = how->ring - apart < apart ? how->ring - apart : apart;
    return how->ring && apart <= how->ring_reach;
}

/* Whether what a port of group g sends to one of group h is meant; < 0: in no group. */
static inline bool impairment_is_between(const struct impairment *how, int g, int h) {
    bool meant =
        how->direction == DIRECTION_FROM ? g == 0 : how->direction != DIRECTION_TO || h == 0;
    return meant && g >= 0 && h >= 0 && g != h && !impairment_spares(how, g, h);
}

/* What is done to frames, and counted from each sender to each receiver. X(NAME, key of the
 * counter in a history, what the wire did) */
#define IMPAIRMENT_DEEDS(X)                                                                        \
    X(DELAYED, "delayed_to", "passed frames on late")                                              \
    X(LOST, "lost_to", "lost frames")                                                              \
    X(DUPLICATED, "duplicated_to", "passed frames on twice")                                       \
    X(REORDERED, "reordered_to", "passed frames on behind later ones")                             \
    X(CORRUPTED, "corrupted_to", "changed a bit in frames")                                        \
    X(THROTTLED, "throttled_to", "held frames back or dropped them, as the link was full")         \
    X(OVERSIZE, "oversize_to", "dropped frames as too long")                                       \
    X(RESET, "reset_to", "reset connections")                                                      \
    X(REFUSED, "refused_to", "refused connections")                                                \
    X(BLOCKED, "blocked_to", "dropped requests to connect")                                        \
    X(HUSHED, "hushed_to", "swallowed resets")                                                     \
    X(ANSWER_LOST, "answers_lost_to", "dropped answers, and reset their connections")              \
    X(NAME_FAILED, "names_failed_to", "did not say the address of a name")                         \
    X(NAME_WRONG, "names_wrong_to", "said a wrong address of a name")

enum impairment_deed {
#define X(name, key, text) DEED_##name,
    IMPAIRMENT_DEEDS(X)
#undef X
        DEEDS_N
};
extern const char *const impairment_deed_keys[DEEDS_N];

/* What it does, as a set of 1 << DEED_*, and IMPAIRMENT_CUTS. Who connects meets one fate and a name has
 * one answer: refused, or unknown, stands for all of them. */
enum { IMPAIRMENT_CUTS = 1 << DEEDS_N };
unsigned impairment_does(const struct impairment *how);
/* So long after it came in force nothing passes, as it flaps. */
bool impairment_is_down(const struct impairment *how, int64_t in_force_ns);
/* Whatever `inner` is about, `outer` is about as well; group and its own are of n ports. */
struct impairment_reach {
    const struct impairment *how;
    const int *group;
};
bool impairment_covers(struct impairment_reach outer, struct impairment_reach inner, int n);

/* The number of this place, and its name; i < IMPAIRMENT_NUMBERS_N. */
enum {
#define X(name) IMPAIRMENT_NUMBER_##name,
    IMPAIRMENT_NUMBERS(X)
#undef X
        IMPAIRMENT_NUMBERS_N
};
extern const char *const impairment_names[IMPAIRMENT_NUMBERS_N];
static inline int64_t *impairment_number(struct impairment *how, size_t i) {
    return (int64_t *)how + i;
}
