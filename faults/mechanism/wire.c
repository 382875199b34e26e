#include "faults/mechanism/wire.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/netlink.h"
#include "faults/mechanism/delay_line.h"
#include "faults/mechanism/packets.h"

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
    struct capture *capture; /* NULL: its frames are in no file */
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
    struct impairer *impairer;
    struct delay_line *late;
    struct resolver resolver;
    struct store_gate *gate;
    wire_request_fn *asked; /* NULL: nothing has been watched yet */
    unsigned char message[PACKET_PORT_MAX], packet[PACKET_PORT_MAX];
};

static delay_line_fn on_due;

struct wire *wire_new(struct loop *l, wire_gone_fn *gone, void *arg) {
    struct wire *w = mem_new(struct wire);
    w->loop = l;
    w->gone = gone;
    w->arg = arg;
    w->netlink = -1;
    w->impairer = impairer_new();
    w->late = delay_line_new(l, on_due, w);
    w->gate = store_gate_new();
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
    for (int i = 0; i < WIRE_PORTS_MAX; i++)
        capture_free(w->ports[i].capture);
    file_close(&w->netlink);
    delay_line_free(w->late);
    store_gate_free(w->gate);
    impairer_free(w->impairer);
    free(w);
    return NULL;
}

void wire_queue(struct wire *w, enum packet_queue queue) {
    w->queue = queue;
}

struct wire_rules *wire_rules(struct wire *w) {
    return &w->rules;
}

void wire_capture(struct wire *w, int port, struct capture *c) {
    assert(port >= 0 && port < WIRE_PORTS_MAX);
    capture_free(w->ports[port].capture);
    w->ports[port].capture = c;
}

void wire_flush(struct wire *w) {
    for (int i = 0; i < WIRE_PORTS_MAX; i++)
        capture_flush(w->ports[i].capture);
}

struct resolver *wire_resolver(struct wire *w) {
    return &w->resolver;
}

bool wire_impair(struct wire *w, const struct impaired *list, size_t n) {
    return impairer_set(w->impairer, list, n, clock_monotonic_ns());
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
    bool noted;       /* as sent: it is in the sender's file already */
    const char *made; /* by the wire, and why; NULL: by a node */
};

/* ---- what was seen, in files ---- */

static void note(struct port *p, const struct passing *m, bool inbound, const char *comment) {
    if (p->capture)
        capture_frame(p->capture, clock_monotonic_ns(), m->message + PACKET_PORT_HEADER,
                      m->len - PACKET_PORT_HEADER, inbound, comment);
}

static void note_sent(struct port *from, const struct passing *m, const char *comment) {
    if (!m->noted)
        note(from, m, false, comment);
}

/* "fault: delayed by 200.000 ms, duplicated" */
static void note_fate(struct port *from, const struct passing *m, const struct fate *f) {
    static const char *const words[] = {
#define X(name, key, text) #name,
        IMPAIRMENT_DEEDS(X)
#undef X
    };
    char text[200];
    size_t n = 0;
    if (!from->capture || m->noted)
        return;
    if (f->cut)
        n += (size_t)snprintf(text, sizeof(text), "fault: the link is down");
    for (int i = 0; i < DEEDS_N; i++)
        if (f->deeds >> i & 1 && n < sizeof(text) - 40)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
                                  n ? ", " : "fault: ", words[i]);
    if (f->late_ns > 0 && n && n < sizeof(text) - 40)
        snprintf(text + n, sizeof(text) - n, ", late by %.3f ms", (double)f->late_ns / 1e6);
    note(from, m, false, n ? text : NULL);
}

/* Whether a frame that does not pass would, were it not for a cut. */
static bool is_cut(const struct wire *w, const struct port *from, const struct port *to) {
    return to->packets.fd >= 0 && !w->rules.silent[from->number] && !w->rules.silent[to->number];
}

static void drop(struct port *from, struct port *to, bool cut) {
    from->counters.dropped_out++;
    to->counters.dropped_in++;
    from->counters.cut_to[to->number] += cut;
}

static bool passes(const struct wire *w, struct port *from, struct port *to, unsigned plane) {
    if (to->packets.fd >= 0 && wire_rules_pass(&w->rules, from->number, to->number, plane))
        return true;
    drop(from, to, is_cut(w, from, to));
    return false;
}

/* The same of one that is being sent. */
static bool may_pass(const struct wire *w, struct port *from, struct port *to,
                     const struct passing *m) {
    if (passes(w, from, to, m->plane))
        return true;
    note_sent(from, m, is_cut(w, from, to) ? "fault: cut off" : "fault: a node without power");
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
    note(to, m, true, m->made);
    to->counters.frames_in++;
    to->counters.bytes_in += m->len - PACKET_PORT_HEADER;
    return true;
}

static void count_deeds(struct port *from, const struct port *to, unsigned deeds) {
    for (int i = 0; deeds && i < DEEDS_N; i++)
        from->counters.done_to[i][to->number] += deeds >> i & 1;
}

static void count_passed(struct port *from, const struct port *to, const struct passing *m,
                         unsigned deeds) {
    for (int i = 0; i < PLANES_N; i++)
        from->counters.passed_to[i][to->number] += m->plane >> i & 1;
    from->counters.bytes_to[to->number] += m->len - PACKET_PORT_HEADER;
    count_deeds(from, to, deeds);
}

/* Whoever is cut off, or without power, by the time it arrives does not get it. */
static void on_due(void *arg, const struct delayed *d) {
    struct wire *w = arg;
    struct port *from = &w->ports[d->from], *to = &w->ports[d->to];
    const struct passing m = {.message = d->message, .len = d->len, .plane = d->plane};
    if (passes(w, from, to, d->plane) && hand_over(to, &m))
        count_passed(from, to, &m, d->deeds);
}

static void send_on(struct wire *w, struct port *from, struct port *to, const struct passing *m,
                    const struct fate *fate) {
    bool overtaken = fate->deeds & 1U << DEED_REORDERED;
    if (fate->late_ns <= 0 && !delay_line_has(w->late, from->number, to->number)) {
        if (hand_over(to, m))
            count_passed(from, to, m, fate->deeds);
        return;
    }
    const struct delayed d = {.from = from->number,
                              .to = to->number,
                              .plane = m->plane,
                              .deeds = fate->deeds,
                              .overtaken = overtaken,
                              .message = m->message,
                              .len = m->len};
    if (!delay_line_put(w->late, &d, clock_monotonic_ns() + fate->late_ns))
        to->counters.lost++;
}

/* Tells who wants to connect that nobody listens, or both ends that the other is gone. */
static void reset(struct port *from, struct port *to, const struct passing *m,
                  const struct frame *f, bool both) {
    unsigned char made[PACKETS_RESET_MAX];
    const unsigned char *bytes = m->message + PACKET_PORT_HEADER;
    struct passing rst = {.message = made, .made = "fault: made by the wire"};
    rst.len = packets_reset(bytes, f, true, made);
    hand_over(from, &rst);
    if (!both)
        return;
    rst.len = packets_reset(bytes, f, false, made);
    hand_over(to, &rst);
}

/* A question for a name. The counters are of who asks, to whose name it is. */
static void ask_name(struct wire *w, struct port *from, const struct passing *m,
                     const struct frame *f, const struct resolver_question *q) {
    unsigned char made[RESOLVER_ANSWER_MAX];
    uint32_t address = 0;
    enum names_fate fate =
        impairer_names(w->impairer, from->number, q->port, resolver_can_lie(q), &address);
    note_sent(from, m, fate == NAMES_SILENT ? "fault: no answer" : NULL);
    if (fate != NAMES_RIGHT && q->port >= 0)
        from->counters.done_to[fate == NAMES_WRONG ? DEED_NAME_WRONG : DEED_NAME_FAILED][q->port]++;
    if (fate == NAMES_SILENT)
        return;
    struct passing answer = {.message = made,
                             .made = fate == NAMES_RIGHT   ? NULL
                                     : fate == NAMES_WRONG ? "fault: a wrong address"
                                                           : "fault: no address"};
    answer.len =
        resolver_answer(&w->resolver, m->message + PACKET_PORT_HEADER, f, q, fate, address, made);
    if (answer.len)
        hand_over(from, &answer);
}

/* Nothing of it is delayed, lost or cut: it is near to everybody, as a cache on the host would be. */
static void meet_resolver(struct wire *w, struct port *from, const struct passing *m,
                          const struct frame *f) {
    unsigned char made[RESOLVER_ANSWER_MAX];
    const unsigned char *bytes = m->message + PACKET_PORT_HEADER;
    struct resolver_question q;
    struct passing answer = {.message = made};
    if (w->rules.silent[from->number]) {
        note_sent(from, m, "fault: a node without power");
        from->counters.dropped_out++;
        return;
    }
    if (resolver_reads(&w->resolver, bytes, f, &q)) {
        ask_name(w, from, m, f, &q);
        return;
    }
    note_sent(from, m, NULL);
    if (f->kind == FRAME_ARP)
        answer.len = resolver_arp(&w->resolver, bytes, made);
    else if (f->kind == FRAME_TCP && !(f->tcp_flags & TCP_RST))
        answer.len = packets_reset(bytes, f, true, made);
    if (answer.len)
        hand_over(from, &answer);
}

/* What the frame is changed to is written into `packet`; NULL: it is not changed. */
static void meet_fate(struct wire *w, struct port *from, struct port *to, const struct passing *m,
                      unsigned char *packet) {
    struct frame f;
    if (!frame_parse(m->message + PACKET_PORT_HEADER, m->len - PACKET_PORT_HEADER, &f))
        return;
    const struct passage p = {.from = from->number,
                              .to = to->number,
                              .plane = m->plane,
                              .frame = &f,
                              .now_ns = clock_monotonic_ns()};
    struct fate fate = impairer_decide(w->impairer, &p);
    note_fate(from, m, &fate);
    if (fate.dropped) {
        count_deeds(from, to, fate.deeds);
        if (fate.cut)
            drop(from, to, true);
        const unsigned both = 1U << DEED_RESET | 1U << DEED_ANSWER_LOST;
        if (fate.deeds & (both | 1U << DEED_REFUSED))
            reset(from, to, m, &f, fate.deeds & both);
        return;
    }
    if (packet && fate.deeds & 1U << DEED_CORRUPTED)
        packets_flip(packet + PACKET_PORT_HEADER, &f, fate.bit, fate.checksum_right);
    send_on(w, from, to, m, &fate);
    if (fate.deeds & 1U << DEED_DUPLICATED)
        send_on(w, from, to, m, &(struct fate){.late_ns = fate.late_ns});
}

/* The way of a message whose packets are decided about one by one. */
struct way {
    struct wire *wire;
    struct port *from, *to;
    unsigned plane;
    bool noted;
};

static void on_packet(void *arg, unsigned char *message, size_t len) {
    const struct way *way = arg;
    const struct passing m = {
        .message = message, .len = len, .plane = way->plane, .noted = way->noted};
    meet_fate(way->wire, way->from, way->to, &m, message);
}

static void forward(struct wire *w, struct port *from, struct port *to, const struct passing *m) {
    if (!may_pass(w, from, to, m))
        return;
    if (impairer_wants_packets(w->impairer, from->number, to->number)) {
        struct way way = {w, from, to, m->plane, m->noted};
        packets_each(m->message, m->len, w->packet, on_packet, &way);
    } else if (impairer_touches(w->impairer, from->number, to->number))
        meet_fate(w, from, to, m, NULL);
    else {
        note_sent(from, m, NULL);
        send_on(w, from, to, m, &(const struct fate){0});
    }
}

/* ---- who asks the store for something ---- */

/* True: the frame waits. */
static bool waits_at_gate(struct wire *w, const struct port *from, const struct port *to,
                          const struct passing *m, const struct frame *f) {
    if (m->plane != PLANE_STORE || store_gate_is_open(w->gate))
        return false;
    const struct gate_frame g = {.from = from->number,
                                 .to = to->number,
                                 .plane = m->plane,
                                 .frame = f,
                                 .message = m->message,
                                 .len = m->len};
    const struct gate_verdict v = store_gate_see(w->gate, &g);
    if (v.operation != STORE_OPERATION_NONE)
        w->asked(w->arg, &(struct wire_request){g.from, g.to, v.operation, v.id});
    return v.kept;
}

static void on_passed(void *arg, const struct gate_frame *g) {
    struct wire *w = arg;
    const struct passing m = {.message = g->message, .len = g->len, .plane = g->plane};
    forward(w, &w->ports[g->from], &w->ports[g->to], &m);
}

void wire_watch_store(struct wire *w, unsigned told, unsigned held, wire_request_fn *fn) {
    w->asked = fn;
    store_gate_watch(w->gate, told, held);
}

void wire_pass(struct wire *w, uint64_t id) {
    store_gate_pass(w->gate, id, on_passed, w);
}

void wire_pass_all(struct wire *w) {
    store_gate_open(w->gate, on_passed, w);
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
    if (resolver_is_meant(&w->resolver, m->message + PACKET_PORT_HEADER, &f)) {
        meet_resolver(w, from, m, &f);
        return;
    }
    if (!f.group) {
        struct port *to = port_of(w, f.destination);
        if (to && to != from && !waits_at_gate(w, from, to, m, &f))
            forward(w, from, to, m);
        return;
    }
    note(from, m, false, NULL); /* once, whatever becomes of it on the way to each */
    m->noted = true;
    for (int i = 0; i < w->ports_n; i++)
        if (w->ports[i].known && &w->ports[i] != from)
            forward(w, from, &w->ports[i], m);
}

static void on_frames(void *arg, int fd, int what) {
    struct port *p = arg;
    for (int i = 0; i < FRAMES_IN_TURN; i++) {
        struct passing m = {0};
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
