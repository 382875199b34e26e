#include "faults/process/crash_arguments.h"

#include "faults/arguments.h"
#include "faults/mechanism/crash.h"

#include <errno.h>

static int read_mib(const struct fault_args *a, int64_t *ret, struct err *err) {
    return fault_count(a, "core", "512", 0, 1 << 20, ret, err);
}

int crash_check(const struct fault_args *a, struct err *err) {
    int64_t mib;
    return read_mib(a, &mib, err);
}

const char *crash_keeps(const struct fault_args *a) {
    int64_t mib;
    return read_mib(a, &mib, NULL) == 0 && mib ? "core" : NULL;
}

int crash_inject(const struct target *t, const struct fault_args *a, int signo, struct err *err) {
    int64_t mib;
    int r = read_mib(a, &mib, err);
    if (r)
        return r;
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    r = crash(t->pid, signo, t->keep ? t->keep : -1, (uint64_t)mib << 20, err);
    return r ? err_wrap(err, "%s: ", t->name) : target_wait_end(t, err);
}
