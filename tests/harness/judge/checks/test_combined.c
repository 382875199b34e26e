/* Combined: what each check says of its planted cases when several things of them are another at once is what it said
 * before. Up to four lines are altered, or have another one like them behind them, and in half of all the scenario asks
 * for something else, too. What is drawn of a case hangs on its name. */
#include "tests/harness/judge/checks/alterations.h"
#include "tests/harness/judge/checks/asked.h"
#include "tests/harness/judge/checks/each_case.h"
#include "tests/harness/judge/checks/opened_case.h"

enum { DRAWS = 40, LINES_MAX = 4, FIELDS_MAX = 3, NEIGHBOURS = 6 };

/* One case, and which of its lines are something else in this draw. */
struct combined {
    struct opened_case opened;
    size_t *striking, striking_n; /* lines that are planted, or prove what is found */
    struct rand rand;
    struct buf said; /* of this draw */
    struct history instead[LINES_MAX];
    const struct history **of; /* by line */
    uint64_t seen;             /* alterations that there are */
    const char *what, *line;   /* the one that is drawn; line NULL: it is not there */
};

static size_t below(struct combined *c, size_t n) {
    return (size_t)rand_below(&c->rand, n);
}

/* ---- lines ---- */

/* Each as likely as any other. */
static void choose(void *arg, const char *what, const char *instead) {
    struct combined *c = arg;
    if (rand_below(&c->rand, ++c->seen))
        return;
    c->what = what;
    c->line = instead;
}

/* Two of three are near what is found. */
static size_t draw_line(struct combined *c) {
    bool striking = c->striking_n && below(c, 3);
    return striking ? c->striking[below(c, c->striking_n)] : below(c, c->opened.whole.n);
}

/* What stands in place of that line: one that is altered in any way, or a number of it is something else. */
static void draw_alteration(struct combined *c, struct arena *a, size_t at) {
    const struct alterations all = {a, c->opened.lines, c->opened.whole.n, choose, c};
    const char *wild = below(c, 3) ? NULL : alterations_wild(&all, at, &c->rand);
    c->what = "wild";
    c->line = wild;
    c->seen = 0;
    if (!wild)
        alterations_of(&all, at, NEIGHBOURS);
}

/* A line is another, or one that is another follows it; false: it would not have been read. */
static bool alter(struct combined *c, struct arena *a, struct history *instead) {
    size_t at = draw_line(c);
    if (c->of[at])
        return true; /* it is already */
    draw_alteration(c, a, at);
    bool beside = c->line && below(c, 3) == 0;
    if (beside)
        c->line = arena_printf(a, "%s\n%s", c->opened.lines[at], c->line);
    buf_printf(&c->said, "%zu %s%s %s\n", at + 1, c->what, beside ? " beside" : "",
               c->line ? c->line : "");
    if (c->line && !opened_case_parse(instead, c->line))
        return false;
    c->of[at] = instead;
    return true;
}

/* ---- the scenario ---- */

static const struct scenario *alter_scenario(struct combined *c, struct asked *a) {
    const struct planted_case *of = c->opened.of;
    if (below(c, 2))
        return &c->opened.scenario;
    asked_begin(a, of->history, of->dialect);
    for (size_t n = 1 + below(c, FIELDS_MAX); n > 0; n--) {
        asked_draw(a, &asked_fields[below(c, asked_fields_n)], &c->rand, &c->said);
    }
    return asked_scenario(a);
}

/* ---- one draw ---- */

/* Whether it can be read. */
static bool draw_one(struct combined *c, struct finding *ret) {
    ARENA_FINI struct arena a = {0};
    struct asked asked;
    struct history h;
    bool can_be_read = true;
    memset(c->instead, 0, sizeof(c->instead));
    memset(c->of, 0, c->opened.whole.n * sizeof(*c->of));
    for (size_t i = 0, n = 1 + below(c, LINES_MAX); i < n; i++)
        can_be_read &= alter(c, &a, &c->instead[i]);
    const struct scenario *s = alter_scenario(c, &asked);
    if (can_be_read) {
        opened_case_put_together(&h, &a, &c->opened, c->of);
        opened_case_ask(&c->opened, s, &h, ret);
        verdicts_put(&c->said, ret);
    }
    for (size_t i = 0; i < LINES_MAX; i++)
        history_fini(&c->instead[i]);
    return can_be_read;
}

static void find_striking(struct combined *c) {
    struct opened_case *o = &c->opened;
    c->striking = arena_array(&o->arena, size_t, o->whole.n);
    for (size_t at = 0; at < o->whole.n; at++)
        if (opened_case_is_planted(o, at) || opened_case_proves(o, at))
            c->striking[c->striking_n++] = at;
}

static void combine(struct case_alterations *ret, const struct planted_case *of, struct buf *told) {
    struct combined c = {.rand = opened_case_rand(of, 37)};
    *ret = (struct case_alterations){.sum = VERDICTS_SUM_OF_NOTHING};
    opened_case_open(&c.opened, of);
    c.of = arena_array(&c.opened.arena, const struct history *, c.opened.whole.n);
    find_striking(&c);
    for (int i = 0; i < DRAWS; i++) {
        struct finding f;
        buf_clear(&c.said);
        if (draw_one(&c, &f)) {
            ret->asked++;
            ret->otherwise += f.status != c.opened.is.status;
        }
        ret->sum = verdicts_sum(ret->sum, buf_str(&c.said));
        if (told)
            buf_puts(told, buf_str(&c.said));
    }
    buf_fini(&c.said);
    opened_case_close(&c.opened);
}

static void
test_what_is_said_of_cases_with_several_alterations_is_the_same_as_before(void **state) {
    (void)state;
    each_case_compare(combine, "combined", DRAWS / 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest test =
        cmocka_unit_test(test_what_is_said_of_cases_with_several_alterations_is_the_same_as_before);
    return each_case_main(argc, argv, combine, &test);
}
