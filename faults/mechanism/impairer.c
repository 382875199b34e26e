#include "faults/mechanism/impairer.h"

#include "base/mem.h"
#include "base/rand.h"
#include "faults/mechanism/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLANES_ALL = 15 };
static const uint64_t MILLION = 1000000;
/* What is in flight takes memory. */
static const int64_t LATE_MAX_NS = 60000000000;

struct rule {
    struct impaired it;
    struct rand rand;
    int64_t since_ns;
    bool bad[IMPAIRER_PORTS_MAX][IMPAIRER_PORTS_MAX]; /* links that are, at the moment */
    /* When the link from one group to another has sent all that waits before it. */
    int64_t sent_ns[IMPAIRER_PORTS_MAX][IMPAIRER_PORTS_MAX];
    struct answers_due answers; /* that are due */
    int64_t lost;               /* so many of them have been lost */
};

struct impairer {
    struct rule *rules[IMPAIRER_MAX];
    size_t n;
};

struct impairer *impairer_new(void) {
    return mem_new(struct impairer);
}

struct impairer *impairer_free(struct impairer *m) {
    for (size_t i = 0; m && i < m->n; i++)
        free(m->rules[i]);
    free(m);
    return NULL;
}

/* ---- the list ---- */

/* The rule that is known by this id, taken out; else a new one. */
static struct rule *take(struct impairer *m, const struct impaired *it, int64_t now_ns) {
    for (size_t i = 0; i < m->n; i++) {
        struct rule *r = m->rules[i];
        if (r && r->it.id == it->id) {
            m->rules[i] = NULL;
            return r;
        }
    }
    struct rule *r = mem_new(struct rule);
    r->it = *it;
    r->since_ns = now_ns;
    rand_init(&r->rand, (uint64_t)it->how.seed);
    return r;
}

bool impairer_set(struct impairer *m, const struct impaired *list, size_t n, int64_t now_ns) {
    struct rule *rules[IMPAIRER_MAX];
    if (n > IMPAIRER_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        rules[i] = take(m, &list[i], now_ns);
    for (size_t i = 0; i < m->n; i++)
        free(m->rules[i]);
    memcpy(m->rules, rules, n * sizeof(*rules));
    m->n = n;
    return true;
}

static bool is_between(const struct rule *r, int from, int to) {
    return impairment_is_between(&r->it.how, r->it.group[from], r->it.group[to]);
}

static bool is_its_time(const struct rule *r, int64_t now_ns) {
    int64_t age_ns = now_ns - r->since_ns, until_ns = r->it.how.until_ns;
    return age_ns >= r->it.how.from_ns && (!until_ns || age_ns < until_ns);
}

static bool is_about(const struct rule *r, const struct passage *p) {
    int64_t planes = r->it.how.planes;
    return is_its_time(r, p->now_ns) && is_between(r, p->from, p->to) &&
           (p->plane ? planes & p->plane : planes == PLANES_ALL);
}

bool impairer_touches(const struct impairer *m, int from, int to) {
    for (size_t i = 0; i < m->n; i++)
        if (is_between(m->rules[i], from, to))
            return true;
    return false;
}

/* A long segment may as well be late, or cut off, as a whole. */
bool impairer_wants_packets(const struct impairer *m, int from, int to) {
    for (size_t i = 0; i < m->n; i++) {
        const struct impairment *h = &m->rules[i]->it.how;
        bool each = h->loss_ppm || h->duplicate_ppm || h->reorder_ppm || h->corrupt_ppm ||
                    h->rate_bit_s || h->rate_in_bit_s || h->rate_out_bit_s || h->mtu_bytes;
        if (each && is_between(m->rules[i], from, to))
            return true;
    }
    return false;
}

static bool is_about_name(const struct rule *r, int from, int named) {
    const struct impairment *h = &r->it.how;
    return r->it.group[from] == 0 && h->names &&
           (named < 0 ? h->names_all : impairment_is_between(h, 0, r->it.group[named]));
}

enum names_fate impairer_names(const struct impairer *m, int from, int named, bool lies,
                               uint32_t *ret_address) {
    for (size_t i = 0; i < m->n; i++) {
        const struct impairment *h = &m->rules[i]->it.how;
        if (!is_about_name(m->rules[i], from, named) || (h->names == NAMES_WRONG && !lies))
            continue;
        *ret_address = (uint32_t)h->names_address;
        return (enum names_fate)h->names;
    }
    return NAMES_RIGHT;
}

/* ---- one frame ---- */

static bool draw(struct rule *r, int64_t ppm) {
    return ppm > 0 && rand_below(&r->rand, MILLION) < (uint64_t)ppm;
}

/* A link that is bad is so for the next frame too with 1 - 1/burst; it becomes bad as often as gives
 * the share of all. */
static bool is_lost(struct rule *r, const struct passage *p) {
    const struct impairment *h = &r->it.how;
    bool *bad = &r->bad[p->from][p->to];
    int64_t bad_ppm = h->bad_ppm ? h->bad_ppm : (int64_t)MILLION;
    if (h->burst <= 1 || h->loss_ppm >= bad_ppm)
        return draw(r, h->loss_ppm);
    double share = (double)(h->loss_ppm - h->good_ppm) / (double)(bad_ppm - h->good_ppm);
    double burst = (double)h->burst, begins = share / (burst * (1 - share));
    *bad = rand_unit(&r->rand) < (*bad ? 1 - 1 / burst : begins);
    return draw(r, *bad ? bad_ppm : h->good_ppm);
}

static bool is_down(const struct rule *r, int64_t now_ns) {
    return impairment_is_down(&r->it.how, now_ns - r->since_ns);
}

static bool is_to_port(const struct rule *r, const struct frame *f) {
    int64_t port = r->it.how.tcp_port;
    return !port || f->destination_port == port || f->source_port == port;
}

/* RFC 9293, 3.5.2: a RST that answers a segment has its number and no ACK; one that answers a SYN
 * acknowledges it and has the number 0. Whoever aborts a connection of its own sends neither. */
static bool is_hushed(const struct rule *r, const struct frame *f) {
    bool answers_segment = !(f->tcp_flags & TCP_ACK),
         answers_syn = !answers_segment && !f->sequence;
    return answers_segment ? r->it.how.hushes > 1 : r->it.how.hushes && !answers_syn;
}

/* Who is told what of connections: 0, or the deed, and the frame goes no further. */
static unsigned connection_deed(const struct rule *r, const struct frame *f) {
    const struct impairment *h = &r->it.how;
    if (f->kind != FRAME_TCP || !is_to_port(r, f))
        return 0;
    if (f->tcp_flags & TCP_RST)
        return is_hushed(r, f) ? 1U << DEED_HUSHED : 0;
    bool connects = (f->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
    if (h->resets && !connects)
        return 1U << DEED_RESET;
    if (h->refuses && connects)
        return 1U << DEED_REFUSED;
    return h->blocks && connects ? 1U << DEED_BLOCKED : 0;
}

static unsigned answer_deed(struct rule *r, const struct passage *p) {
    const struct impairment *h = &r->it.how;
    if (r->lost >= h->answers || p->plane != PLANE_STORE ||
        !answers_see(&r->answers, p->from, p->to, p->frame, h->answers_to_all))
        return 0;
    r->lost++;
    return 1U << DEED_ANSWER_LOST;
}

static unsigned drops(struct rule *r, const struct passage *p) {
    const struct impairment *h = &r->it.how;
    const struct frame *f = p->frame;
    unsigned deed = connection_deed(r, f);
    if (!deed && h->answers)
        deed = answer_deed(r, p);
    if (!deed && h->mtu_bytes && f->end > FRAME_ETHERNET + (size_t)h->mtu_bytes)
        deed = 1U << DEED_OVERSIZE;
    if (!deed && is_lost(r, p))
        deed = 1U << DEED_LOST;
    return deed;
}

static int64_t rate_of(const struct rule *r, const struct passage *p) {
    const struct impairment *h = &r->it.how;
    int64_t own = r->it.group[p->from] == 0 ? h->rate_out_bit_s
                  : r->it.group[p->to] == 0 ? h->rate_in_bit_s
                                            : 0;
    return own ? own : h->rate_bit_s;
}

/* How long it waits before a link of that rate, or that it is not let in. */
static void throttle(struct rule *r, const struct passage *p, struct fate *ret) {
    const struct impairment *h = &r->it.how;
    int64_t rate_bit_s = rate_of(r, p);
    if (!rate_bit_s)
        return;
    int64_t *sent_ns = &r->sent_ns[r->it.group[p->from]][r->it.group[p->to]];
    int64_t from_ns = *sent_ns > p->now_ns ? *sent_ns : p->now_ns;
    double bytes_s = (double)rate_bit_s / 8;
    double waiting = (double)(from_ns - p->now_ns) / 1e9 * bytes_s;
    ret->deeds |= 1U << DEED_THROTTLED;
    if (waiting + (double)p->frame->end > (double)h->queue_bytes) {
        ret->dropped = true;
        return;
    }
    *sent_ns = from_ns + (int64_t)((double)p->frame->end / bytes_s * 1e9);
    ret->late_ns += *sent_ns - p->now_ns;
}

/* By Box and Muller. */
static double draw_bell(struct rand *r) {
    double u = 1 - rand_unit(r), v = rand_unit(r);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* The inverse of 1 - (1 + x / 2)^-3, whose mean is 1. */
static double draw_tail(struct rand *r) {
    return 2 * (pow(1 - rand_unit(r), -1.0 / 3) - 1);
}

static int64_t jitter(struct rule *r) {
    const struct impairment *h = &r->it.how;
    double one = (double)h->jitter_ns;
    if (h->jitter_kind == JITTER_NORMAL)
        return (int64_t)(one * draw_bell(&r->rand));
    if (h->jitter_kind == JITTER_PARETO)
        return (int64_t)(one * draw_tail(&r->rand));
    return (int64_t)rand_below(&r->rand, 2 * (uint64_t)h->jitter_ns + 1) - h->jitter_ns;
}

static void delay(struct rule *r, struct fate *ret) {
    const struct impairment *h = &r->it.how;
    if (!h->delay_ns)
        return;
    int64_t late_ns = h->delay_ns + (h->jitter_ns > 0 ? jitter(r) : 0);
    ret->late_ns += late_ns < 0 ? 0 : late_ns > LATE_MAX_NS ? LATE_MAX_NS : late_ns;
    ret->deeds |= 1U << DEED_DELAYED;
}

static void change(struct rule *r, const struct passage *p, struct fate *ret) {
    const struct impairment *h = &r->it.how;
    if (draw(r, h->duplicate_ppm))
        ret->deeds |= 1U << DEED_DUPLICATED;
    if (draw(r, h->reorder_ppm)) {
        ret->deeds |= 1U << DEED_REORDERED;
        ret->late_ns += h->reorder_ns;
    }
    if (p->frame->data && p->frame->end > p->frame->data && draw(r, h->corrupt_ppm)) {
        ret->deeds |= 1U << DEED_CORRUPTED;
        ret->bit = rand_u64(&r->rand);
        ret->checksum_right = h->corrupt_mends;
    }
}

struct fate impairer_decide(struct impairer *m, const struct passage *p) {
    struct fate ret = {0};
    for (size_t i = 0; i < m->n && !ret.dropped; i++) {
        struct rule *r = m->rules[i];
        if (!is_about(r, p))
            continue;
        ret.cut = is_down(r, p->now_ns);
        unsigned deed = ret.cut ? 0 : drops(r, p);
        ret.dropped = ret.cut || deed;
        if (ret.dropped) {
            ret.deeds = deed;
            break;
        }
        delay(r, &ret);
        throttle(r, p, &ret);
        change(r, p, &ret);
    }
    return ret;
}
