#include "harness/host/part_rules.h"

#include "base/mem.h"

#include <stdlib.h>

struct rules_in_work {
    const struct part_order *order;
    struct owned_rule *v;
    size_t n;
    uint16_t *ports; /* of all planes but that of data */
    size_t ports_n;
};

static bool is_in(enum owned_chain c) {
    return c == OWNED_IN || c == OWNED_IN_BEHIND;
}

static bool is_behind(enum owned_chain c) {
    return c == OWNED_IN_BEHIND || c == OWNED_OUT_BEHIND;
}

static uint32_t tag_of(size_t peer, enum owned_chain c) {
    return (uint32_t)(peer + 1) << 2 | (uint32_t)!is_in(c) << 1 | is_behind(c);
}

size_t part_rules_peer(uint32_t tag) {
    return (size_t)(tag >> 2) - 1;
}

bool part_rules_is_said(uint32_t tag) {
    return tag >> 1 & 1;
}

bool part_rules_is_passed(uint32_t tag) {
    return tag & 1;
}

static void add(struct rules_in_work *m, const struct owned_rule *like, uint16_t theirs,
                uint16_t ours) {
    struct owned_rule r = *like;
    r.theirs = theirs;
    r.ours = ours;
    mem_push(m->v, m->n) = r;
}

static void add_both(struct rules_in_work *m, const struct owned_rule *like, uint16_t port) {
    add(m, like, port, 0);
    add(m, like, 0, port);
}

/* Without the plane of data only packets of some ports are meant; with it all but those of some. */
static void add_address(struct rules_in_work *m, enum owned_chain c, size_t peer,
                        const char *address) {
    const struct part_order *o = m->order;
    const struct owned_rule pass = {.chain = c, .address = address, .what = OWNED_PASS};
    const struct owned_rule cut = {.chain = c,
                                   .address = address,
                                   .what = is_behind(c) ? OWNED_COUNT : OWNED_DROP,
                                   .tag = tag_of(peer, c)};
    bool data = o->planes & PLANE_DATA;
    bool meant = is_in(c) ? o->peers[peer].deaf : o->peers[peer].mute;
    for (size_t i = 0; i < m->ports_n && meant; i++) {
        bool closed = part_order_plane(o, m->ports[i], 0) & o->planes;
        if (closed != data)
            add_both(m, closed ? &cut : &pass, m->ports[i]);
    }
    if (!meant || data)
        add(m, meant ? &cut : &pass, 0, 0);
}

static void add_peers(struct rules_in_work *m, enum owned_chain c, bool everybody) {
    const struct part_order *o = m->order;
    for (size_t i = 0; i < o->peers_n; i++) {
        for (size_t j = 0; j < o->peers[i].addresses.n && !everybody; j++)
            add_address(m, c, i, o->peers[i].addresses.v[j]);
        if (o->peers[i].all && everybody)
            add_address(m, c, i, NULL);
    }
}

static void add_keep(struct rules_in_work *m, enum owned_chain c) {
    for (size_t i = 0; i < m->order->keep_n; i++) {
        const struct part_end *e = &m->order->keep[i];
        const struct owned_rule pass = {.chain = c, .address = e->address, .what = OWNED_PASS};
        add(m, &pass, e->theirs, e->ours);
    }
}

struct owned_rule *part_rules_make(const struct part_order *o, size_t *ret_n) {
    struct rules_in_work m = {.order = o};
    for (unsigned port = 1; port <= UINT16_MAX; port++)
        if (part_order_plane(o, (uint16_t)port, 0) != PLANE_DATA)
            mem_push(m.ports, m.ports_n) = (uint16_t)port;
    for (int c = 0; c < OWNED_CHAINS_N; c++) {
        add_keep(&m, (enum owned_chain)c);
        add_peers(&m, (enum owned_chain)c, false);
        add_peers(&m, (enum owned_chain)c, true);
    }
    free(m.ports);
    *ret_n = m.n;
    return m.v;
}
