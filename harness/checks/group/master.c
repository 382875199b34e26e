#include "harness/checks/check.h"

#include "agent/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char broken[] = "Master: MASTER_ADDR is where rank 0 runs, and it listens there.";

struct tally {
    int rounds, met, unmet;
    const struct round *first_unmet;
    const struct record **looks;
    size_t looks_n;
};

/* The node that has this address, "" when nobody has it. */
static const char *node_at(const struct history *h, const char *address) {
    history_each(r, h) {
        if (r->source == SOURCE_HARNESS && record_is(r, "node-up") &&
            str_eq(record_text(r, "addr"), address))
            return r->node;
    }
    return "";
}

static bool is_loopback(const char *address) {
    return str_starts(address, "127.") || str_eq(address, "localhost") || str_eq(address, "::1");
}

/* Then localhost, or this host's name, is where every node is: only the port can tell. */
static bool nodes_are_processes(const struct history *h) {
    const struct record *run = history_newest(h, SOURCE_HARNESS, "run");
    return run && str_eq(record_text(run, "isolation"), "processes");
}

static bool is_node(const struct history *h, const char *name) {
    history_each(r, h) {
        if (r->source == SOURCE_HARNESS && record_is(r, "node-up") && str_eq(r->node, name))
            return true;
    }
    return false;
}

static bool judge_address(const struct trial *t, struct finding *f, const struct round *r,
                          const struct worker *zero) {
    const char *address = zero->master_addr;
    const char *at = is_node(t->history, address) ? address : node_at(t->history, address);
    char expected[200];
    if (!*at && nodes_are_processes(t->history))
        return true;
    if (str_eq(at, zero->node) || (is_loopback(address) && round_nodes(r) == 1))
        return true;
    snprintf(expected, sizeof(expected), "MASTER_ADDR of round %d is %s, where rank 0 runs",
             r->number, zero->node);
    finding_prove(f, zero->start_seq);
    if (*at || is_loopback(address))
        finding_fail(f, broken, expected, "it is %s", address);
    else
        finding_unknown(f, broken, "MASTER_ADDR of round %d is %s, which is no node's name",
                        r->number, address);
    return false;
}

static bool has_port(const char *end, const char *port) {
    const char *colon = strrchr(end, ':');
    return colon && str_eq(colon + 1, port);
}

/* The node of an end such as "198.18.0.10:29501"; "" when its port is another one. */
static const char *end_node(const struct history *h, const char *end, const char *port,
                            const char *seen_from) {
    const char *colon = strrchr(end, ':');
    char address[64];
    if (!has_port(end, port) || (size_t)(colon - end) >= sizeof(address))
        return "";
    memcpy(address, end, (size_t)(colon - end));
    address[colon - end] = 0;
    const char *node = node_at(h, address); /* which may be one of the loopback */
    return !*node && is_loopback(address) && !nodes_are_processes(h) ? seen_from : node;
}

/* Where the workers met, as one look tells: somebody listened there, or had accepted a connection.
 * A connection that goes out from this very port by chance says nothing of other nodes. */
static const char *met_at(const struct history *h, const struct record *look,
                          const struct worker *zero) {
    const char *elsewhere = "";
    json_each(s, record_get(look, "found")) {
        bool listens = str_eq(json_get_string(s, "state", ""), "listen");
        const char *remote =
            end_node(h, json_get_string(s, "remote", ""), zero->master_port, look->node);
        bool local = has_port(json_get_string(s, "local", ""), zero->master_port);
        if (str_eq(remote, zero->node) || (local && str_eq(look->node, zero->node)))
            return zero->node;
        if (*remote || (local && listens))
            elsewhere = *remote ? remote : look->node;
    }
    return elsewhere;
}

/* Every look at the sockets of a node. The caller frees the array. */
static const struct record **find_looks(const struct history *h, size_t *ret_n) {
    const struct record **looks = calloc(h->n + 1, sizeof(*looks));
    size_t n = 0;
    if (!looks)
        abort(); /* out of memory */
    history_each(r, h) {
        if (r->source == SOURCE_KERNEL && record_is(r, "listening"))
            looks[n++] = r;
    }
    *ret_n = n;
    return looks;
}

/* The same node was looked at for the same round before. */
static bool is_repeated(const struct tally *tally, size_t look) {
    const struct record *const *v = tally->looks;
    for (size_t i = 0; i < look; i++)
        if (str_eq(v[i]->node, v[look]->node) &&
            record_i64(v[i], "round", 0) == record_i64(v[look], "round", 0))
            return true;
    return false;
}

static bool judge_port(const struct trial *t, struct finding *f, const struct round *r,
                       const struct worker *zero, struct tally *tally) {
    const char *met = "";
    int looks = 0;
    for (size_t i = 0; i < tally->looks_n; i++) {
        const struct record *look = tally->looks[i];
        if (record_i64(look, "round", 0) != r->number)
            continue;
        const char *at = met_at(t->history, look, zero);
        looks += !is_repeated(tally, i);
        finding_prove(f, look->seq);
        if (*at && !str_eq(met, zero->node))
            met = at;
    }
    if (*met && !str_eq(met, zero->node)) {
        char expected[200];
        snprintf(expected, sizeof(expected), "the workers of round %d meet at %s:%s", r->number,
                 zero->node, zero->master_port);
        finding_fail(f, broken, expected, "they met at port %s of %s; rank 0 runs on %s",
                     zero->master_port, met, zero->node);
        return false;
    }
    tally->met += *met != 0;
    if (!*met && looks == round_nodes(r)) {
        tally->unmet++;
        tally->first_unmet = tally->first_unmet ? tally->first_unmet : r;
    }
    return true;
}

static bool judge_round(const struct trial *t, struct finding *f, const struct round *r,
                        struct tally *tally) {
    const struct worker *zero = round_rank(r, 0);
    if (!r->complete || !zero)
        return true;
    tally->rounds++;
    if (!judge_address(t, f, r, zero))
        return false;
    return r->world_size < 2 || judge_port(t, f, r, zero, tally);
}

static bool told_no_master(const struct trial *t) {
    for (size_t i = 0; i < t->rounds->workers_n; i++)
        if (*t->rounds->workers[i]->master_addr)
            return false;
    return check_template(t);
}

static void judge_rounds(const struct trial *t, struct finding *f, struct tally *tally) {
    const struct rounds *rs = t->rounds;
    for (size_t i = 0; i < rs->n; i++)
        if (!judge_round(t, f, rs->v[i], tally))
            return;
    if (tally->met && tally->unmet) {
        const struct worker *zero = round_rank(tally->first_unmet, 0);
        finding_fail(f, broken, "a listener where the workers of every round meet",
                     "nobody listened at %s:%s when the group of round %d had formed",
                     zero->master_addr, zero->master_port, tally->first_unmet->number);
        finding_prove(f, zero->start_seq);
        return;
    }
    *f = (struct finding){.check = f->check, .class = f->class};
    const char *s = tally->rounds == 1 ? "" : "s";
    if (tally->met)
        finding_pass(f, "rank 0's node in %d round%s; its port was in use in %d of them",
                     tally->rounds, s, tally->met);
    else
        finding_pass(f, "rank 0's node in %d round%s; its port was not seen in use", tally->rounds,
                     s);
}

static void judge(const struct trial *t, struct finding *f) {
    struct tally tally = {0};
    if (!check_sees_rounds(t, f))
        return;
    if (told_no_master(t)) {
        finding_skip(f, "the template gives its workers no MASTER_ADDR");
        return;
    }
    tally.looks = find_looks(t->history, &tally.looks_n);
    judge_rounds(t, f, &tally);
    free(tally.looks);
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
