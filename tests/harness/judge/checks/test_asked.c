/* Asked: what each check says of its planted cases when the scenario asks for something else is what it said before: each
 * field of it has once, or where it has many oftener, a value that is drawn by the name of the case. */
#include "tests/harness/judge/checks/asked.h"
#include "tests/harness/judge/checks/each_case.h"
#include "tests/harness/judge/checks/opened_case.h"

enum { OF_VALUES = 2, NUMBERS = 3 }; /* one in so many is drawn; of times so many */

static size_t draws_of(const struct field *f) {
    size_t n = 0;
    while (f->type == FIELD_TEXT && f->texts[n])
        n++;
    return f->type == FIELD_I64 ? NUMBERS : 1 + n / OF_VALUES;
}

static void ask_with(const struct opened_case *c, const struct field *f, struct rand *r,
                     struct buf *said, struct finding *ret) {
    struct asked a;
    asked_begin(&a, c->of->history, c->of->dialect);
    asked_draw(&a, f, r, said);
    opened_case_ask(c, asked_scenario(&a), &c->whole, ret);
    verdicts_put(said, ret);
}

static void ask_all(struct case_alterations *ret, const struct planted_case *of, struct buf *told) {
    struct opened_case c;
    struct buf said = {0};
    struct rand r = opened_case_rand(of, 43);
    *ret = (struct case_alterations){.sum = VERDICTS_SUM_OF_NOTHING};
    opened_case_open(&c, of);
    for (size_t i = 0; i < asked_fields_n; i++)
        for (size_t k = 0; k < draws_of(&asked_fields[i]); k++) {
            struct finding f;
            buf_clear(&said);
            ask_with(&c, &asked_fields[i], &r, &said, &f);
            ret->asked++;
            ret->otherwise += f.status != c.is.status;
            ret->sum = verdicts_sum(ret->sum, buf_str(&said));
            if (told)
                buf_puts(told, buf_str(&said));
        }
    buf_fini(&said);
    opened_case_close(&c);
}

static void test_what_is_said_of_a_case_under_another_scenario_is_the_same_as_before(void **state) {
    (void)state;
    each_case_compare(ask_all, "asked", asked_fields_n);
}

int main(int argc, char **argv) {
    const struct CMUnitTest test =
        cmocka_unit_test(test_what_is_said_of_a_case_under_another_scenario_is_the_same_as_before);
    return each_case_main(argc, argv, ask_all, &test);
}
