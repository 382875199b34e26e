#include "faults/network/traffic.h"

#include "base/str.h"
#include "faults/mechanism/wire_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "store,data" as a set of planes; 0: a word that is none. */
static unsigned planes_of(const char *text) {
    static const struct {
        const char *name;
        unsigned planes;
    } words[] = {{"all", PLANE_ALL},
                 {"store", PLANE_STORE},
                 {"bootstrap", PLANE_BOOTSTRAP},
                 {"ssh", PLANE_SSH},
                 {"data", PLANE_DATA}};
    unsigned planes = 0;
    while (text) {
        size_t n = strcspn(text, ","), i = 0;
        while (i < 5 && (strlen(words[i].name) != n || strncmp(words[i].name, text, n) != 0))
            i++;
        if (i == 5)
            return 0;
        planes |= words[i].planes;
        text = text[n] ? text + n + 1 : NULL;
    }
    return planes;
}

int fault_planes(const struct fault_args *a, struct err *err) {
    const char *text = fault_arg(a, "planes", "all");
    unsigned planes = planes_of(text);
    if (!planes)
        return err_say(
            err, -EINVAL,
            "planes: \"%s\" is not a plane; write store, bootstrap, data, ssh or all, or "
            "several as in store,data",
            text);
    return (int)planes;
}

void fault_groups(const struct target *t, const struct fault_args *a, char *ret, size_t size) {
    const char *groups = fault_arg(a, "groups", NULL);
    snprintf(ret, size, groups ? "%s" : "%s|*", groups ? groups : t->name);
}

int fault_direction(const struct fault_args *a, struct err *err) {
    static const char *const words[] = {
        [DIRECTION_BOTH] = "both", [DIRECTION_FROM] = "from", [DIRECTION_TO] = "to"};
    const char *text = fault_arg(a, "direction", "both");
    for (int i = 0; i < 3; i++)
        if (str_eq(text, words[i]))
            return i;
    return err_say(err, -EINVAL, "direction: \"%s\" is none; write both, from or to", text);
}

/* ---- one argument ---- */

/* A number that is not negative, and the unit behind it; false: it does not begin with one. */
static bool read_number(const char *text, double *ret, const char **ret_unit) {
    char *end;
    size_t digits = strspn(text, "0123456789.");
    if (!digits || digits > 15)
        return false;
    *ret = strtod(text, &end);
    *ret_unit = end;
    return end == text + digits;
}

int fault_share(const struct fault_args *a, const char *key, const char *absent, int64_t *ret_ppm,
                struct err *err) {
    const char *text = fault_arg(a, key, absent), *unit;
    double percent;
    bool is_share = read_number(text, &percent, &unit) && str_eq(unit, "%") && percent <= 100;
    int64_t ppm = is_share ? (int64_t)(percent * 10000 + 0.5) : 0;
    if (ppm <= 0)
        return err_say(err, -EINVAL,
                       "%s: \"%s\" is not a share; write one of up to 100%%, as in 1%%", key, text);
    *ret_ppm = ppm;
    return 0;
}

int fault_rate(const struct fault_args *a, const char *key, const char *absent, int64_t *ret_bit_s,
               struct err *err) {
    static const struct {
        const char *unit;
        double bit_s;
    } units[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
    const char *text = fault_arg(a, key, absent), *unit;
    double number, rate = 0;
    for (size_t i = 0; i < 3 && read_number(text, &number, &unit); i++)
        rate = str_eq(unit, units[i].unit) ? number * units[i].bit_s : rate;
    if (rate < 8e3 || rate > 100e9)
        return err_say(err, -EINVAL,
                       "%s: \"%s\" is not a rate; write one of 8kbit to 100gbit, as in 10mbit", key,
                       text);
    *ret_bit_s = (int64_t)rate;
    return 0;
}

int fault_count(const struct fault_args *a, const char *key, const char *absent, int64_t min,
                int64_t max, int64_t *ret, struct err *err) {
    const char *text = fault_arg(a, key, absent);
    if (str_to_i64(text, min, max, ret))
        return 0;
    return err_say(err, -EINVAL, "%s: %s is not a number from %lld to %lld", key, text,
                   (long long)min, (long long)max);
}

int fault_duration(const struct fault_args *a, const char *key, const char *absent, int64_t max_ns,
                   int64_t *ret_ns, struct err *err) {
    const char *text = fault_arg(a, key, absent);
    int64_t ns;
    int r = str_to_duration_ns(text, &ns, err);
    if (r)
        return r;
    if (ns <= 0 || ns > max_ns)
        return err_say(err, -EINVAL, "%s: %s is none; write one of up to %llds, as in %s", key,
                       text, (long long)(max_ns / 1000000000), absent);
    *ret_ns = ns;
    return 0;
}

/* ---- an impairment ---- */

int fault_impairment(const struct fault_args *a, fault_impairment_fn *read, struct impairment *ret,
                     struct err *err) {
    struct impairment how = {.seed = a ? (int64_t)a->seed : 0};
    int planes = fault_planes(a, err), direction = planes < 0 ? planes : fault_direction(a, err);
    int r = direction < 0 ? direction : read(a, &how, err);
    if (r)
        return r;
    how.planes = planes;
    how.direction = direction;
    *ret = how;
    return 0;
}

int fault_impair(const struct target *t, const struct fault_args *a, fault_impairment_fn *read,
                 bool on, struct err *err) {
    char groups[FAULT_GROUPS_MAX];
    struct impairment how;
    int r = fault_impairment(a, read, &how, err);
    if (r)
        return r;
    fault_groups(t, a, groups, sizeof(groups));
    return t->ops->impair(t->node, groups, &how, on, err);
}
