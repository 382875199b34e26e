#include "faults/mechanism/wire_rules.h"

#include <assert.h>
#include <string.h>

enum { SSH_PORT = 22 };

void wire_rules_bootstrap(struct wire_rules *r, uint16_t tcp_port) {
    r->bootstrap[tcp_port / 8] |= (unsigned char)(1u << tcp_port % 8);
}

bool wire_rules_is_bootstrap(const struct wire_rules *r, uint16_t tcp_port) {
    return r->bootstrap[tcp_port / 8] & 1u << tcp_port % 8;
}

void wire_rules_silence(struct wire_rules *r, int port, bool on) {
    assert(port >= 0 && port < WIRE_PORTS_MAX);
    r->silent[port] = on;
}

void wire_rules_cut(struct wire_rules *r, int from, int to, unsigned planes, bool on) {
    assert(from >= 0 && from < WIRE_PORTS_MAX && to >= 0 && to < WIRE_PORTS_MAX);
    if (on)
        r->cut[from][to] |= (unsigned char)planes;
    else
        r->cut[from][to] &= (unsigned char)~planes;
}

void wire_rules_clear(struct wire_rules *r) {
    memset(r->cut, 0, sizeof(r->cut));
}

void wire_rules_partition(struct wire_rules *r, const int group[WIRE_PORTS_MAX],
                          const struct impairment *how) {
    for (int from = 0; from < WIRE_PORTS_MAX; from++)
        for (int to = 0; to < WIRE_PORTS_MAX; to++)
            if (impairment_is_between(how, group[from], group[to]))
                wire_rules_cut(r, from, to, (unsigned)how->planes & PLANE_ALL, true);
}

unsigned wire_rules_plane(const struct wire_rules *r, const struct frame *f) {
    if (f->kind == FRAME_IP)
        return PLANE_DATA;
    if (f->kind != FRAME_TCP && f->kind != FRAME_UDP)
        return 0;
    uint16_t a = f->source_port, b = f->destination_port;
    if (r->store_port && (a == r->store_port || b == r->store_port))
        return PLANE_STORE;
    if (r->store_peer_port && (a == r->store_peer_port || b == r->store_peer_port))
        return PLANE_STORE;
    if (wire_rules_is_bootstrap(r, a) || wire_rules_is_bootstrap(r, b))
        return PLANE_BOOTSTRAP;
    return a == SSH_PORT || b == SSH_PORT ? PLANE_SSH : PLANE_DATA;
}

bool wire_rules_pass(const struct wire_rules *r, int from, int to, unsigned plane) {
    if (r->silent[from] || r->silent[to])
        return false;
    unsigned closed = r->cut[from][to];
    return plane ? !(closed & plane) : closed != PLANE_ALL;
}
