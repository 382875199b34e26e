#include "base/hostlist.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct arena arena;
static struct hostlist list;
static struct err err;

static int clear(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static void expands(const char *text, const char *names) {
    BUF_FINI struct buf b = {0};
    if (hostlist_expand(text, &arena, &list, &err) != 0)
        fail_msg("%s: %s", text, err.msg);
    for (size_t i = 0; i < list.n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", list.names[i]);
    assert_string_equal(buf_str(&b), names);
    assert_null(list.names[list.n]);
}

static void refused(const char *text, const char *words) {
    memset(&err, 0, sizeof(err));
    assert_true(hostlist_expand(text, &arena, &list, &err) < 0);
    if (!strstr(err.msg, words))
        fail_msg("%s: \"%s\" is not in \"%s\"", text, words, err.msg);
}

static void test_brackets_are_written_out_in_their_order(void **state) {
    (void)state;
    expands("n0", "n0");
    expands("n[1-3,7],m05", "n1 n2 n3 n7 m05");
    expands("a,b-2,c.example", "a b-2 c.example");
    expands("n[7,1-2]", "n7 n1 n2");
    expands("n[3-3]x", "n3x");
    expands("n1,n1", "n1 n1");
}

static void test_numbers_keep_the_width_of_the_first_of_a_range(void **state) {
    (void)state;
    expands("gpu[008-011]", "gpu008 gpu009 gpu010 gpu011");
    expands("n[01,1,001]", "n01 n1 n001");
    expands("n[8-10]", "n8 n9 n10");
    expands("n[09-100]", "n09 n10 n11 n12 n13 n14 n15 n16 n17 n18 n19 n20 n21 n22 n23 n24 n25 n26 "
                         "n27 n28 n29 n30 n31 n32 n33 n34 n35 n36 n37 n38 n39 n40 n41 n42 n43 n44 "
                         "n45 n46 n47 n48 n49 n50 n51 n52 n53 n54 n55 n56 n57 n58 n59 n60 n61 n62 "
                         "n63 n64 n65 n66 n67 n68 n69 n70 n71 n72 n73 n74 n75 n76 n77 n78 n79 n80 "
                         "n81 n82 n83 n84 n85 n86 n87 n88 n89 n90 n91 n92 n93 n94 n95 n96 n97 n98 "
                         "n99 n100");
}

static void test_several_brackets_of_a_word_are_all_combinations(void **state) {
    (void)state;
    expands("r[1-2]n[0-1]", "r1n0 r1n1 r2n0 r2n1");
    expands("r[1-2]-x[1]", "r1-x1 r2-x1");
}

static void test_what_is_no_list_is_refused_with_its_word(void **state) {
    (void)state;
    refused("", "missing");
    refused("a,,b", "missing");
    refused("a,", "missing");
    refused("m,n[1-", "n[1-: a bracket is not closed");
    refused("n1]", "not opened");
    refused("n[1-2]]", "not opened");
    refused("n[]", "hold numbers");
    refused("n[1,]", "hold numbers");
    refused("n[-2]", "hold numbers");
    refused("n[1-2-3]", "hold numbers");
    refused("n[[1]]", "hold numbers");
    refused("n[1 ]", "hold numbers");
    refused("n[3-1]", "smaller number");
    refused("n[0-999999999]", "too long");
    refused("n[0-9999999999]", "hold numbers");
    refused("a b", "no blanks");
    refused("a\tb", "no blanks");
}

static void test_what_would_fill_the_memory_is_refused(void **state) {
    (void)state;
    char name[HOSTLIST_NAME_MAX + 8];
    refused("n[0-999][0-999]", "more than 65536 hosts");
    memset(name, 'n', sizeof(name));
    name[HOSTLIST_NAME_MAX] = '\0';
    expands(name, name);
    name[HOSTLIST_NAME_MAX] = 'n';
    name[HOSTLIST_NAME_MAX + 1] = '\0';
    refused(name, "too long");
    memcpy(name + HOSTLIST_NAME_MAX - 2, "[100]", 6);
    refused(name, "too long");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_brackets_are_written_out_in_their_order, clear),
        cmocka_unit_test_teardown(test_numbers_keep_the_width_of_the_first_of_a_range, clear),
        cmocka_unit_test_teardown(test_several_brackets_of_a_word_are_all_combinations, clear),
        cmocka_unit_test_teardown(test_what_is_no_list_is_refused_with_its_word, clear),
        cmocka_unit_test_teardown(test_what_would_fill_the_memory_is_refused, clear),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
