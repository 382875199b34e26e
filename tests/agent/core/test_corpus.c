#include "harness/sim/script.h"

#include "base/str.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Schedules that once broke an invariant, with a bug that has been fixed or one that was planted
 * (tests/harness/sim/corpus; tests/soak/shrink-mutants.sh makes the latter). None does now. */

static const char folder[] = "tests/harness/sim/corpus";

enum { CORPUS_LEAST = 10 };

static int is_script(const struct dirent *e) {
    return str_ends(e->d_name, ".yaml");
}

static void play(const char *file) {
    struct diagnostics d = {0};
    struct sim_result r;
    struct script *s = script_read(file, &d);
    if (!s)
        fail_msg("%s", buf_str(&d.out));
    diagnostics_fini(&d);
    sim_play(&s->schedule, false, &r);
    if (r.violated)
        fail_msg("%s: %s (rankquake sim --scenario %s shows the run)", file, r.text, file);
    if (!s->breaks)
        fail_msg("%s: it does not say what it once broke", file);
    script_free(s);
}

static void test_no_schedule_that_once_broke_an_invariant_breaks_one_now(void **state) {
    (void)state;
    struct dirent **found;
    char path[512];
    int n = scandir(folder, &found, is_script, alphasort);
    assert_true(n >= CORPUS_LEAST);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, found[i]->d_name);
        play(path);
        free(found[i]);
    }
    free(found);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_schedule_that_once_broke_an_invariant_breaks_one_now),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
