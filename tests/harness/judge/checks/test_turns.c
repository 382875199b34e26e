/* Turns: at which values of the numbers of its records a check says another thing of a planted case is where it was before. What
 * is compared with a bound turns there, wherever a case has put its number. */
#include "tests/harness/judge/checks/alterations.h"
#include "tests/harness/judge/checks/each_case.h"
#include "tests/harness/judge/checks/opened_case.h"
#include "tests/harness/judge/checks/turn.h"

/* Of the numbers of records that prove what is found, and of all others, one in so many. */
enum { OF_PROOF = 2, OF_OTHERS = 48 };

static const int64_t FAR = 100000000000;

/* A number of a line of a case. */
struct turning {
    struct opened_case opened;
    size_t at;
    const char *number; /* where it stands in the line: with its sign, if it has one */
    size_t len;
    struct rand rand;
    struct case_alterations *ret;
    struct buf said;
};

/* With that value instead; -1: such a line would not have been read. */
static int status_of(void *arg, int64_t value) {
    struct turning *t = arg;
    const struct opened_case *o = &t->opened;
    const char *line = o->lines[t->at];
    ARENA_FINI struct arena a = {0};
    struct finding f;
    if (!opened_case_ask_instead(o, &o->scenario, t->at,
                                 arena_printf(&a, "%.*s%" PRId64 "%s", (int)(t->number - line),
                                              line, value, t->number + t->len),
                                 &f))
        return -1;
    t->ret->asked++;
    t->ret->otherwise += f.status != o->is.status;
    return (int)f.status;
}

static const char *name_of(int status) {
    return status < 0 ? "unreadable" : finding_status_name((enum finding_status)status);
}

/* The least value above one end of which another thing is said than of that, where it is so of the other. */
static void note_turn(struct turning *t, struct turn_end from, struct turn_end to) {
    if (turn_find(status_of, t, &from, &to))
        buf_printf(&t->said, "%zu at column %zu turns at %" PRId64 ": %s, and %s\n", t->at + 1,
                   (size_t)(t->number - t->opened.lines[t->at]), to.at, name_of(from.is),
                   name_of(to.is));
}

static void find_turns(struct turning *t) {
    int64_t is = atoll(t->number), least = is < 0 ? 0 : is;
    const int64_t values[] = {-1, is, 8 * least + 8, least + FAR};
    struct turn_end before = {values[0], status_of(t, values[0])};
    for (size_t i = 1; i < sizeof(values) / sizeof(*values); i++) {
        int64_t value = values[i];
        int status = value == is ? (int)t->opened.is.status : status_of(t, value);
        note_turn(t, before, (struct turn_end){value, status});
        before = (struct turn_end){value, status};
    }
}

static void ask_line(struct turning *t, uint64_t one_in) {
    const char *line = t->opened.lines[t->at];
    size_t digits = 0;
    for (const char *at = line; (at = alterations_number(line, at + digits, &digits));) {
        bool has_sign = at[-1] == '-';
        t->number = at - has_sign;
        t->len = digits + has_sign;
        if (digits < 19 && rand_below(&t->rand, one_in) == 0)
            find_turns(t);
    }
}

static void turn(struct case_alterations *ret, const struct planted_case *of, struct buf *told) {
    struct turning t = {.rand = opened_case_rand(of, 41), .ret = ret};
    *ret = (struct case_alterations){0};
    opened_case_open(&t.opened, of);
    for (t.at = 0; t.at < t.opened.whole.n; t.at++)
        ask_line(&t, opened_case_is_planted(&t.opened, t.at) ? 1
                     : opened_case_proves(&t.opened, t.at)   ? OF_PROOF
                                                             : OF_OTHERS);
    ret->sum = verdicts_sum(VERDICTS_SUM_OF_NOTHING, buf_str(&t.said));
    if (told)
        buf_puts(told, buf_str(&t.said));
    buf_fini(&t.said);
    opened_case_close(&t.opened);
}

static void test_what_is_said_turns_where_it_turned_before(void **state) {
    (void)state;
    each_case_compare(turn, "turns", 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_what_is_said_turns_where_it_turned_before);
    return each_case_main(argc, argv, turn, &test);
}
