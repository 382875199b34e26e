#include "tests/harness/judge/checks/case_alterations.h"

#include "base/rand.h"
#include "harness/history/history_parse.h"
#include "harness/judge/checks/lost.h"
#include "harness/judge/views.h"
#include "tests/harness/judge/checks/alterations.h"
#include "tests/harness/judge/checks/cases_judge.h"
#include "tests/harness/judge/checks/verdicts.h"

#include <inttypes.h>

/* Of what there is to ask of records that prove what is found, and of all others, one in so many. */
enum { OF_PROOF = 4, OF_OTHERS = 64, NEIGHBOURS = 6 };

/* A case line by line, read once; one of its lines at a time is another. */
struct altered_case {
    const struct planted_case *of;
    const struct check *check;
    struct scenario scenario;
    struct arena arena;
    struct history whole;
    char **lines;
    size_t at;
    uint64_t one_in; /* so many is asked */
    struct rand rand;
    enum finding_status status; /* of the case as it is */
    struct case_alterations *ret;
    struct buf *told;
};

/* ---- judging ---- */

static void ask(const struct altered_case *c, const struct history *h, struct finding *ret) {
    struct views *views = views_new(&c->scenario, h);
    struct lost lost;
    lost_find(&lost, h, views_rounds(views, VIEWS_OF_ROUNDS));
    views_ask(views, c->check, &lost, ret);
    views_free(views);
}

/* The records of one line or two; false: they would not have been read. */
static bool parse(struct history *ret, const char *lines) {
    *ret = (struct history){0};
    for (const char *line = lines; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (history_parse(ret, line, strcspn(line, "\n"), true, NULL) < 0)
            return false;
        ret->records[ret->n - 1]->seq = 0; /* a number is given to it where it comes to stand */
    }
    return true;
}

/* All records with those in place of the one at c->at, numbered anew. */
static void put_together(struct history *ret, struct arena *a, const struct altered_case *c,
                         const struct history *instead) {
    *ret =
        (struct history){.records = arena_array(a, struct record *, c->whole.n + instead->n + 1)};
    for (size_t i = 0; i < c->whole.n; i++) {
        struct record *const *from = i == c->at ? instead->records : &c->whole.records[i];
        for (size_t k = 0; k < (i == c->at ? instead->n : 1); k++) {
            struct record *r = from[k];
            if (r->seq != (int64_t)ret->n + 1) {
                r = arena_new(a, struct record);
                *r = *from[k];
                r->seq = (int64_t)ret->n + 1;
            }
            ret->records[ret->n++] = r;
        }
    }
}

static void note(struct altered_case *c, const char *what, const char *instead,
                 const struct finding *f) {
    struct buf said = {0};
    verdicts_put(&said, f);
    c->ret->asked++;
    c->ret->otherwise += f->status != c->status;
    c->ret->sum = verdicts_sum(c->ret->sum, buf_str(&said));
    if (c->told)
        buf_printf(c->told, "%zu %s %s\n%s", c->at + 1, what, instead ? instead : "",
                   buf_str(&said));
    buf_fini(&said);
}

static void take(void *arg, const char *what, const char *instead) {
    struct altered_case *c = arg;
    ARENA_FINI struct arena a = {0};
    struct history other = {0}, h;
    struct finding f;
    if (rand_below(&c->rand, c->one_in))
        return;
    if (!instead || parse(&other, instead)) {
        put_together(&h, &a, c, &other);
        ask(c, &h, &f);
        note(c, what, instead, &f);
    }
    history_fini(&other);
}

/* ---- when an answer turns ---- */

/* With the record at another time. */
static enum finding_status status_at(const struct altered_case *c, int64_t t_ns) {
    struct record *const own = c->whole.records[c->at], moved = *own;
    struct finding f;
    own->t_ns = t_ns;
    ask(c, &c->whole, &f);
    *own = moved;
    return f.status;
}

/* The first time behind `from` at which the answer is another one than there, if it is at `to`. */
static void note_turn(struct altered_case *c, int64_t from_ns, int64_t to_ns) {
    enum finding_status from = status_at(c, from_ns);
    struct buf said = {0};
    if (to_ns <= from_ns || status_at(c, to_ns) == from)
        return;
    while (to_ns - from_ns > 1) {
        int64_t middle_ns = from_ns + (to_ns - from_ns) / 2;
        if (status_at(c, middle_ns) == from)
            from_ns = middle_ns;
        else
            to_ns = middle_ns;
    }
    buf_printf(&said, "%zu turns %" PRId64 " ns from where it is: %s, and %s\n", c->at + 1,
               to_ns - c->whole.records[c->at]->t_ns, finding_status_name(from),
               finding_status_name(status_at(c, to_ns)));
    c->ret->sum = verdicts_sum(c->ret->sum, buf_str(&said));
    if (c->told)
        buf_puts(c->told, buf_str(&said));
    buf_fini(&said);
}

static void note_turns(struct altered_case *c) {
    static const int64_t near_ns = 10000000, far_ns = 100000000000;
    int64_t t_ns = c->whole.records[c->at]->t_ns;
    note_turn(c, 1, t_ns);
    note_turn(c, t_ns, t_ns + near_ns);
    note_turn(c, t_ns + near_ns, t_ns + far_ns);
}

/* ---- which records ---- */

/* The line is not in the history that the case is made of. Its number may be another. */
static bool is_planted(const char *line, const char *history) {
    const char *of = strchr(line, ','), *at = history;
    size_t n = strlen(of);
    while ((at = strstr(at, of)) && at[n] != '\n')
        at++;
    return !at;
}

static bool proves(const struct finding *f, size_t at) {
    for (size_t i = 0; f->evidence[i]; i++)
        if (f->evidence[i] == (int64_t)at + 1)
            return true;
    return false;
}

static void open_case(struct altered_case *c) {
    struct buf text = {0};
    uint64_t seed = 29;
    planted_load(&c->whole, c->of->history, c->of->edits);
    planted_text(&text, c->of->history, c->of->edits);
    c->lines = str_split(&c->arena, arena_strdup(&c->arena, buf_str(&text)), '\n', NULL);
    c->scenario = cases_scenario(c->of->history, c->of->dialect);
    c->check = check_find(c->of->check);
    for (const char *at = c->of->name; *at; at++)
        seed = seed * 31 + (unsigned char)*at;
    rand_init(&c->rand, seed);
    buf_fini(&text);
}

void case_alterations(struct case_alterations *ret, const struct planted_case *of,
                      struct buf *told) {
    struct altered_case c = {.of = of, .ret = ret, .told = told};
    struct buf history = {0};
    struct finding is;
    *ret = (struct case_alterations){.sum = VERDICTS_SUM_OF_NOTHING};
    open_case(&c);
    read_text(&history, of->history);
    ask(&c, &c.whole, &is);
    c.status = is.status;
    const struct alterations a = {&c.arena, c.lines, c.whole.n, take, &c};
    for (c.at = 0; c.at < c.whole.n; c.at++) {
        c.one_in = is_planted(c.lines[c.at], buf_str(&history)) ? 1
                   : proves(&is, c.at)                          ? OF_PROOF
                                                                : OF_OTHERS;
        alterations_of(&a, c.at, NEIGHBOURS);
        if (c.one_in < OF_OTHERS)
            note_turns(&c);
    }
    buf_fini(&history);
    history_fini(&c.whole);
    arena_fini(&c.arena);
}
