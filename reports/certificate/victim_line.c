#include "reports/certificate/victim_line.h"

static double seconds(const struct json *j, const char *key) {
    return (double)json_get_i64(j, key, 0) / 1e6;
}

bool victim_is_well(const struct json *victim) {
    return json_get_i64(victim, "passed", 0) == json_get_i64(victim, "runs", -1) &&
           !json_first(json_get(victim, "slower"));
}

void victim_put_times(const struct json *victim, struct buf *out) {
    if (json_get_i64(victim, "recover_us", -1) < 0)
        return;
    buf_printf(out, "%.2f s", seconds(victim, "recover_us"));
    if (json_get_i64(victim, "recover_least_us", -1) != json_get_i64(victim, "recover_most_us", -1))
        buf_printf(out, " (%.2f to %.2f s)", seconds(victim, "recover_least_us"),
                   seconds(victim, "recover_most_us"));
}

void victim_line(const struct json *victim, struct buf *out) {
    int64_t runs = json_get_i64(victim, "runs", 0);
    buf_printf(out, "%lld of %lld run%s passed", (long long)json_get_i64(victim, "passed", 0),
               (long long)runs, runs == 1 ? "" : "s");
    if (json_get_i64(victim, "recover_us", -1) >= 0)
        buf_puts(out, ", recovered in ");
    victim_put_times(victim, out);
    json_each(s, json_get(victim, "slower"))
        buf_printf(out, "; slower in %s: %.2f s, its peers %.2f s", json_get_string(s, "name", "?"),
                   seconds(s, "recover_us"), seconds(s, "peers_us"));
}
