#include "harness/cluster/abilities.h"

#include "base/sys/namespace.h"
#include "base/sys/owned_table.h"
#include "faults/mechanism/call_watch.h"
#include "faults/mechanism/socket_cut.h"
#include "faults/need.h"
#include "harness/cluster/limit_group.h"

static int can_trace(struct err *err) {
    return fault_needs_check(FAULT_NEEDS_TRACE, err);
}

static int can_limit_cpu(struct err *err) {
    return limit_group_check(NODE_LIMIT_CPU, err);
}

static int can_limit_memory(struct err *err) {
    return limit_group_check(NODE_LIMIT_MEMORY, err);
}

static int can_limit_pids(struct err *err) {
    return limit_group_check(NODE_LIMIT_PIDS, err);
}

static int (*const checks[HELLO_ABILITIES_N])(struct err *err) = {
    [HELLO_CAN_SILENT_SOCKETS] = socket_cut_check,
    [HELLO_CAN_OWNED_TABLES] = owned_table_check,
    [HELLO_CAN_TRACE] = can_trace,
    [HELLO_CAN_WATCHED_CALLS] = call_watch_check,
    [HELLO_CAN_CPU_LIMITS] = can_limit_cpu,
    [HELLO_CAN_MEMORY_LIMITS] = can_limit_memory,
    [HELLO_CAN_PIDS_LIMITS] = can_limit_pids,
    [HELLO_CAN_UPTIMES] = namespace_check_uptime_below,
};

void abilities_try(struct hello *h, struct json_writer *why_not) {
    struct err err;
    for (unsigned what = 0; what < HELLO_ABILITIES_N; what++) {
        if (!checks[what])
            continue;
        bool can = checks[what](&err) == 0;
        h->can = (h->can & ~(1u << what)) | (unsigned)can << what;
        if (!can)
            json_put_string(why_not, hello_abilities[what], err.msg);
    }
}
