#include "faults/disk/operations.h"

#include "base/str.h"
#include "faults/arguments.h"
#include "faults/disk/stored.h"

#include <errno.h>
#include <string.h>

int operations_read(const struct fault_args *a, const char *absent, struct disk_rule *ret,
                    enum node_place *ret_place, struct err *err) {
    struct disk_rule rule = {.room = -1};
    const char *pattern, *path = fault_arg(a, "path", OPERATIONS_PATH);
    int r = stored_read("path", path, ret_place, &pattern, err);
    if (r == 0 && !str_copy(rule.pattern, sizeof(rule.pattern), pattern))
        r = err_say(err, -EINVAL, "path: %.40s is too long", path);
    if (r == 0 && (r = disk_does_read(fault_arg(a, "op", absent), &rule.does, err)) != 0)
        err_wrap(err, "op: ");
    r = r ? r : fault_count(a, "nth", "1", 1, INT64_MAX, &rule.nth, err);
    r = r ? r : fault_count(a, "times", "0", 0, INT64_MAX, &rule.times, err);
    if (r == 0)
        *ret = rule;
    return r;
}

int operations_error(const struct fault_args *a, const char *absent, int *ret, struct err *err) {
    int r = disk_error_read(fault_arg(a, "error", absent), ret, err);
    return r ? err_wrap(err, "error: "), r : 0;
}
