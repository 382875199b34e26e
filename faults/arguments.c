#include "faults/arguments.h"

#include "base/str.h"
#include "base/sys/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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
    return err_say(err, -EINVAL, "%s: \"%s\" is not a number from %lld to %lld", key, text,
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
        return err_say(err, -EINVAL,
                       "%s: \"%s\" must be longer than 0s and at most %llds, as in %s", key, text,
                       (long long)(max_ns / 1000000000), absent);
    *ret_ns = ns;
    return 0;
}

int fault_program_signal(const struct fault_args *a, int absent, const char *hang,
                         struct err *err) {
    int signo = fault_signal(a, absent, err);
    if (signo != SIGSTOP && signo != SIGTSTP && signo != SIGTTIN && signo != SIGTTOU)
        return signo;
    return err_say(err, -EINVAL, "signal: nothing would undo %s; %s stops it, and lets it go on",
                   signal_name(signo), hang);
}
