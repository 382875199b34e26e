/* explain knows every key by the name that messages, pages and --set give it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/str.h"
#include "harness/scenario/keys.h"
#include "harness/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What it says, to be freed. */
static char *explain(const char *name) {
    char *argv[] = {(char *)"explain", (char *)name, NULL}, *said = NULL;
    size_t size;
    FILE *out = stdout;
    stdout = open_memstream(&said, &size);
    int code = verb_explain.main(2, argv);
    fclose(stdout);
    stdout = out;
    if (code)
        fail_msg("explain %s: exit %d", name, code);
    return said;
}

static void assert_explained(const char *name, const char *as, const struct key *k) {
    struct arena a = {0};
    char *said = explain(name);
    if (!strstr(said, arena_printf(&a, "%s: %s\n", as, k->type)))
        fail_msg("explain %s says\n%s", name, said);
    free(said);
    arena_fini(&a);
}

static void test_every_key_is_explained_by_its_path(void **state) {
    (void)state;
    struct arena a = {0};
    size_t n = 0;
    for (const char **path = keys_paths(&a); *path; path++, n++) {
        const struct section *s = NULL;
        const struct key *k = keys_at(*path, &s);
        assert_non_null(k);
        bool deep = strchr(*path, '.') && strchr(strchr(*path, '.') + 1, '.');
        assert_explained(*path, deep ? *path : arena_printf(&a, "%s.%s", s->name, k->name), k);
    }
    assert_true(n > 100);
    arena_fini(&a);
}

static void test_every_key_is_explained_by_its_section_too(void **state) {
    (void)state;
    struct arena a = {0};
    for (size_t i = 0; sections[i]; i++)
        for (const struct key *k = sections[i]->keys; k->name; k++) {
            const char *name = arena_printf(&a, "%s.%s", sections[i]->name, k->name);
            assert_explained(name, name, k);
        }
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_is_explained_by_its_path),
        cmocka_unit_test(test_every_key_is_explained_by_its_section_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
