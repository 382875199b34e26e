#include "harness/observe/metric.h"

#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS_MAX = 32 };

/* A piece of the page, or of what is wanted. */
struct piece {
    const char *at;
    size_t n;
};

struct series {
    struct piece name;
    struct {
        struct piece name, value; /* value: between the quotes, escapes as they stand */
    } labels[LABELS_MAX];
    size_t labels_n;
    const char *rest; /* behind it */
};

static bool equal(struct piece a, struct piece b) {
    return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

static const char *skip_blanks(const char *s) {
    return s + strspn(s, " \t");
}

static struct piece take_name(const char **s) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";
    struct piece p = {*s, **s >= '0' && **s <= '9' ? 0 : strspn(*s, letters)};
    *s += p.n;
    return p;
}

/* "..." with \" \\ \n in it; at NULL: it has no end in this line. */
static struct piece take_quoted(const char **s) {
    const char *from = *s + 1, *at = from;
    if (**s != '"')
        return (struct piece){0};
    while (*at && *at != '"' && *at != '\n')
        at += at[0] == '\\' && at[1] && at[1] != '\n' ? 2 : 1;
    if (*at != '"')
        return (struct piece){0};
    *s = at + 1;
    return (struct piece){from, (size_t)(at - from)};
}

static bool take_labels(const char *s, struct series *ret) {
    for (s = skip_blanks(s + 1); *s != '}'; s = skip_blanks(s)) {
        struct piece name = take_name(&s), value;
        s = skip_blanks(s);
        if (!name.n || *s != '=' || ret->labels_n == LABELS_MAX)
            return false;
        s = skip_blanks(s + 1);
        value = take_quoted(&s);
        if (!value.at)
            return false;
        ret->labels[ret->labels_n].name = name;
        ret->labels[ret->labels_n++].value = value;
        s = skip_blanks(s);
        if (*s != ',' && *s != '}')
            return false;
        s += *s == ',';
    }
    ret->rest = s + 1;
    return true;
}

static bool take_series(const char *s, struct series *ret) {
    ret->labels_n = 0;
    s = skip_blanks(s);
    ret->name = take_name(&s);
    s = skip_blanks(s);
    ret->rest = s;
    return ret->name.n && (*s != '{' || take_labels(s, ret));
}

static bool is_meant(const struct series *s, const struct series *wanted) {
    if (!equal(s->name, wanted->name))
        return false;
    for (size_t i = 0; i < wanted->labels_n; i++) {
        bool has = false;
        for (size_t k = 0; k < s->labels_n && !has; k++)
            has = equal(s->labels[k].name, wanted->labels[i].name) &&
                  equal(s->labels[k].value, wanted->labels[i].value);
        if (!has)
            return false;
    }
    return true;
}

static int take_value(const char *rest, const char *wanted, char ret[64], struct err *err) {
    const char *s = skip_blanks(rest);
    size_t n = strcspn(s, " \t\r\n");
    char text[64], *end;
    if (n >= sizeof(text))
        n = sizeof(text) - 1;
    memcpy(text, s, n);
    text[n] = '\0';
    double v = strtod(text, &end);
    if (end == text || *end || isnan(v))
        return err_say(err, -EDOM, "%.100s is \"%s\", which is not a number", wanted, text);
    memcpy(ret, text, n + 1);
    return 0;
}

int metric_read(const char *page, const char *wanted, char ret[64], struct err *err) {
    struct series want, one;
    const char *found = NULL;
    size_t n = 0, of_name = 0;
    if (!take_series(wanted, &want) || *skip_blanks(want.rest))
        return err_say(err, -EINVAL, "\"%.200s\" is no metric, such as name{label=\"value\"}",
                       wanted);
    for (const char *line = page; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (*skip_blanks(line) == '#' || !take_series(line, &one))
            continue;
        of_name += equal(one.name, want.name);
        if (!is_meant(&one, &want))
            continue;
        n++;
        found = one.rest;
    }
    if (!n && of_name)
        return err_say(err, -ENOENT, "the page has %zu series of that name, and none is %.200s",
                       of_name, wanted);
    if (!n)
        return err_say(err, -ENOENT, "the page has no metric %.200s", wanted);
    if (n > 1)
        return err_say(err, -ENOTUNIQ, "%zu series of the page are %.200s; name more of its labels",
                       n, wanted);
    return take_value(found, wanted, ret, err);
}
