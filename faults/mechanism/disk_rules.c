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
    {"attributes", DISK_DOES_ATTRIBUTES},
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
                "fsync, rename, unlink, mkdir, truncate, attributes, as in write/fsync, or "
                "change or any",
                words);
        all |= one;
        p += n;
    }
    *ret = all;
    return 0;
}

const char *disk_does_text(unsigned does) {
    if (does == DISK_DOES_LOOK)
        return "look";
    for (size_t i = 0; i < WORDS; i++)
        if (words_of[i].does & does)
            return words_of[i].word;
    return "";
}

static const struct {
    const char *name;
    int code;
} errors[] = {
    {"EIO", EIO},     {"ENOSPC", ENOSPC},     {"EDQUOT", EDQUOT},       {"ESTALE", ESTALE},
    {"EROFS", EROFS}, {"ENOTCONN", ENOTCONN}, {"ETIMEDOUT", ETIMEDOUT}, {"EACCES", EACCES}};
enum { ERRORS = sizeof(errors) / sizeof(*errors) };

int disk_error_read(const char *name, int *ret, struct err *err) {
    for (size_t i = 0; i < ERRORS; i++)
        if (str_eq(errors[i].name, name)) {
            *ret = errors[i].code;
            return 0;
        }
    return err_say(err, -EINVAL,
                   "%.40s is none of EIO, ENOSPC, EDQUOT, ESTALE, EROFS, ENOTCONN, ETIMEDOUT, "
                   "EACCES",
                   name);
}

const char *disk_error_name(int code) {
    for (size_t i = 0; i < ERRORS; i++)
        if (errors[i].code == code)
            return errors[i].name;
    return NULL;
}

const char *const disk_verdict_names[DISK_VERDICTS_N] = {"passed", "failed",    "slowed",
                                                         "stuck",  "shortened", "late"};

bool disk_rule_same(const struct disk_rule *a, const struct disk_rule *b) {
    return a->does == b->does && str_eq(a->pattern, b->pattern) && str_eq(a->root, b->root) &&
           a->nth == b->nth && a->times == b->times && a->error == b->error &&
           a->delay_ns == b->delay_ns && a->stuck == b->stuck && a->room == b->room &&
           a->at_most == b->at_most && a->late_ns == b->late_ns && a->late_opens == b->late_opens;
}

/* ---- as a message ---- */

void disk_rule_put(const struct disk_rule *r, struct json_writer *w) {
    json_put_i64(w, "does", r->does);
    json_put_string(w, "pattern", r->pattern);
    json_put_i64(w, "nth", r->nth);
    json_put_i64(w, "times", r->times);
    json_put_i64(w, "errno", r->error);
    json_put_i64(w, "delay_ns", r->delay_ns);
    json_put_bool(w, "stuck", r->stuck);
    json_put_i64(w, "room", r->room);
    json_put_i64(w, "at_most", r->at_most);
    json_put_i64(w, "late_ns", r->late_ns);
    json_put_bool(w, "late_opens", r->late_opens);
    json_put_i64(w, "id", r->id);
}

/* Its root is none of the message: whoever has the disk knows it. */
void disk_rule_take(const struct json *m, struct disk_rule *ret) {
    *ret = (struct disk_rule){
        .does = (unsigned)json_get_i64(m, "does", 0),
        .nth = json_get_i64(m, "nth", 1),
        .times = json_get_i64(m, "times", 0),
        .error = (int)json_get_i64(m, "errno", 0),
        .delay_ns = json_get_i64(m, "delay_ns", 0),
        .stuck = json_get_bool(m, "stuck", false),
        .room = json_get_i64(m, "room", -1),
        .at_most = json_get_i64(m, "at_most", 0),
        .late_ns = json_get_i64(m, "late_ns", 0),
        .late_opens = json_get_bool(m, "late_opens", false),
        .id = json_get_i64(m, "id", 0),
    };
    str_copy(ret->pattern, sizeof(ret->pattern), json_get_string(m, "pattern", ""));
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

static bool is_meant_below(const char *root, const struct disk_rule *r, const char *path) {
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && path[n] == '/' && is_like(path + n + 1, r->pattern);
}

bool disk_rule_means(const struct disk_rule *r, const char *path) {
    return is_meant_below(r->root, r, path) || (*r->real && is_meant_below(r->real, r, path));
}

/* Of a rule that leaves some: behind it only what wants more fails. */
static bool has_room(struct disk_rule_state *s, const struct disk_request *q) {
    if (q->grows > s->rule.room - s->used)
        return false;
    s->used += q->grows;
    return true;
}

static bool strikes(struct disk_rule_state *s, const struct disk_request *q) {
    const struct disk_rule *r = &s->rule;
    bool meant = disk_rule_means(r, q->path) || (*q->to && disk_rule_means(r, q->to));
    if (!(r->does & q->does) || !meant || (r->room >= 0 && has_room(s, q)) ||
        (r->at_most && (!q->divisible || q->bytes <= r->at_most)))
        return false;
    bool due = ++s->matched >= r->nth && (!r->times || s->done < r->times);
    s->done += due;
    return due;
}

/* What still fits, and what is written over, is written first. */
static int64_t part_of(struct disk_rule_state *s, const struct disk_request *q) {
    int64_t left = s->rule.room > s->used ? s->rule.room - s->used : 0;
    if (s->rule.at_most)
        return s->rule.at_most;
    int64_t fits = s->rule.room >= 0 && q->divisible ? q->bytes - q->grows + left : 0;
    s->used += fits > 0 ? left : 0;
    return fits > 0 ? fits : 0;
}

static struct disk_ruling ruling_of(struct disk_rule_state *s, const struct disk_request *q) {
    struct disk_ruling r = {DISK_FAILS, &s->rule, part_of(s, q)};
    if (r.bytes)
        r.verdict = DISK_CUTS;
    else if (s->rule.stuck)
        r.verdict = DISK_STICKS;
    else if (s->rule.delay_ns)
        r.verdict = DISK_WAITS;
    return r;
}

struct disk_ruling disk_rules_decide(struct disk_rule_state *rules, size_t n,
                                     const struct disk_request *q) {
    for (size_t i = 0; i < n; i++)
        if (strikes(&rules[i], q))
            return ruling_of(&rules[i], q);
    return (struct disk_ruling){.verdict = DISK_PASSES};
}

void disk_rules_freed(struct disk_rule_state *rules, size_t n, const char *path, int64_t bytes) {
    for (size_t i = 0; i < n; i++)
        if (rules[i].rule.room >= 0 && disk_rule_means(&rules[i].rule, path))
            rules[i].used -= bytes;
}

int64_t disk_rules_room(const struct disk_rule_state *rules, size_t n) {
    int64_t least = -1;
    for (size_t i = 0; i < n; i++) {
        int64_t left = rules[i].rule.room - rules[i].used;
        if (rules[i].rule.room >= 0 && (least < 0 || left < least))
            least = left > 0 ? left : 0;
    }
    return least;
}
