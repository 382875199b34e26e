#include "faults/mechanism/wire.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/netlink.h"
#include "faults/mechanism/delay_line.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Frames taken from one port before another has its turn. */
enum { FRAMES_IN_TURN = 32 };

struct port {
    struct wire *wire;
    int number;
    bool known; /* it has an address; the card may be gone */
    unsigned char mac[6];
    struct packet_port packets; /* closed: the card is gone */
    int ifindex;                /* -1: likewise */
    struct loop_source *source;
    struct wire_port_counters counters;
};

struct wire {
    struct loop *loop;
    wire_gone_fn *gone;
    enum packet_queue queue;
    void *arg;
    int netlink;    /* -1: not opened yet */
    unsigned cards; /* made so far: a name is never used twice */
    int ports_n;    /* one more than the highest port that is known */
    struct port ports[WIRE_PORTS_MAX];
    struct wire_rules rules;
    struct delay_line *late;
    unsigned char message[PACKET_PORT_MAX];
};

static delay_line_fn on_due;

struct wire *wire_new(struct loop *l, wire_gone_fn *gone, void *arg) {
    struct wire *w = mem_new(struct wire);
    w->loop = l;
    w->gone = gone;
    w->arg = arg;
    w->netlink = -1;
    w->late = delay_line_new(l, on_due, w);
    for (int i = 0; i < WIRE_PORTS_MAX; i++)
        w->ports[i] =
            (struct port){.wire = w, .number = i, .packets = PACKET_PORT_CLOSED, .ifindex = -1};
    return w;
}

static void port_close(struct port *p) {
    p->source = loop_source_free(p->source);
    packet_port_close(&p->packets);
    p->ifindex = -1;
}

struct wire *wire_free(struct wire *w) {
    if (!w)
        return NULL;
    for (int i = 0; i < WIRE_PORTS_MAX; i++)
        port_close(&w->ports[i]);
    file_close(&w->netlink);
    delay_line_free(w->late);
    free(w);
    return NULL;
}

void wire_queue(struct wire *w, enum packet_queue queue) {
    w->queue = queue;
}

struct wire_rules *wire_rules(struct wire *w) {
    return &w->rules;
}

/* The kernel says once that a card is gone, to whoever reads or writes next. */
static bool is_gone(ssize_t code) {
    return code == -ENETDOWN || code == -ENXIO || code == -ENODEV;
}

static void port_gone(struct port *p) {
    port_close(p);
    p->wire->gone(p->wire->arg, p->number);
}

/* ---- one frame ---- */

/* A frame with the header in front, and what was found in it. */
struct passing {
    const unsigned char *message;
    size_t len;
    unsigned plane;
};

/* Whether a frame that does not pass would, were it not for a cut. */
static bool is_cut(const struct wire *w, const struct port *from, const struct port *to) {
    return to->packets.fd >= 0 && !w->rules.silent[from->number] && !w->rules.silent[to->number];
}

static bool passes(const struct wire *w, struct port *from, struct port *to, unsigned plane) {
    if (to->packets.fd >= 0 && wire_rules_pass(&w->rules, from->number, to->number, plane))
        return true;
    from->counters.dropped_out++;
    to->counters.dropped_in++;
    from->counters.cut_to[to->number] += is_cut(w, from, to);
    return false;
}

/* False: it was lost on the way. */
static bool hand_over(struct port *to, const struct passing *m) {
    int r = packet_port_write(&to->packets, m->message, m->len);
    if (r) {
        if (is_gone(r))
            port_gone(to);
        else
            to->counters.lost++;
        return false;
    }
    to->counters.frames_in++;
    to->counters.bytes_in += m->len - PACKET_PORT_HEADER;
    return true;
}

/* Whoever is cut off, or without power, by the time it arrives does not get it. */
static void on_due(void *arg, const struct delayed *d) {
    struct wire *w = arg;
    struct port *from = &w->ports[d->from], *to = &w->ports[d->to];
    const struct passing m = {.message = d->message, .len = d->len, .plane = d->plane};
    if (passes(w, from, to, d->plane) && hand_over(to, &m))
        from->counters.delayed_to[d->to]++;
}

static void forward(struct wire *w, struct port *from, struct port *to, const struct passing *m) {
    if (!passes(w, from, to, m->plane))
        return;
    int64_t late = wire_rules_delay(&w->rules, from->number, to->number, m->plane);
    if (late <= 0 && !delay_line_has(w->late, from->number, to->number)) {
        hand_over(to, m);
        return;
    }
    const struct delayed d = {from->number, to->number, m->plane, m->message, m->len};
    if (!delay_line_put(w->late, &d, clock_monotonic_ns() + late))
        to->counters.lost++;
}

static struct port *port_of(struct wire *w, const unsigned char mac[6]) {
    for (int i = 0; i < w->ports_n; i++)
        if (w->ports[i].known && memcmp(w->ports[i].mac, mac, 6) == 0)
            return &w->ports[i];
    return NULL;
}

static void decide(struct wire *w, struct port *from, struct passing *m) {
    struct frame f;
    if (m->len < PACKET_PORT_HEADER ||
        !frame_parse(m->message + PACKET_PORT_HEADER, m->len - PACKET_PORT_HEADER, &f))
        return;
    m->plane = wire_rules_plane(&w->rules, &f);
    from->counters.frames_out++;
    from->counters.bytes_out += m->len - PACKET_PORT_HEADER;
    if (f.kind == FRAME_TCP && m->plane == PLANE_DATA)
        from->counters.data_bytes_out += f.payload;
    if (!f.group) {
        struct port *to = port_of(w, f.destination);
        if (to && to != from)
            forward(w, from, to, m);
        return;
    }
    for (int i = 0; i < w->ports_n; i++)
        if (w->ports[i].known && &w->ports[i] != from)
            forward(w, from, &w->ports[i], m);
}

static void on_frames(void *arg, int fd, int what) {
    struct port *p = arg;
    for (int i = 0; i < FRAMES_IN_TURN; i++) {
        struct passing m;
        ssize_t n = packet_port_read(&p->packets, p->wire->message, &m.message);
        if (n == 0)
            return;
        if (n > 0) {
            m.len = (size_t)n;
            decide(p->wire, p, &m);
            continue;
        }
        if (is_gone(n))
            port_gone(p);
        return;
    }
}

/* ---- ports ---- */

static int make_card(struct wire *w, struct port *p, int netns, struct err *err) {
    char name[16];
    snprintf(name, sizeof(name), "p%u", w->cards++);
    struct netlink_veth veth = {
        .name = name, .peer_name = "eth0", .peer_mac = p->mac, .peer_netns = netns};
    int r = netlink_add_veth(w->netlink, &veth, &p->ifindex, err);
    if (r)
        return r;
    /* A packet socket on a card that is off says that it is gone. */
    if ((r = netlink_link_up(w->netlink, p->ifindex, err)))
        return r;
    if ((r = packet_port_open(&p->packets, p->ifindex, w->queue, err)))
        return r;
    p->source = loop_fd(w->loop, p->packets.fd, LOOP_READ, on_frames, p);
    return 0;
}

int wire_add_port(struct wire *w, int port, const unsigned char mac[6], int netns,
                  struct err *err) {
    if (port < 0 || port >= WIRE_PORTS_MAX)
        return err_say(err, -ENOSPC, "the wire has %d ports: no room for one more node",
                       WIRE_PORTS_MAX);
    struct port *p = &w->ports[port];
    if (w->netlink < 0) {
        w->netlink = netlink_open_route(err);
        if (w->netlink < 0)
            return w->netlink;
        netlink_refuse_ipv6();
    }
    int old = p->ifindex;
    wire_count(w, port);
    port_close(p);
    if (old >= 0)
        netlink_link_delete(w->netlink, old, NULL);
    memcpy(p->mac, mac, 6);
    p->known = true;
    if (port >= w->ports_n)
        w->ports_n = port + 1;
    int r = make_card(w, p, netns, err);
    if (r)
        port_close(p);
    return r;
}

struct wire_port_counters wire_count(struct wire *w, int port) {
    assert(port >= 0 && port < WIRE_PORTS_MAX);
    struct port *p = &w->ports[port];
    if (p->packets.fd >= 0)
        p->counters.lost += packet_port_lost(&p->packets);
    return p->counters;
}
