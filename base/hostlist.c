#include "base/hostlist.h"

#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS_MAX = 9 };

/* One word under way: what stands before the place that is looked at is chosen already. */
struct unfolding {
    const char *text; /* for messages */
    int len;
    struct arena *arena;
    struct hostlist *list;
    size_t room; /* for names, but for the NULL */
    char name[HOSTLIST_NAME_MAX + 1];
};

static int wrong(const struct unfolding *w, const char *what, struct err *err) {
    return err_say(err, -EINVAL, "%.*s: %s", w->len > 200 ? 200 : w->len, w->text, what);
}

static int add(struct unfolding *w, size_t n, struct err *err) {
    if (n == 0)
        return wrong(w, "a name of a host is missing", err);
    if (w->list->n == HOSTLIST_MAX)
        return err_say(err, -EINVAL, "more than %d hosts", HOSTLIST_MAX);
    if (w->list->n == w->room) {
        const char **more = arena_array(w->arena, const char *, 2 * w->room + 2);
        if (w->room > 0)
            memcpy(more, w->list->names, w->room * sizeof(*more));
        w->list->names = more;
        w->room = 2 * w->room + 1;
    }
    w->list->names[w->list->n++] = arena_strndup(w->arena, w->name, n);
    return 0;
}

static int expand_rest(struct unfolding *w, const char *at, const char *end, size_t n,
                       struct err *err);

/* A number of digits and no more; NULL: none is there, or it is too long. */
static const char *take_number(const char *at, const char *end, int64_t *ret, int *ret_width) {
    const char *from = at;
    for (*ret = 0; at < end && isdigit((unsigned char)*at); at++)
        if (at - from < DIGITS_MAX)
            *ret = *ret * 10 + (*at - '0');
    *ret_width = (int)(at - from);
    return at == from || at - from > DIGITS_MAX ? NULL : at;
}

/* "3" or "007-12", from at to end. */
static int take_range(const struct unfolding *w, const char *at, const char *end,
                      int64_t *ret_first, int64_t *ret_last, int *ret_width, struct err *err) {
    int ignored;
    at = take_number(at, end, ret_first, ret_width);
    *ret_last = *ret_first;
    if (at && at < end && *at == '-')
        at = take_number(at + 1, end, ret_last, &ignored);
    if (!at || at != end)
        return wrong(w, "brackets hold numbers and ranges, as [1-3,7]", err);
    if (*ret_last < *ret_first)
        return wrong(w, "a range begins with its smaller number", err);
    return *ret_last - *ret_first < HOSTLIST_MAX ? 0 : wrong(w, "a range is too long", err);
}

static int expand_brackets(struct unfolding *w, const char *at, const char *end, size_t n,
                           struct err *err) {
    const char *close = memchr(at, ']', (size_t)(end - at));
    if (!close)
        return wrong(w, "a bracket is not closed", err);
    for (const char *next; at <= close; at = next + 1) {
        int64_t first, last;
        int width;
        next = memchr(at, ',', (size_t)(close - at));
        next = next ? next : close;
        int code = take_range(w, at, next, &first, &last, &width, err);
        for (int64_t i = first; i <= last && !code; i++) {
            int digits = snprintf(w->name + n, sizeof(w->name) - n, "%0*" PRId64, width, i);
            if (n + (size_t)digits > HOSTLIST_NAME_MAX)
                return wrong(w, "a name is too long", err);
            code = expand_rest(w, close + 1, end, n + (size_t)digits, err);
        }
        if (code)
            return code;
    }
    return 0;
}

/* n characters of the name are there; what is between at and end comes behind them. */
static int expand_rest(struct unfolding *w, const char *at, const char *end, size_t n,
                       struct err *err) {
    for (; at < end && *at != '['; at++) {
        if (*at == ']' || isspace((unsigned char)*at) || iscntrl((unsigned char)*at))
            return wrong(w,
                         *at == ']' ? "a bracket is closed that was not opened"
                                    : "a name of a host holds no blanks",
                         err);
        if (n == HOSTLIST_NAME_MAX)
            return wrong(w, "a name is too long", err);
        w->name[n++] = *at;
    }
    return at < end ? expand_brackets(w, at + 1, end, n, err) : add(w, n, err);
}

/* Where the word ends that begins at s: at a comma that stands in no brackets. */
static const char *word_end(const char *s) {
    for (bool inside = false; *s && (inside || *s != ','); s++)
        inside = *s == '[' || (inside && *s != ']');
    return s;
}

int hostlist_expand(const char *text, struct arena *a, struct hostlist *ret, struct err *err) {
    struct hostlist list = {0};
    struct unfolding w = {.arena = a, .list = &list};
    for (const char *at = text, *end;; at = end + 1) {
        end = word_end(at);
        w.text = at;
        w.len = (int)(end - at);
        int code = expand_rest(&w, at, end, 0, err);
        if (code)
            return code;
        if (!*end)
            break;
    }
    *ret = list;
    return 0;
}
