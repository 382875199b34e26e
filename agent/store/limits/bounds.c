#include "agent/store/limits/bounds.h"

#include "base/sys/line.h"

#include <inttypes.h>

static const int64_t AGAIN_NS = 60000000000;

static const struct {
    const char *name, *text;
} table[BOUNDS] = {
    [BOUND_CONNECTIONS] = {"connections", "ended a connection of nobody's agent to let others in"},
    [BOUND_TIME] = {"time", "ended a connection whose request did not come whole in time"},
    [BOUND_HELD] = {"held", "ended the connection that held most of the memory for requests"},
    [BOUND_SLOW] = {"slow", "ended an answer that was read too slowly"},
    [BOUND_KEPT] = {"kept", "refused a write, as there is no room for what it adds to"},
    [BOUND_WATCHES] = {"watches", "refused a watch of nobody's agent: there are too many"},
    [BOUND_ANSWERS] = {"answers", "refused a request for much, as too much is being answered"},
    [BOUND_PAGES] = {"pages", "refused a request that a web page made, or for another host"},
};

const char *bounds_name(enum store_bound which) {
    return table[which].name;
}

static void tell(const struct bounds *b, enum store_bound which, const char *who) {
    uint64_t since = b->hits[which] - b->told[which];
    if (since > 1)
        line_say(LINE_WARNING, "store", "store: port %u %s%s%s, and %" PRIu64 " times before that",
                 b->port, table[which].text, who ? ": " : "", who ? who : "", since - 1);
    else
        line_say(LINE_WARNING, "store", "store: port %u %s%s%s", b->port, table[which].text,
                 who ? ": " : "", who ? who : "");
}

void bounds_hit(struct bounds *b, enum store_bound which, const char *who, int64_t now_ns) {
    b->hits[which]++;
    if (b->told[which] && now_ns - b->told_ns[which] < AGAIN_NS)
        return;
    tell(b, which, who);
    b->told[which] = b->hits[which];
    b->told_ns[which] = now_ns;
}
