/* fault_order: an order to do a fault to a node, or to undo it, as a helper gets it. */
#pragma once

#include "base/json.h"
#include "faults/fault.h"
#include "harness/carrier/channel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/* args: the members of its arguments. The caller's, for message_fini. */
static inline struct message fault_order(const char *fault, const char *args, bool recover) {
    struct message m = {.fds = {-1, -1, -1, -1}};
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "{\"fault\":\"%s\",\"kind\":%d,\"name\":\"n1\",\"recover\":%s,\"args\":{%s}}",
                     fault, TARGET_NODE, recover ? "true" : "false", args);
    m.json = json_parse(&m.arena, text, (size_t)n, NULL);
    assert_non_null(m.json);
    return m;
}
