#include "harness/cluster/sighting.h"

#include "base/sys/clock.h"

struct sighting sighting_now(const struct loop *l) {
    return (struct sighting){clock_monotonic_ns(), loop_late_ns(l)};
}

struct json_writer sighting_say(const struct sighting *s, struct buf *text, const char *op) {
    struct json_writer w = {.out = text};
    json_object(&w, NULL);
    json_put_string(&w, "op", op);
    json_put_i64(&w, "t", s->t_ns);
    if (s->late_ns)
        json_put_i64(&w, "late", s->late_ns);
    return w;
}
