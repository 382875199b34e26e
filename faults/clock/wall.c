#include "faults/clock/wall.h"

#include "base/str.h"
#include "base/sys/clock.h"

#include <errno.h>

static const int64_t by_max_ns = INT64_C(3650) * 86400 * 1000000000;

int wall_by(const struct fault_args *a, const char *absent, int64_t *ret_ns, struct err *err) {
    const char *text = fault_arg(a, "by", absent);
    bool behind = *text == '-', sign = behind || *text == '+';
    int64_t ns;
    if (str_to_duration_ns(text + sign, &ns, NULL) != 0 || ns <= 0 || ns > by_max_ns)
        return err_say(err, -EINVAL,
                       "by: \"%s\" is none; write how far the clock is ahead, as in +5m or -1h, at "
                       "most ten years",
                       text);
    *ret_ns = behind ? -ns : ns;
    return 0;
}

int wall_shift(const struct target *t, const struct fault_args *a, wall_shift_fn *read,
               struct err *err) {
    struct clock_shift shift = {0};
    int r = read(a, &shift, err);
    if (r)
        return r;
    shift.since_ns = clock_realtime_ns();
    return t->ops->shift_clock(t->node, &shift, err);
}

int wall_recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return t->ops->shift_clock(t->node, NULL, err);
}
