#include "faults/node/power.h"

#include "base/str.h"

#include <errno.h>

/* The order matters. Killed before it is silent, the node is still heard: the kernel sends a
 * FIN for every socket. And sockets whose owners died in silence would repeat their last words for
 * minutes and keep the node's network alive: they are destroyed. */
int power_off(const struct target *t, bool silent, struct err *err) {
    int r = silent && t->ops->cut_power ? t->ops->cut_power(t->node, err) : -ENOTSUP;
    if (r != -ENOTSUP)
        return r;
    r = silent ? t->ops->silence(t->node, true, err) : 0;
    r = r ? r : t->ops->kill(t->node, err);
    r = r ? r : target_wait_end(t, err);
    return r || !silent ? r : t->ops->destroy_sockets(t->node, err);
}

int power_on(const struct target *t, bool fresh_disk, struct err *err) {
    int r = t->ops->start(t->node, fresh_disk, err);
    return r == -EBUSY ? 0 : r;
}

int power_check(const struct fault_args *a, struct err *err) {
    const char *disk = fault_arg(a, "disk", "kept");
    const char *silent = fault_arg(a, "silent", "false");
    if (!str_eq(disk, "kept") && !str_eq(disk, "fresh"))
        return err_say(err, -EINVAL, "disk: %s is neither kept nor fresh", disk);
    if (!str_eq(silent, "true") && !str_eq(silent, "false"))
        return err_say(err, -EINVAL, "silent: %s is neither true nor false", silent);
    return 0;
}

bool power_is_silent(const struct fault_args *a) {
    return str_eq(fault_arg(a, "silent", "false"), "true");
}

bool power_wants_fresh_disk(const struct fault_args *a) {
    return str_eq(fault_arg(a, "disk", "kept"), "fresh");
}

void power_course(const struct fault_args *a, struct fault_course *ret) {
    if (!power_is_silent(a))
        return;
    ret->effects = (ret->effects & ~(unsigned)EFFECT_LOUD) | EFFECT_SILENT | EFFECT_SILENCES_NODE;
    ret->needs |= FAULT_NEEDS_SILENCE;
    ret->evidence |= EVIDENCE(frames_dropped);
}
