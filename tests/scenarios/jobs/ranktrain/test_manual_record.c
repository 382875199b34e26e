/* What ranktrain says of itself: its manual page, the scripts of shells, and the words with which they complete lines. */
#include "tests/played.h"
#include "tests/scenarios/jobs/ranktrain/heard.h"

#include "scenarios/jobs/ranktrain/manual.h"

#undef RANKQUAKE_VERSION
#define RANKQUAKE_VERSION "a version" /* it is part of the page */
#include "scenarios/jobs/ranktrain/manual.c"

static void page(uint64_t seed) {
    (void)seed;
    heard_begin();
    manual_print();
    heard_end();
    note("%s%s", manual_about, manual_after);
}

static void script(uint64_t seed) {
    static const char *const shells[] = {"bash", "fish", "zsh", "csh", ""};
    heard_begin();
    bool r = manual_print_script(shells[seed - 1]);
    heard_end();
    note("%s: %d", shells[seed - 1], r);
}

/* Of lines in which something, or nothing, has been typed. */
static void complete(uint64_t seed) {
    static const struct {
        const char *words[4];
        size_t n;
    } lines[] = {{{""}, 0},
                 {{"--"}, 1},
                 {{"--", ""}, 2},
                 {{""}, 1},
                 {{"--", "--s"}, 2},
                 {{"--s"}, 1},
                 {{"--checkpoint"}, 1},
                 {{"ev"}, 1},
                 {{"evaluate", "--eval"}, 2},
                 {{"--", "--", "x"}, 3},
                 {{"--mode", ""}, 2},
                 {{"--nothing"}, 1}};
    _Static_assert(sizeof(lines) / sizeof(*lines) == 12, "as many as the play has");
    heard_begin();
    int r = manual_print_words(lines[seed - 1].words, lines[seed - 1].n);
    heard_end();
    note("%d", r);
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/manual.txt", page, 1, false, {0}},
    {"tests/scenarios/jobs/ranktrain/record/manual_scripts.txt", script, 5, false, {0}},
    {"tests/scenarios/jobs/ranktrain/record/manual_words.txt", complete, 12, false, {0}},
};

static void test_what_it_says_of_itself_is_on_record(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        played_check(&plays[i]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_says_of_itself_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
