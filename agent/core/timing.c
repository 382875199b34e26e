#include "agent/core/timing.h"

#include "base/str.h"

#include <errno.h>

#define MS 1000000LL

bool timing_profile(const char *name, struct timing *ret) {
    static const struct timing normal = {500 * MS, 5400 * MS, 5700 * MS, 6000 * MS};
    static const struct timing fast = {150 * MS, 600 * MS, 680 * MS, 800 * MS};
    if (str_eq(name, "default"))
        *ret = normal;
    else if (str_eq(name, "fast"))
        *ret = fast;
    else
        return false;
    return true;
}

void timing_stretch(struct timing *t, int max_nodes, enum timing_store store) {
    int64_t per_second = store == TIMING_ETCD ? 500 : 2000;
    int64_t least_ns = max_nodes * 1000 * MS / per_second;
    if (t->hb_ns <= 0 || least_ns <= t->hb_ns)
        return;
    double factor = (double)least_ns / (double)t->hb_ns;
    t->hb_ns = least_ns;
    t->fence_ns = (int64_t)((double)t->fence_ns * factor);
    t->hard_ns = (int64_t)((double)t->hard_ns * factor);
    t->suspect_ns = (int64_t)((double)t->suspect_ns * factor);
}

/* The rules by the numbers they have in the protocol. rto = hb; clocks run within 1 %. */
int timing_check(const struct timing *t, struct err *err) {
    long long hb = t->hb_ns / MS, fence = t->fence_ns / MS, hard = t->hard_ns / MS,
              suspect = t->suspect_ns / MS;
    if (t->hb_ns < MS)
        return err_say(err, -EINVAL, "hb is %lld ms; it must be at least 1 ms", hb);
    if (t->fence_ns < 3 * t->hb_ns)
        return err_say(err, -EINVAL,
                       "fence (%lld ms) must be at least 3 x hb (%lld ms): one beat may be lost",
                       fence, hb);
    if (t->hard_ns < t->fence_ns + 50 * MS)
        return err_say(err, -EINVAL, "hard (%lld ms) must be at least fence (%lld ms) + 50 ms",
                       hard, fence);
    if ((t->hard_ns + TIMING_KILL_NS) * 101 > t->suspect_ns * 99)
        return err_say(err, -EINVAL,
                       "hard (%lld ms) + 100 ms must be at most 0.98 x suspect (%lld ms): clocks "
                       "may differ by 1 %%, and a node must be dead before it is given up",
                       hard, suspect);
    return 0;
}
