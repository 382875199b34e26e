#include "tests/harness/judge/checks/alterations.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MUCH_NS = 100000000000;

/* ---- what a line says ---- */

/* Where its own fields begin: without its kind and its source it would be no record. */
static const char *fields_of(const char *line) {
    return strstr(line, "\"kind\":\"") + strlen("\"kind\":\"");
}

/* Up to the bracket that closes the first one. */
static size_t nested_len(const char *value) {
    size_t depth = 0, i = 0;
    do {
        depth += value[i] == '[' || value[i] == '{';
        depth -= value[i] == ']' || value[i] == '}';
    } while (value[i++] && depth);
    return i;
}

static size_t value_len(const char *value) {
    if (*value == '[' || *value == '{')
        return nested_len(value);
    return *value == '"' ? strcspn(value + 1, "\"") + 2 : strcspn(value, ",]}");
}

/* Digits of a hash, or of a name such as 3f3f, are no number. */
static bool is_number(const char *line, size_t at, size_t len) {
    return len < 16 && !isalnum((unsigned char)line[at + len]) &&
           (strchr(":,[\" -.n", line[at - 1]) != NULL);
}

const char *alterations_number(const char *line, const char *from, size_t *ret_len) {
    size_t i = from == line ? strcspn(line, ",") : (size_t)(from - line);
    for (size_t len; line[i]; i += len ? len : 1) {
        len = strspn(line + i, "0123456789");
        if (len && is_number(line, i, len)) {
            *ret_len = len;
            return line + i;
        }
    }
    return NULL;
}

static const char *time_at(const char *line) {
    return strstr(line, "\"t\":") + strlen("\"t\":");
}

/* ---- another one ---- */

static void take(const struct alterations *a, const char *what, const char *line, const char *at,
                 size_t len, const char *text) {
    a->take(a->arg, what,
            arena_printf(a->arena, "%.*s%s%s", (int)(at - line), line, text, at + len));
}

static void take_number(const struct alterations *a, const char *what, const char *line,
                        const char *at, size_t len, long long number) {
    take(a, what, line, at, len, arena_printf(a->arena, "%lld", number));
}

static void change_numbers(const struct alterations *a, const char *line) {
    size_t len = 0;
    for (const char *at = line; (at = alterations_number(line, at + len, &len));) {
        long long n = atoll(at);
        take_number(a, "more", line, at, len, n + 1);
        if (at[-1] != '-')
            take_number(a, "less", line, at, len, n - 1);
    }
}

/* Each word behind that, up to the same quotation mark again. */
static void change_words(const struct alterations *a, const char *line, const char *before,
                         char quote) {
    for (const char *at = fields_of(line); (at = strstr(at, before)); at++) {
        const char *word = at + strlen(before), *end = strchr(word, quote);
        if (end > word)
            take(a, "word", line, end, 0, "x");
    }
}

/* What another line has behind that key, the nearest below first; NULL: none has anything else. */
static const char *other_value(const struct alterations *a, size_t line, const char *key,
                               const char *value) {
    for (size_t k = 1; k < a->n; k++) {
        const char *other = strstr(a->lines[(line + k) % a->n], key);
        other = other ? other + strlen(key) : NULL;
        if (other && value_len(other) &&
            (value_len(other) != value_len(value) || strncmp(other, value, value_len(value)) != 0))
            return arena_strndup(a->arena, other, value_len(other));
    }
    return NULL;
}

/* With the comma before it, or where it comes first with the one behind it. */
static void leave_out(const struct alterations *a, const char *line, const char *key,
                      const char *end) {
    bool first = key[-1] != ',';
    if (!first || *end == ',')
        take(a, "lacks", line, first ? key : key - 1, (size_t)(end - key) + 1, "");
}

static void exchange_values(const struct alterations *a, size_t at) {
    const char *line = a->lines[at];
    for (const char *colon = fields_of(line); (colon = strstr(colon, "\":")); colon++) {
        const char *key = colon, *value = colon + 2, *other;
        while (key > line && key[-1] != '"')
            key--;
        key--;
        leave_out(a, line, key, value + value_len(value));
        other = other_value(a, at, arena_strndup(a->arena, key, (size_t)(value - key)), value);
        if (other)
            take(a, "other", line, value, value_len(value), other);
    }
}

/* The nearest other that tells anything: what one source proves another may only claim. */
static void change_source(const struct alterations *a, size_t at) {
    static const char key[] = "\"source\":";
    const char *line = a->lines[at], *source = strstr(line, key);
    const char *value = source ? source + strlen(key) : NULL;
    const char *other = value ? other_value(a, at, key, value) : NULL;
    if (other)
        take(a, "source", line, value, value_len(value), other);
}

/* What is compared there is equal. */
static void change_time(const struct alterations *a, size_t at, size_t neighbours) {
    const char *line = a->lines[at], *t = time_at(line);
    take_number(a, "early", line, t, strspn(t, "0123456789"), 1);
    take_number(a, "late", line, t, strspn(t, "0123456789"), atoll(t) + MUCH_NS);
    for (size_t k = at < neighbours ? 0 : at - neighbours; k <= at + neighbours && k < a->n; k++)
        if (atoll(time_at(a->lines[k])) != atoll(t))
            take_number(a, "then", line, t, strspn(t, "0123456789"), atoll(time_at(a->lines[k])));
}

void alterations_of(const struct alterations *a, size_t line, size_t neighbours) {
    const char *is = a->lines[line];
    if (line > 0)
        a->take(a->arg, "without", NULL);
    a->take(a->arg, "twice", arena_printf(a->arena, "%s\n%s", is, is));
    change_numbers(a, is);
    change_words(a, is, "\":\"", '"');
    change_words(a, is, "\\\":\\\"", '\\'); /* an answer that stands in it as a text */
    exchange_values(a, line);
    change_source(a, line);
    change_time(a, line, neighbours);
}

/* ---- drawn ---- */

/* Each of a line as likely as any other. NULL: it has none. */
static const char *draw_number(const char *line, struct rand *r, size_t *ret_len) {
    const char *drawn = NULL;
    uint64_t seen = 0;
    size_t len = 0;
    for (const char *at = line; (at = alterations_number(line, at + len, &len));)
        if (rand_below(r, ++seen) == 0) {
            drawn = at;
            *ret_len = len;
        }
    return drawn;
}

const char *alterations_wild(const struct alterations *a, size_t at, struct rand *r) {
    const char *line = a->lines[at], *other = a->lines[rand_below(r, a->n)];
    size_t len = 0, other_len = 0;
    const char *number = draw_number(line, r, &len), *instead = draw_number(other, r, &other_len);
    int64_t n = number ? atoll(number) : 0;
    const int64_t values[] = {0,     -1,        1,     2,
                              5,     n * 10,    n / 2, n + MUCH_NS,
                              n / 9, INT64_MAX, -n,    instead ? atoll(instead) : 3};
    n = values[rand_below(r, sizeof(values) / sizeof(*values))];
    bool has_sign = number && number[-1] == '-';
    return number ? arena_printf(a->arena, "%.*s%" PRId64 "%s", (int)(number - has_sign - line),
                                 line, n, number + len)
                  : NULL;
}
