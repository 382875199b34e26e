/* part_rules: a host's half of a partition as rules of a packet filter. Pure. */
#pragma once

#include "base/sys/owned_table.h"
#include "harness/host/part_order.h"

/* The caller's, to free; addresses are the order's. Each peer has rules that drop, and rules behind
 * them which count what has come through all the same. */
struct owned_rule *part_rules_make(const struct part_order *o, size_t *ret_n);

/* What the tag of a rule says: of which peer its packets are, and whether they have come through. */
size_t part_rules_peer(uint32_t tag);
/* On their way to the peer; else from it. */
bool part_rules_is_said(uint32_t tag);
bool part_rules_is_passed(uint32_t tag);
