#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool str_eq(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool str_starts(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix) {
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

bool str_in(const char *s, const char *const *names) {
    while (*names && !str_eq(*names, s))
        names++;
    return *names;
}

const char *str_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

bool str_to_i64(const char *s, int64_t min, int64_t max, int64_t *ret) {
    if (!s || !*s || strchr(" \t\n+", *s))
        return false;
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || *end || v < min || v > max)
        return false;
    *ret = v;
    return true;
}

static int64_t unit_ns(const char *unit) {
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (str_eq(unit, units[i].name))
            return units[i].ns;
    return 0;
}

int str_to_duration_ns(const char *s, int64_t *ret_ns, struct err *err) {
    char *end = NULL;
    double v = s && *s >= '0' && *s <= '9' ? strtod(s, &end) : -1;
    int64_t unit = end ? unit_ns(end) : 0;
    double most = unit && unit < 1000000000 ? 1e15 / (double)unit : 1e6; /* a million of seconds */
    if (v < 0 || !unit || v > most)
        return err_say(err, -EINVAL, "\"%s\" is not a duration; write 250ms, 2s, 5m or 1h",
                       s ? s : "");
    *ret_ns = (int64_t)(v * (double)unit + 0.5);
    return 0;
}

bool str_copy(char *dst, size_t size, const char *src) {
    size_t n = strlen(src);
    size_t m = n < size ? n : size - 1;
    memcpy(dst, src, m);
    dst[m] = '\0';
    return n < size;
}

char **str_split(struct arena *a, const char *s, char sep, size_t *ret_n) {
    size_t n = 1;
    for (const char *p = s; *p; p++)
        n += *p == sep;
    char **v = arena_array(a, char *, n + 1);
    size_t i = 0;
    for (const char *p = s;; p++) {
        const char *end = strchr(p, sep);
        if (!end)
            end = p + strlen(p);
        v[i++] = arena_strndup(a, p, (size_t)(end - p));
        if (!*end)
            break;
        p = end;
    }
    if (ret_n)
        *ret_n = n;
    return v;
}

enum { WORD_MAX = 40 };

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

/* How many letters were put in, left out, mistaken or swapped with their neighbour; longer words
 * never match. */
static size_t distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b), d[WORD_MAX + 1][WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = least_of(best, least_of(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least_of(best, d[i - 2][j - 2] + 1);
            d[i][j] = best;
        }
    return d[n][m];
}

const char *str_nearest(const char *s, const char *const *names) {
    const char *best = NULL;
    size_t n = strlen(s), least = (n < 5 ? 1 : n < 9 ? 2 : n / 3) + 1; /* one in a short word */
    for (; *names; names++) {
        size_t d = distance(s, *names);
        if (d < least) {
            least = d;
            best = *names;
        }
    }
    return best;
}
