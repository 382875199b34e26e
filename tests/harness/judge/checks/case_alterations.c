#include "tests/harness/judge/checks/case_alterations.h"

#include "tests/harness/judge/checks/alterations.h"
#include "tests/harness/judge/checks/opened_case.h"
#include "tests/harness/judge/checks/turn.h"
#include "tests/harness/judge/checks/verdicts.h"

#include <inttypes.h>

/* Of what there is to ask of records that prove what is found, and of all others, one in so many. */
enum { OF_PROOF = 4, OF_OTHERS = 64, NEIGHBOURS = 6 };

/* One of its lines at a time is another. */
struct altered_case {
    struct opened_case opened;
    size_t at;
    uint64_t one_in; /* so many is asked */
    struct rand rand;
    struct case_alterations *ret;
    struct buf *told;
};

/* ---- judging ---- */

static void note(struct altered_case *c, const char *what, const char *instead,
                 const struct finding *f) {
    struct buf said = {0};
    verdicts_put(&said, f);
    c->ret->asked++;
    c->ret->otherwise += f->status != c->opened.is.status;
    c->ret->sum = verdicts_sum(c->ret->sum, buf_str(&said));
    if (c->told)
        buf_printf(c->told, "%zu %s %s\n%s", c->at + 1, what, instead ? instead : "",
                   buf_str(&said));
    buf_fini(&said);
}

static void take(void *arg, const char *what, const char *instead) {
    struct altered_case *c = arg;
    struct finding f;
    if (!rand_below(&c->rand, c->one_in) &&
        opened_case_ask_instead(&c->opened, &c->opened.scenario, c->at, instead, &f))
        note(c, what, instead, &f);
}

/* ---- when an answer turns ---- */

/* With the record at another time. */
static int status_at(void *arg, int64_t t_ns) {
    const struct altered_case *c = arg;
    struct record *const own = c->opened.whole.records[c->at], moved = *own;
    struct finding f;
    own->t_ns = t_ns;
    opened_case_ask(&c->opened, &c->opened.scenario, &c->opened.whole, &f);
    *own = moved;
    return (int)f.status;
}

/* The first time behind `from` at which the answer is another one than there, if it is at `to`. */
static void note_turn(struct altered_case *c, int64_t from_ns, int64_t to_ns) {
    struct turn_end from = {from_ns, status_at(c, from_ns)}, to = {to_ns, from.is};
    struct buf said = {0};
    if (to_ns > from_ns)
        to.is = status_at(c, to_ns);
    if (!turn_find(status_at, c, &from, &to))
        return;
    buf_printf(&said, "%zu turns %" PRId64 " ns from where it is: %s, and %s\n", c->at + 1,
               to.at - c->opened.whole.records[c->at]->t_ns,
               finding_status_name((enum finding_status)from.is),
               finding_status_name((enum finding_status)to.is));
    c->ret->sum = verdicts_sum(c->ret->sum, buf_str(&said));
    if (c->told)
        buf_puts(c->told, buf_str(&said));
    buf_fini(&said);
}

static void note_turns(struct altered_case *c) {
    static const int64_t near_ns = 10000000, far_ns = 100000000000;
    int64_t t_ns = c->opened.whole.records[c->at]->t_ns;
    note_turn(c, 1, t_ns);
    note_turn(c, t_ns, t_ns + near_ns);
    note_turn(c, t_ns + near_ns, t_ns + far_ns);
}

/* ---- which records ---- */

void case_alterations(struct case_alterations *ret, const struct planted_case *of,
                      struct buf *told) {
    struct altered_case c = {.rand = opened_case_rand(of, 29), .ret = ret, .told = told};
    const struct opened_case *o = &c.opened;
    *ret = (struct case_alterations){.sum = VERDICTS_SUM_OF_NOTHING};
    opened_case_open(&c.opened, of);
    const struct alterations a = {&c.opened.arena, o->lines, o->whole.n, take, &c};
    for (c.at = 0; c.at < o->whole.n; c.at++) {
        c.one_in = opened_case_is_planted(o, c.at) ? 1
                   : opened_case_proves(o, c.at)   ? OF_PROOF
                                                   : OF_OTHERS;
        alterations_of(&a, c.at, NEIGHBOURS);
        if (c.one_in < OF_OTHERS)
            note_turns(&c);
    }
    opened_case_close(&c.opened);
}
