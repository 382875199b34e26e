/* Lets the name server tell a node wrong addresses: a record that is stale, or poisoned. */
#include "faults/network/traffic.h"

#include <arpa/inet.h>
#include <errno.h>

/* Of the network of the nodes, and nobody's: who connects waits, and is told that it is not reached. */
#define NOBODY "198.18.0.250"

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    struct in_addr address;
    const char *text = fault_arg(a, "address", NOBODY);
    if (inet_pton(AF_INET, text, &address) != 1)
        return err_say(err, -EINVAL, "address: \"%s\" is no IPv4 address, such as " NOBODY, text);
    ret->names = NAMES_WRONG;
    ret->names_address = ntohl(address.s_addr);
    return 0;
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_dns_wrong = {
    .name = "net-dns-wrong",
    .summary = "a node is told a wrong address of each name that it asks for",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE | FAULT_NEEDS_NAMES,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(names_wrong),
    .params =
        (const struct fault_param[]){
            {"address", "string", NOBODY,
             "that it is told; n0 is 198.18.0.10, n1 198.18.0.11; the default is nobody's"},
            {"names", "nodes", "(all)",
             "nodes whose names it is about, as in n0,n1; the store is named store"},
            {0}},
    .undo = "the name server says the right addresses again; who keeps a wrong one keeps it",
    .blast = "who is connected stays so; who connects by a name reaches nobody, or somebody else",
    .example = "{when: {step: 20}, fault: net-dns-wrong, on: n2, with: {names: n0}, for: 2s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
