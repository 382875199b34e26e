#include "harness/scenario/pattern.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* The C library copies what is repeated: {1,200} of {1,200} of {1,200} would fill the memory. */
enum { GROUPS_MAX = 30, REPEATS_MAX = 1000 };

struct pattern {
    regex_t regex;
    size_t groups[PATTERN_VALUES_MAX]; /* of the library's groups, those that are values */
    size_t values;
    struct buf literals; /* runs that must stand in a line, each with its NUL */
};

/* ---- into what the library understands ---- */

struct translation {
    struct pattern *p;
    const char *text, *at;
    struct buf out;
    size_t run; /* where the run of literals that grows begins in p->literals */
    size_t groups, depth, repeats;
    bool icase, repeated, optional;
    struct err *err;
};

static int refuse(struct translation *t, const char *why) {
    return err_say(t->err, -EINVAL, "/%s/ cannot be used: at \"%.20s\": %s", t->text, t->at, why);
}

static void end_run(struct translation *t) {
    if (t->p->literals.len > t->run)
        buf_putc(&t->p->literals, '\0');
    t->run = t->p->literals.len;
}

static void literal(struct translation *t, char c) {
    if (!t->depth)
        buf_putc(&t->p->literals, c);
    if (strchr("\\^$.[]|()*+?{}", c))
        buf_putc(&t->out, '\\');
    buf_putc(&t->out, c);
}

static void special(struct translation *t, const char *text) {
    end_run(t);
    buf_puts(&t->out, text);
}

static const struct {
    char letter;
    const char *outside, *inside; /* inside: in brackets; NULL: not there */
} classes[] = {
    {'d', "[0-9]", "0-9"},
    {'D', "[^0-9]", NULL},
    {'s', "[[:space:]]", "[:space:]"},
    {'S', "[^[:space:]]", NULL},
    {'w', "[[:alnum:]_]", "[:alnum:]_"},
    {'W', "[^[:alnum:]_]", NULL},
    {'b', "\\b", NULL},
    {'t', "\t", "\t"},
    {0},
};

static const char *class_of(char letter, bool inside) {
    for (size_t i = 0; classes[i].letter; i++)
        if (classes[i].letter == letter)
            return inside ? classes[i].inside : classes[i].outside;
    return NULL;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int escape(struct translation *t) {
    char c = t->at[1];
    const char *class = class_of(c, false);
    if (!c)
        return refuse(t, "nothing follows the backslash");
    if (c >= '0' && c <= '9')
        return refuse(t, "a group cannot be referred to again");
    if (c == 'n' || c == 'r')
        return refuse(t, "a line is matched without its end; use $");
    if (!class && is_letter(c))
        return refuse(t, "only \\d \\D \\s \\S \\w \\W \\b \\t have a meaning");
    if (class)
        special(t, class);
    else
        literal(t, c);
    t->at += 2;
    return 0;
}

/* What stands in brackets, put in the order in which ] ^ and - are themselves. */
struct set {
    struct buf out;
    bool closing, dash;
};

static int set_escape(struct translation *t, struct set *s) {
    char c = t->at[1];
    const char *class = class_of(c, true);
    if (!class && (!c || is_letter(c)))
        return refuse(t, "in brackets only \\d \\s \\w \\t have a meaning");
    if (class)
        buf_puts(&s->out, class);
    else if (c == ']')
        s->closing = true;
    else if (c == '-')
        s->dash = true;
    else
        buf_putc(&s->out, c);
    t->at += 2;
    return 0;
}

static int set_member(struct translation *t, struct set *s) {
    const char *end = str_starts(t->at, "[:") ? strstr(t->at, ":]") : NULL;
    if (*t->at == '\\')
        return set_escape(t, s);
    size_t n = end ? (size_t)(end + 2 - t->at) : 1;
    buf_put(&s->out, t->at, n);
    t->at += n;
    return 0;
}

static int brackets(struct translation *t) {
    struct set s = {0};
    const char *begin = t->at++;
    bool not = *t->at == '^';
    t->at += not ;
    if (*t->at == ']') {
        s.closing = true;
        t->at++;
    }
    int r = 0;
    while (r == 0 && *t->at && *t->at != ']')
        r = set_member(t, &s);
    if (r == 0 && !*t->at) {
        t->at = begin;
        r = refuse(t, "there is no ] to this [");
    }
    if (r == 0) {
        special(t, not ? "[^" : "[");
        buf_puts(&t->out, s.closing ? "]" : "");
        buf_puts(&t->out, buf_str(&s.out));
        buf_puts(&t->out, s.dash ? "-]" : "]");
        t->at++;
    }
    buf_fini(&s.out);
    return r;
}

/* After "(?": how many characters belong to the opening of the group; 0: not known here. */
static size_t opening(const char *at, bool *ret_value) {
    const char *name = str_starts(at, "(?P<") ? at + 4 : str_starts(at, "(?<") ? at + 3 : NULL;
    *ret_value = name;
    if (str_starts(at, "(?:"))
        return 3;
    size_t n = name ? strcspn(name, ">") : 0;
    return name && n && name[n] && *name != '=' && *name != '!' ? (size_t)(name - at) + n + 1 : 0;
}

static int open_group(struct translation *t) {
    bool value = true;
    size_t n = 1;
    if (t->at[1] == '?' && !(n = opening(t->at, &value)))
        return refuse(t, "of the groups that begin with ? there are (?:...) and (?P<name>...)");
    if (++t->groups > GROUPS_MAX)
        return refuse(t, "these are too many groups");
    if (value && t->p->values < PATTERN_VALUES_MAX)
        t->p->groups[t->p->values] = t->groups;
    t->p->values += value;
    special(t, "(");
    t->depth++;
    t->at += n;
    return 0;
}

static int close_group(struct translation *t) {
    if (!t->depth)
        return refuse(t, "there is no ( to this ); write \\) for the character itself");
    special(t, ")");
    t->depth--;
    t->at++;
    return 0;
}

/* {2}, {2,}, {2,5}: its length, 0 when it is none and the brace is meant. */
static size_t interval(const char *at, size_t *ret_most) {
    size_t n = 1 + strspn(at + 1, "0123456789");
    long most = strtol(at + 1, NULL, 10);
    if (n == 1)
        return 0;
    if (at[n] == ',') {
        size_t digits = strspn(at + n + 1, "0123456789");
        most = digits ? strtol(at + n + 1, NULL, 10) : most;
        n += 1 + digits;
    }
    *ret_most = most > REPEATS_MAX || most < 0 ? REPEATS_MAX + 1 : most ? (size_t)most : 1;
    return at[n] == '}' ? n + 1 : 0;
}

/* What was last put may now be absent, so it is no literal that a line must have. */
static void drop_last(struct translation *t) {
    if (t->p->literals.len > t->run)
        t->p->literals.len--;
    end_run(t);
}

static int repeat(struct translation *t, size_t n) {
    if (t->repeated)
        return refuse(t,
                      "a repetition of a repetition, also one that takes as little as possible, is "
                      "not known; write what may stand there, such as [^ ]*");
    if (!t->out.len)
        return refuse(t, "nothing stands before it that could be repeated");
    drop_last(t);
    buf_put(&t->out, t->at, n);
    t->at += n;
    t->repeated = true;
    return 0;
}

static int brace(struct translation *t) {
    size_t most = 1, n = interval(t->at, &most);
    if (!n) {
        literal(t, *t->at++);
        return 0;
    }
    t->repeats *= most;
    if (t->repeats > REPEATS_MAX)
        return refuse(t, "that is repeated too often; write * or +");
    return repeat(t, n);
}

static int next(struct translation *t) {
    bool after_repeat = t->repeated;
    char c = *t->at;
    if (!strchr("*+?{", c))
        t->repeated = false;
    switch (c) {
    case '\\':
        return escape(t);
    case '[':
        return brackets(t);
    case '(':
        return open_group(t);
    case ')':
        return close_group(t);
    case '{':
        t->repeated = after_repeat && interval(t->at, &(size_t){0});
        return brace(t);
    case '*':
    case '+':
    case '?':
        return repeat(t, 1);
    case '|':
    case '.':
    case '^':
    case '$':
        special(t, (const char[]){c, '\0'});
        t->at++;
        return 0;
    default:
        literal(t, *t->at++);
        return 0;
    }
}

static int translate(struct translation *t) {
    if (strlen(t->text) > PATTERN_TEXT_MAX)
        return err_say(t->err, -EINVAL,
                       "the expression is longer than %d characters; a line is found by less",
                       (int)PATTERN_TEXT_MAX);
    if (str_starts(t->at, "(?i)")) {
        t->icase = true;
        t->at += 4;
    }
    while (*t->at) {
        int r = next(t);
        if (r < 0)
            return r;
    }
    end_run(t);
    return t->text[0] ? 0 : err_say(t->err, -EINVAL, "the expression is empty");
}

static int compile(struct translation *t) {
    char why[200];
    int code = regcomp(&t->p->regex, buf_str(&t->out), REG_EXTENDED | (t->icase ? REG_ICASE : 0));
    if (!code)
        return 0;
    regerror(code, &t->p->regex, why, sizeof(why));
    return err_say(t->err, -EINVAL, "/%s/ is no regular expression: %s", t->text, why);
}

struct pattern *pattern_new(const char *text, struct err *err) {
    struct pattern *p = mem_new(struct pattern);
    struct translation t = {.p = p, .text = text, .at = text, .err = err, .repeats = 1};
    int r = translate(&t);
    if (r == 0)
        r = compile(&t);
    buf_fini(&t.out);
    if (r == 0)
        return p;
    buf_fini(&p->literals);
    free(p);
    return NULL;
}

struct pattern *pattern_free(struct pattern *p) {
    if (p) {
        regfree(&p->regex);
        buf_fini(&p->literals);
        free(p);
    }
    return NULL;
}

size_t pattern_values(const struct pattern *p) {
    return p->values;
}

/* ---- matching ---- */

bool pattern_match(const struct pattern *p, const char *line,
                   struct pattern_value values[PATTERN_VALUES_MAX]) {
    regmatch_t m[GROUPS_MAX + 1];
    if (regexec(&p->regex, line, GROUPS_MAX + 1, m, 0))
        return false;
    for (size_t i = 0; values && i < PATTERN_VALUES_MAX; i++) {
        values[i] = (struct pattern_value){0};
        const regmatch_t *g = i < p->values ? &m[p->groups[i]] : NULL;
        if (g && g->rm_so >= 0)
            values[i] = (struct pattern_value){line + g->rm_so, (size_t)(g->rm_eo - g->rm_so)};
    }
    return true;
}

/* The longest beginning of the run that stands in the line, in either case. */
static size_t beginning(const char *run, const char *line) {
    char part[64];
    for (size_t n = str_copy(part, sizeof(part), run) ? strlen(run) : sizeof(part) - 1; n >= 2;
         n--) {
        part[n] = '\0';
        if (strcasestr(line, part))
            return n;
    }
    return 0;
}

size_t pattern_nearness(const struct pattern *p, const char *line) {
    size_t score = 0;
    const char *at = line;
    for (size_t i = 0; i < p->literals.len; i += strlen(p->literals.data + i) + 1) {
        const char *run = p->literals.data + i, *found = strstr(at, run);
        score += found ? 2 * strlen(run) : beginning(run, line);
        at = found ? found + strlen(run) : at;
    }
    return score;
}
