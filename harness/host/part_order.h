/* part_order: what the harness says of a host's half of a partition: with whom nothing is exchanged,
 * and by what. Pure. node_helper.h has the message. */
#pragma once

#include "base/json.h"
#include "base/texts.h"
#include "faults/mechanism/wire_rules.h"

enum { PART_ADDRESS_MAX = 48 };

struct part_peer {
    char name[64];
    bool all;               /* everybody */
    struct texts addresses; /* as inet_ntop writes them */
    bool deaf, mute;        /* nothing is heard from it; nothing is said to it */
};

/* What goes on: with this address, "" any; ports 0: any. */
struct part_end {
    char address[PART_ADDRESS_MAX];
    uint16_t theirs, ours;
};

struct part_order {
    char name[64];
    bool by_table, listeners, says_keep;
    unsigned planes;           /* that are closed: PLANE_* */
    struct wire_rules sorting; /* of ports into planes */
    struct part_peer *peers;
    size_t peers_n;
    struct part_end *keep;
    size_t keep_n;
};

/* Returns 0, or -EINVAL with a sentence that names the member. */
int part_order_take(const struct json *m, struct part_order *ret, struct err *err);
void part_order_fini(struct part_order *o);

/* What sshd says of a connection: "10.0.0.1 50000 10.0.0.2 22", who called first. */
bool part_order_keep_ssh(struct part_order *o, const char *ssh_connection);
/* "::1", "127.0.0.1": in the one way in which it is written; false: it is no address. */
bool part_address(const char *text, char ret[PART_ADDRESS_MAX]);

unsigned part_order_plane(const struct part_order *o, uint16_t ours, uint16_t theirs);
bool part_order_keeps(const struct part_order *o, const char *address, uint16_t ours,
                      uint16_t theirs);
/* The peer with this address, one that was named before one that is everybody; -1: none. */
int part_order_peer(const struct part_order *o, const char *address);
