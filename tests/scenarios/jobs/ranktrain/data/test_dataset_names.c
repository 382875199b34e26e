/* Data by their names, and what a directory is taken for. */
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"

#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_data_are_found_by_the_names_that_people_write(void **state) {
    (void)state;
    static const struct {
        const char *said, *name; /* NULL: there is none */
    } rows[] = {{"mnist", "mnist"},
                {"MNIST", "mnist"},
                {"Fashion-MNIST", "fashion-mnist"},
                {"fashion_mnist", "fashion-mnist"},
                {"FashionMNIST", "fashion-mnist"},
                {"CIFAR-10", "cifar10"},
                {"cifar_10", "cifar10"},
                {"Cifar10", "cifar10"},
                {"folder", "folder"},
                {"GENERATED", "generated"},
                {"", NULL},
                {"mnis", NULL},
                {"mnistt", NULL},
                {"fashion mnist", NULL},
                {"fashion", NULL},
                {"cifar100", NULL},
                {"cifar1", NULL},
                {"mn1st", NULL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err err = {0};
        char wanted[160];
        const struct dataset_kind *k = dataset_find(rows[i].said, &err);
        if (rows[i].name && !k)
            fail_msg("%s is not found", rows[i].said);
        assert_int_equal(k != NULL, rows[i].name != NULL);
        snprintf(
            wanted, sizeof(wanted),
            "--dataset=%s is not known: there are cifar10, fashion-mnist, folder, generated, mnist",
            rows[i].said);
        if (k)
            assert_string_equal(k->name, rows[i].name);
        else
            assert_string_equal(err.msg, wanted);
    }
    char names[128], few[9];
    dataset_names(names, sizeof(names));
    assert_string_equal(names, "cifar10, fashion-mnist, folder, generated, mnist");
    dataset_names(few, sizeof(few));
    assert_string_equal(few, "cifar10,");
    assert_string_equal(dataset_guess(NULL), "fashion-mnist");
    assert_string_equal(dataset_guess("/nowhere"), "fashion-mnist");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_are_found_by_the_names_that_people_write),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
