/* Every fault with every trigger, as the tables have them: it is accepted, or refused with a reason
 * that names the line and what is wrong. */
#include "harness/scenario/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/harness/plan/world.h"

static const struct key *key_of(const char *word, size_t len) {
    for (const struct key *k = section_when.keys; k->name; k++)
        if (strlen(k->name) == len && strncmp(k->name, word, len) == 0)
            return k;
    return NULL;
}

/* It names the line of the entry, and says fault, trigger or word that is not wanted. */
static bool is_clear(const struct scratch *x, const char *world, const struct fault *f,
                     const struct key *trigger) {
    const char *said = buf_str(&x->d.out);
    char line[16];
    snprintf(line, sizeof(line), ":%d:", world_line(world));
    return strstr(said, line) && (strstr(said, f->name) || strstr(said, trigger->name)) &&
           strlen(said) > 40;
}

static int try_one(const struct fault *f, const char *world, const struct key *trigger) {
    struct scratch x;
    char entry[512];
    world_entry(f, trigger->example, entry, sizeof(entry));
    const char *why = world_refusal(&x, world, entry);
    if (why && !is_clear(&x, world, f, trigger))
        fail_msg("%s at %s is refused without a clear reason: %s", f->name, trigger->name, why);
    scratch_drop(&x);
    return !why;
}

/* The words of `any_of`; 0: there is none left. */
static size_t next_word(const char **at) {
    *at += strspn(*at, " ");
    return strcspn(*at, " ");
}

static void test_every_fault_with_every_trigger_is_accepted_or_refused_with_a_reason(void **state) {
    int tried = 0, accepted = 0, triggers = 0;
    (void)state;
    for (size_t i = 0; faults[i]; i++) {
        const char *world = world_of(i), *word = section_when.any_of;
        triggers = 0;
        for (size_t n; (n = next_word(&word)) > 0; word += n, triggers++) {
            const struct key *k = key_of(word, n);
            if (!k || !k->example || !str_starts(k->example, "when: {"))
                fail_msg("%.*s: no example of it begins with when: {", (int)n, word);
            accepted += try_one(faults[i], world, k);
            tried++;
        }
    }
    print_message("%d of %d combinations are accepted, the others are refused with a reason\n",
                  accepted, tried);
    assert_true(triggers >= 10 && tried > 500);
    assert_true(accepted * 10 > tried * 9);
}

/* What does not depend on the fault is asked of each with some triggers only, in turn, so
 * that each trigger meets many faults. */
enum { EACH_HAS = 5 };

/* Where much is refused: nodes that torchrun's agents share with their store. */
static void test_what_such_a_cluster_cannot_do_is_refused_with_a_reason(void **state) {
    static const char world[] = "cluster: {nodes: 4}\nlauncher: torchrun\n";
    int tried = 0, accepted = 0;
    (void)state;
    for (size_t i = 0; faults[i]; i++) {
        const char *word = section_when.any_of;
        size_t turn = i;
        for (size_t n; (n = next_word(&word)) > 0; word += n) {
            const struct key *k = key_of(word, n);
            if (turn++ % EACH_HAS && !str_eq(k->name, "store"))
                continue;
            int may = try_one(faults[i], world, k);
            assert_false(may && str_eq(k->name, "store"));
            accepted += may;
            tried++;
        }
    }
    assert_true(accepted > tried / 2 && accepted < tried);
}

/* What lasts may end by any trigger as well; what does not last, or says itself how long, by none. */
static void test_every_fault_that_lasts_may_end_at_every_trigger(void **state) {
    (void)state;
    for (size_t i = 0; faults[i]; i++) {
        const struct fault *f = faults[i];
        const char *world = world_of(i), *word = section_when.any_of;
        size_t turn = i;
        for (size_t n; (n = next_word(&word)) > 0; word += n) {
            char entry[512], until[256];
            const struct key *k = key_of(word, n);
            if (turn++ % EACH_HAS)
                continue;
            world_entry(f, "when: {step: 20}", entry, sizeof(entry));
            char *end = strstr(entry, ", for: ");
            *(end ? end : strrchr(entry, '}')) = '\0';
            snprintf(until, sizeof(until), ", until%s}", strchr(k->example, ':'));
            strncat(entry, until, sizeof(entry) - strlen(entry) - 1);
            struct scratch x;
            const char *why = world_refusal(&x, world, entry);
            bool may = fault_has(f, EFFECT_LASTING) && !f->course;
            if (may && why)
                fail_msg("%s until %s: %s", f->name, k->name, why);
            if (!may && (!why || !strstr(why, "until")))
                fail_msg("%s until %s: %s", f->name, k->name, why ? why : "is accepted");
            scratch_drop(&x);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_with_every_trigger_is_accepted_or_refused_with_a_reason),
        cmocka_unit_test(test_what_such_a_cluster_cannot_do_is_refused_with_a_reason),
        cmocka_unit_test(test_every_fault_that_lasts_may_end_at_every_trigger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
