#include "faults/mechanism/disk_rules.h"

#include "base/str.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    unsigned does;
} words_of[] = {
    {"open", DISK_DOES_READ_OPEN | DISK_DOES_OPEN},
    {"read", DISK_DOES_READ},
    {"write", DISK_DOES_WRITE},
    {"fsync", DISK_DOES_SYNC},
    {"rename", DISK_DOES_RENAME},
    {"unlink", DISK_DOES_UNLINK},
    {"mkdir", DISK_DOES_MKDIR},
    {"truncate", DISK_DOES_TRUNCATE},
    {"change", DISK_DOES_CHANGE},
    {"any", DISK_DOES_ALL},
};
enum { WORDS = sizeof(words_of) / sizeof(*words_of) };

static unsigned does_of(const char *word, size_t n) {
    for (size_t i = 0; i < WORDS; i++)
        if (strlen(words_of[i].word) == n && strncmp(words_of[i].word, word, n) == 0)
            return words_of[i].does;
    return 0;
}

int disk_does_read(const char *words, unsigned *ret, struct err *err) {
    unsigned all = 0;
    for (const char *p = words; p; p = *p ? p + 1 : NULL) {
        size_t n = strcspn(p, "/");
        unsigned one = does_of(p, n);
        if (!one)
            return err_say(
                err, -EINVAL,
                "\"%.100s\" is no kind of operation; write some of open, read, write, "
                "fsync, rename, unlink, mkdir, truncate, as in write/fsync, or change or "
                "any",
                words);
        all |= one;
        p += n;
    }
    *ret = all;
    return 0;
}

bool disk_rule_same(const struct disk_rule *a, const struct disk_rule *b) {
    return a->does == b->does && str_eq(a->pattern, b->pattern) && str_eq(a->root, b->root) &&
           a->nth == b->nth && a->times == b->times && a->error == b->error &&
           a->delay_ns == b->delay_ns && a->stuck == b->stuck && a->room == b->room;
}

/* ---- which ---- */

static bool is_like(const char *path, const char *pattern) {
    size_t n = strlen(pattern);
    char deep[DISK_PATTERN_MAX];
    if (n < 2 || !str_eq(pattern + n - 2, "**"))
        return fnmatch(pattern, path, FNM_PATHNAME) == 0;
    if (n == 2)
        return true;
    snprintf(deep, sizeof(deep), "%.*s", (int)(n - 1), pattern);
    return fnmatch(deep, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0;
}

static bool is_below(const struct disk_rule *r, const char *path) {
    size_t n = strlen(r->root);
    return strncmp(path, r->root, n) == 0 && path[n] == '/' && is_like(path + n + 1, r->pattern);
}

/* Behind the room that there is only a write that wants more fails. */
static bool has_room(struct disk_rule_state *s, const struct disk_request *q) {
    if (s->rule.room < 0)
        return false;
    if (q->does == DISK_DOES_WRITE && q->bytes > s->rule.room - s->used)
        return false;
    s->used += q->does == DISK_DOES_WRITE ? q->bytes : 0;
    return true;
}

static bool strikes(struct disk_rule_state *s, const struct disk_request *q) {
    const struct disk_rule *r = &s->rule;
    bool meant = is_below(r, q->path) || (*q->to && is_below(r, q->to));
    if (!(r->does & q->does) || !meant || has_room(s, q))
        return false;
    bool due = ++s->matched >= r->nth && (!r->times || s->done < r->times);
    s->done += due;
    return due;
}

enum disk_verdict disk_rules_decide(struct disk_rule_state *rules, size_t n,
                                    const struct disk_request *q,
                                    const struct disk_rule **ret_rule) {
    for (size_t i = 0; i < n; i++)
        if (strikes(&rules[i], q)) {
            *ret_rule = &rules[i].rule;
            return rules[i].rule.stuck      ? DISK_STICKS
                   : rules[i].rule.delay_ns ? DISK_WAITS
                                            : DISK_FAILS;
        }
    return DISK_PASSES;
}
