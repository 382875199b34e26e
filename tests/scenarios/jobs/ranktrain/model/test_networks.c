/* Networks by their names. */
#include "scenarios/jobs/ranktrain/model/networks.h"

#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_networks_are_found_by_the_names_that_people_write(void **state) {
    (void)state;
    static const struct {
        const char *said, *name;
        int width;
    } rows[] = {{"lenet", "lenet", 6},
                {"LeNet", "lenet", 6},
                {"LENET", "lenet", 6},
                {"ResNet-18", "resnet18", 64},
                {"resnet_18", "resnet18", 64},
                {"ResNet32", "resnet32", 16},
                {"resnet50", "resnet50", 64},
                {"resnet110", "resnet110", 16},
                {"resnet-152", "resnet152", 64},
                {"VGG11", "vgg11", 64},
                {"vgg_16", "vgg16", 64},
                {"", NULL, 0},
                {"lene", NULL, 0},
                {"lenett", NULL, 0},
                {"resnet", NULL, 0},
                {"resnet1", NULL, 0},
                {"resnet181", NULL, 0},
                {"vgg 11", NULL, 0},
                {"vgg12", NULL, 0},
                {"VGG1Q", NULL, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err err = {0};
        char wanted[200];
        const struct architecture *k = network_find(rows[i].said, &err);
        if (rows[i].name && !k)
            fail_msg("%s is not found", rows[i].said);
        assert_int_equal(k != NULL, rows[i].name != NULL);
        snprintf(wanted, sizeof(wanted),
                 "--network=%s is not known: there are lenet, resnet18, resnet32, resnet50, "
                 "resnet110, resnet152, vgg11, vgg16",
                 rows[i].said);
        if (k) {
            assert_string_equal(k->name, rows[i].name);
            assert_int_equal(k->width, rows[i].width);
        } else
            assert_string_equal(err.msg, wanted);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks_are_found_by_the_names_that_people_write),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
