/* Turns: at which values of the numbers of its records a check says another thing of a planted case is where it was before. What
 * is compared with a bound turns there, wherever a case has put its number. */
#include "tests/harness/judge/checks/alterations.h"
#include "tests/harness/judge/checks/each_case.h"
#include "tests/harness/judge/checks/opened_case.h"

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
static int status_of(struct turning *t, int64_t value) {
    ARENA_FINI struct arena a = {0};
    const struct history **of = arena_array(&a, const struct history *, t->opened.whole.n);
    const char *line = t->opened.lines[t->at];
    struct history other = {0}, h;
    struct finding f;
    bool can_be_read =
        opened_case_parse(&other, arena_printf(&a, "%.*s%" PRId64 "%s", (int)(t->number - line),
                                               line, value, t->number + t->len));
    if (can_be_read) {
        of[t->at] = &other;
        opened_case_put_together(&h, &a, &t->opened, of);
        opened_case_ask(&t->opened, &t->opened.scenario, &h, &f);
        t->ret->asked++;
        t->ret->otherwise += f.status != t->opened.is.status;
    }
    history_fini(&other);
    return can_be_read ? (int)f.status : -1;
}

static const char *name_of(int status) {
    return status < 0 ? "unreadable" : finding_status_name((enum finding_status)status);
}

/* The least value above `from` of which another thing is said than of that, where it is so of `to`. */
static void find_turn(struct turning *t, int64_t from, int from_is, int64_t to, int to_is) {
    if (from >= to || from_is == to_is)
        return;
    while (to - from > 1) {
        int64_t middle = from + (to - from) / 2;
        int is = status_of(t, middle);
        if (is == from_is) {
            from = middle;
        } else {
            to = middle;
            to_is = is;
        }
    }
    buf_printf(&t->said, "%zu at column %zu turns at %" PRId64 ": %s, and %s\n", t->at + 1,
               (size_t)(t->number - t->opened.lines[t->at]), to, name_of(from_is), name_of(to_is));
}

static void find_turns(struct turning *t) {
    int64_t is = atoll(t->number);
    const int64_t values[] = {-1, is, 8 * (is < 0 ? 0 : is) + 8, (is < 0 ? 0 : is) + FAR};
    int before = status_of(t, values[0]);
    for (size_t i = 1; i < sizeof(values) / sizeof(*values); i++) {
        int status = values[i] == is ? (int)t->opened.is.status : status_of(t, values[i]);
        find_turn(t, values[i - 1], before, values[i], status);
        before = status;
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
