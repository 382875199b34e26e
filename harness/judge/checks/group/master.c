/* Compares MASTER_ADDR and MASTER_PORT with rank 0's node and with who listens there. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/sorted.h"
#include "harness/judge/checks/spans.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char broken[] = "Master: MASTER_ADDR is where rank 0 runs, and it listens there.";

struct master_tally {
    int rounds, met, unmet;
    const struct round *first_unmet;
    const struct record **looks; /* at the sockets of nodes, by round */
    size_t looks_n;
    struct moments nodes;     /* all that came up */
    bool nodes_are_processes; /* localhost, or this host's name, is where every node is: only the
                                 port can tell */
};

/* Whether a name is this one, or the full name of a host whose short name this is. */
static bool is_name_of(const char *name, const char *node) {
    size_t n = strlen(node);
    return str_eq(name, node) || (n > 0 && str_starts(name, node) && name[n] == '.');
}

/* The node that has this address, or this name on a host of its own; the wanted one, if that has it: a
 * store may be beside it. "" when nobody has it. */
static const char *node_at(const struct master_tally *tally, const char *address,
                           const char *wanted) {
    const char *found = "";
    for (size_t i = 0; i < tally->nodes.when.n; i++) {
        const struct record *up = tally->nodes.v[i];
        bool there = str_eq(record_text(up, "addr"), address) ||
                     is_name_of(address, record_text(up, "host"));
        if (there && str_eq(up->node, wanted))
            return up->node;
        found = there && !*found ? up->node : found;
    }
    return found;
}

static bool is_loopback(const char *address) {
    return str_starts(address, "127.") || str_eq(address, "localhost") || str_eq(address, "::1");
}

static bool nodes_are_processes(const struct history *h) {
    const struct record *run = history_newest(h, SOURCE_HARNESS, "run");
    return run && str_eq(record_text(run, "isolation"), "processes");
}

/* NULL when no node is called so. */
static const char *node_named(const struct master_tally *tally, const char *name) {
    for (size_t i = 0; i < tally->nodes.when.n; i++)
        if (is_name_of(name, tally->nodes.v[i]->node))
            return tally->nodes.v[i]->node;
    return NULL;
}

static bool judge_address(const struct master_tally *tally, struct finding *f,
                          const struct round *r, const struct worker *zero) {
    const char *address = zero->master_addr;
    const char *named = node_named(tally, address);
    const char *at = named ? named : node_at(tally, address, zero->node);
    if (!*at && tally->nodes_are_processes)
        return true;
    if (str_eq(at, zero->node) || (is_loopback(address) && round_nodes(r) == 1))
        return true;
    const char *expected = finding_expected(f, "MASTER_ADDR of round %d is %s, where rank 0 runs",
                                            r->number, zero->node);
    finding_prove(f, zero->start_seq);
    if (*at || is_loopback(address))
        return finding_fail(f, broken, expected, "it is %s", address);
    return finding_unknown(f, broken, "MASTER_ADDR of round %d is %s, which is no node's name",
                           r->number, address);
}

static bool has_port(const char *end, const char *port) {
    const char *colon = strrchr(end, ':');
    return colon && str_eq(colon + 1, port);
}

/* The node of an end such as "198.18.0.10:29501"; "" when its port is another one. */
static const char *end_node(const struct master_tally *tally, const char *end, const char *port,
                            const char *seen_from, const char *wanted) {
    const char *colon = strrchr(end, ':');
    char address[64];
    if (!has_port(end, port) || (size_t)(colon - end) >= sizeof(address))
        return "";
    memcpy(address, end, (size_t)(colon - end));
    address[colon - end] = 0;
    const char *node = node_at(tally, address, wanted); /* which may be one of the loopback */
    return !*node && is_loopback(address) && !tally->nodes_are_processes ? seen_from : node;
}

/* Where the workers met, as one look tells: somebody listened there, or had accepted a connection.
 * A connection that goes out from this very port by chance says nothing of other nodes. */
static const char *met_at(const struct master_tally *tally, const struct record *look,
                          const struct worker *zero) {
    const char *elsewhere = "";
    json_each(s, record_get(look, "found")) {
        bool listens = str_eq(json_get_string(s, "state", ""), "listen");
        const char *remote = end_node(tally, json_get_string(s, "remote", ""), zero->master_port,
                                      look->node, zero->node);
        bool local = has_port(json_get_string(s, "local", ""), zero->master_port);
        if (str_eq(remote, zero->node) || (local && str_eq(look->node, zero->node)))
            return zero->node;
        if (*remote || (local && listens))
            elsewhere = *remote ? remote : look->node;
    }
    return elsewhere;
}

static bool is_node_up(const struct record *r) {
    return r->source == SOURCE_HARNESS && record_is(r, "node-up");
}

static bool is_look(const struct record *r) {
    return r->source == SOURCE_KERNEL && record_is(r, "listening");
}

static int64_t round_of(const struct record *look) {
    return record_i64(look, "round", 0);
}

static int by_round(const void *a, const void *b) {
    const struct record *x = *(const struct record *const *)a,
                        *y = *(const struct record *const *)b;
    int order = (round_of(x) > round_of(y)) - (round_of(x) < round_of(y));
    return order ? order : (x->seq > y->seq) - (x->seq < y->seq);
}

static int64_t round_at(const void *thing) {
    return round_of(*(const struct record *const *)thing);
}

/* The first look of that round. */
static size_t first_look(const struct master_tally *tally, int64_t round) {
    return lower_bound(tally->looks, tally->looks_n, sizeof(*tally->looks), round_at, round);
}

/* The same node was looked at for the same round before. */
static bool is_repeated(const struct record *const *first, const struct record *const *look) {
    for (; first < look; first++)
        if (str_eq((*first)->node, (*look)->node))
            return true;
    return false;
}

static bool judge_port(struct finding *f, const struct round *r, const struct worker *zero,
                       struct master_tally *tally) {
    const char *met = "";
    size_t first = first_look(tally, r->number);
    int looks = 0;
    for (size_t i = first; i < tally->looks_n; i++) {
        const struct record *look = tally->looks[i];
        if (round_of(look) != r->number)
            break;
        const char *at = met_at(tally, look, zero);
        looks += !is_repeated(&tally->looks[first], &tally->looks[i]);
        finding_prove(f, look->seq);
        if (*at && !str_eq(met, zero->node))
            met = at;
    }
    if (*met && !str_eq(met, zero->node)) {
        char expected[200];
        snprintf(expected, sizeof(expected), "the workers of round %d meet at %s:%s", r->number,
                 zero->node, zero->master_port);
        return finding_fail(f, broken, expected, "they met at port %s of %s; rank 0 runs on %s",
                            zero->master_port, met, zero->node);
    }
    tally->met += *met != 0;
    if (!*met && looks == round_nodes(r)) {
        tally->unmet++;
        tally->first_unmet = tally->first_unmet ? tally->first_unmet : r;
    }
    return true;
}

static bool judge_round(struct finding *f, const struct round *r, struct master_tally *tally) {
    const struct worker *zero = round_rank(r, 0);
    if (!r->complete || !zero)
        return true;
    tally->rounds++;
    if (!judge_address(tally, f, r, zero))
        return false;
    return r->world_size < 2 || judge_port(f, r, zero, tally);
}

static bool told_no_master(const struct trial *t) {
    for (size_t i = 0; i < t->rounds->workers_n; i++)
        if (*t->rounds->workers[i]->master_addr)
            return false;
    return check_template(t);
}

static bool judge_rounds(const struct trial *t, struct finding *f, struct master_tally *tally) {
    const struct rounds *rs = t->rounds;
    for (size_t i = 0; i < rs->n; i++)
        if (!judge_round(f, rs->v[i], tally))
            return false;
    if (tally->met && tally->unmet) {
        const struct worker *zero = round_rank(tally->first_unmet, 0);
        finding_prove(f, zero->start_seq);
        return finding_fail(f, broken, "a listener where the workers of every round meet",
                            "nobody listened at %s:%s when the group of round %d had formed",
                            zero->master_addr, zero->master_port, tally->first_unmet->number);
    }
    *f = (struct finding){.check = f->check, .class = f->class};
    const char *s = tally->rounds == 1 ? "" : "s";
    if (tally->met)
        return finding_pass(f, "rank 0's node in %d round%s; its port was in use in %d of them",
                            tally->rounds, s, tally->met);
    return finding_pass(f, "rank 0's node in %d round%s; its port was not seen in use",
                        tally->rounds, s);
}

static bool judge(const struct trial *t, struct finding *f) {
    struct master_tally tally = {0};
    if (!check_sees_rounds(t, f))
        return false;
    if (told_no_master(t))
        return finding_skip(f, "the template gives its workers no MASTER_ADDR");
    struct moments looks;
    moments_init(&looks, t->arena, t->history, is_look);
    moments_init(&tally.nodes, t->arena, t->history, is_node_up);
    qsort(looks.v, looks.when.n, sizeof(*looks.v), by_round);
    tally.looks = looks.v;
    tally.looks_n = looks.when.n;
    tally.nodes_are_processes = nodes_are_processes(t->history);
    return judge_rounds(t, f, &tally);
}

const struct check check_master = {
    .name = "master",
    .summary = "the master address is rank 0's node, and its port listens there",
    .text = "MASTER_ADDR of every complete round names the node that rank 0 runs on. When a group "
            "has formed, the sockets of its nodes are looked at: they met at MASTER_PORT of that "
            "node, not of another one. A job that never uses the port is judged by the address "
            "alone.",
    .example = "rankquake run scenarios/membership/rank-0-node-lost.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL),
    .judge = judge,
};
