#include "harness/host/part_order.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PEERS_MAX = 4096 };

bool part_address(const char *text, char ret[PART_ADDRESS_MAX]) {
    unsigned char bytes[16];
    int family = strchr(text, ':') ? AF_INET6 : AF_INET;
    return inet_pton(family, text, bytes) == 1 &&
           inet_ntop(family, bytes, ret, PART_ADDRESS_MAX) != NULL;
}

/* ---- members ---- */

static int take_addresses(const struct json *list, struct part_peer *p, struct err *err) {
    char address[PART_ADDRESS_MAX];
    json_each(it, list) {
        const char *text = json_string(it, "");
        if (str_eq(text, "*"))
            p->all = true;
        else if (part_address(text, address))
            texts_add(&p->addresses, "%s", address);
        else
            return err_say(err, -EINVAL,
                           "part: peers: %s: \"%s\" is no address; names are "
                           "resolved by the harness",
                           p->name, text);
    }
    if (!p->all && !p->addresses.n)
        return err_say(err, -EINVAL, "part: peers: %s has no address", p->name);
    return 0;
}

static int take_peer(const struct json *m, struct part_order *o, struct err *err) {
    const char *name = json_get_string(m, "name", "");
    struct part_peer *p = &mem_push(o->peers, o->peers_n);
    *p = (struct part_peer){.deaf = json_get_bool(m, "deaf", true),
                            .mute = json_get_bool(m, "mute", true)};
    str_copy(p->name, sizeof(p->name), name);
    if (!*name)
        return err_say(err, -EINVAL, "part: a peer without a name");
    if (!p->deaf && !p->mute)
        return err_say(err, -EINVAL, "part: peers: %s is neither deaf nor mute", name);
    return take_addresses(json_get(m, "addresses"), p, err);
}

static int take_peers(const struct json *list, struct part_order *o, struct err *err) {
    int r = 0;
    if (!list || list->type != JSON_ARRAY || !list->length || list->length > PEERS_MAX)
        return err_say(err, -EINVAL, "part: peers must be a list of one to %d", PEERS_MAX);
    json_each(it, list) if ((r = take_peer(it, o, err)) != 0) return r;
    return 0;
}

static int take_planes(const struct json *list, struct part_order *o, struct err *err) {
    o->planes = list ? 0 : PLANE_ALL;
    json_each(it, list) {
        int at = 0;
        while (at < PLANES_N && !str_eq(json_string(it, ""), plane_names[at]))
            at++;
        if (at == PLANES_N)
            return err_say(err, -EINVAL, "part: planes: there is no \"%s\"", json_string(it, ""));
        o->planes |= 1u << at;
    }
    return o->planes ? 0 : err_say(err, -EINVAL, "part: planes: none is named");
}

static int take_port(const struct json *j, uint16_t *ret, struct err *err) {
    int64_t port = json_i64(j, 0);
    if (j && (port < 1 || port > 65535))
        return err_say(err, -EINVAL, "part: %s: no port is %lld", j->key ? j->key : "ports",
                       (long long)port);
    *ret = (uint16_t)port;
    return 0;
}

static int take_ports(const struct json *m, struct part_order *o, struct err *err) {
    int r = take_port(json_get(m, "store"), &o->sorting.store_port, err);
    r = r ? r : take_port(json_get(m, "store_peer"), &o->sorting.store_peer_port, err);
    json_each(it, json_get(m, "bootstrap")) {
        uint16_t port = 0;
        if (r || (r = take_port(it, &port, err)) != 0)
            return r;
        wire_rules_bootstrap(&o->sorting, port);
    }
    return r;
}

static int take_keep(const struct json *list, struct part_order *o, struct err *err) {
    o->says_keep = list != NULL;
    json_each(it, list) {
        struct part_end *e = &mem_push(o->keep, o->keep_n);
        const char *text = json_get_string(it, "address", "");
        *e = (struct part_end){0};
        if (!part_address(text, e->address))
            return err_say(err, -EINVAL, "part: keep: \"%s\" is no address", text);
        int r = take_port(json_get(it, "theirs"), &e->theirs, err);
        r = r ? r : take_port(json_get(it, "ours"), &e->ours, err);
        if (r)
            return r;
    }
    return 0;
}

static int take_way(const struct json *m, struct part_order *o, struct err *err) {
    const char *way = json_get_string(m, "way", "sockets");
    o->by_table = str_eq(way, "table");
    o->listeners = json_get_bool(m, "listeners", false);
    if (!o->by_table && !str_eq(way, "sockets"))
        return err_say(err, -EINVAL, "part: way: \"%s\" is neither sockets nor table", way);
    str_copy(o->name, sizeof(o->name), json_get_string(m, "name", ""));
    return *o->name ? 0 : err_say(err, -EINVAL, "part: it has no name, by which it is undone");
}

int part_order_take(const struct json *m, struct part_order *ret, struct err *err) {
    *ret = (struct part_order){0};
    int r = take_way(m, ret, err);
    r = r ? r : take_planes(json_get(m, "planes"), ret, err);
    r = r ? r : take_ports(json_get(m, "ports"), ret, err);
    r = r ? r : take_keep(json_get(m, "keep"), ret, err);
    r = r ? r : take_peers(json_get(m, "peers"), ret, err);
    if (r)
        part_order_fini(ret);
    return r;
}

void part_order_fini(struct part_order *o) {
    for (size_t i = 0; i < o->peers_n; i++)
        texts_fini(&o->peers[i].addresses);
    free(o->peers);
    free(o->keep);
    *o = (struct part_order){0};
}

bool part_order_keep_ssh(struct part_order *o, const char *text) {
    char client[64];
    unsigned theirs, ours;
    struct part_end e;
    if (!text || sscanf(text, "%63s %u %*s %u", client, &theirs, &ours) != 3 ||
        !part_address(client, e.address) || theirs > UINT16_MAX || ours > UINT16_MAX)
        return false;
    e.theirs = (uint16_t)theirs;
    e.ours = (uint16_t)ours;
    mem_push(o->keep, o->keep_n) = e;
    return true;
}

/* ---- questions ---- */

unsigned part_order_plane(const struct part_order *o, uint16_t ours, uint16_t theirs) {
    const struct frame f = {.kind = FRAME_TCP, .source_port = ours, .destination_port = theirs};
    return wire_rules_plane(&o->sorting, &f);
}

bool part_order_keeps(const struct part_order *o, const char *address, uint16_t ours,
                      uint16_t theirs) {
    for (size_t i = 0; i < o->keep_n; i++) {
        const struct part_end *e = &o->keep[i];
        if (str_eq(e->address, address) && (!e->theirs || e->theirs == theirs) &&
            (!e->ours || e->ours == ours))
            return true;
    }
    return false;
}

int part_order_peer(const struct part_order *o, const char *address) {
    int all = -1;
    for (size_t i = 0; i < o->peers_n; i++) {
        if (texts_has(&o->peers[i].addresses, address))
            return (int)i;
        if (o->peers[i].all && all < 0)
            all = (int)i;
    }
    return all;
}
