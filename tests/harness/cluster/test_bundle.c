/* What our programs bring along into a node that has a root file system of its own. */
#include "harness/cluster/bundle.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct buf own_image(void) {
    struct buf image = {0};
    assert_int_equal(file_read("/proc/self/exe", 256 << 20, &image, NULL), 0);
    return image;
}

static void test_a_program_names_its_loader_and_another_can_be_written_there(void **state) {
    (void)state;
    struct buf image = own_image();
    const char *loader = bundle_interpreter(&image);
    assert_non_null(loader);
    assert_true(*loader == '/' && file_exists(loader));
    assert_int_equal(bundle_set_interpreter(&image, BUNDLE_LOADER, NULL), 0);
    assert_string_equal(bundle_interpreter(&image), BUNDLE_LOADER);
    buf_fini(&image);
}

static void test_a_loader_with_a_longer_name_is_refused(void **state) {
    (void)state;
    struct err err = {0};
    struct buf image = own_image();
    assert_int_equal(
        bundle_set_interpreter(&image, "/a/folder/with/a/name/that/is/much/longer/than/usual/ld.so",
                               &err),
        -ENAMETOOLONG);
    assert_non_null(strstr(err.msg, "no room for /a/folder"));
    buf_fini(&image);
}

static void test_what_is_no_program_has_no_loader(void **state) {
    (void)state;
    struct buf script = {0}, cut = own_image();
    buf_puts(&script,
             "#!/bin/sh\necho a script that is longer than the head of a program's file\n");
    assert_null(bundle_interpreter(&script));
    assert_int_equal(bundle_set_interpreter(&script, "/x", NULL), -ENOEXEC);
    cut.len = 70; /* a head that promises segments which are not there */
    assert_string_equal(bundle_interpreter(&cut), "");
    cut.len = 10;
    assert_null(bundle_interpreter(&cut));
    buf_fini(&script);
    buf_fini(&cut);
}

static void test_libraries_are_taken_from_the_loaders_trace_once_each(void **state) {
    (void)state;
    char dir[] = "/tmp/bundle_XXXXXX", trace[600], first[100];
    assert_non_null(mkdtemp(dir));
    snprintf(trace, sizeof(trace), "%s/libz.so.1.2", dir);
    assert_int_equal(file_write(trace, "z", 1, NULL), 0);
    snprintf(first, sizeof(first), "libz.so.1=%s/libz.so.1.2", dir);
    snprintf(trace, sizeof(trace),
             "\tlinux-vdso.so.1 (0x00007f00)\n"
             "\tlibz.so.1 => %s/libz.so.1.2 (0x00007f01)\n"
             "\tlibgone.so.3 => not found\n"
             "\tlibz.so.1 => %s/libz.so.1.2 (0x00007f02)\n"
             "\t%s/libz.so.1.2 (0x00007f03)\n"
             "\tlibnowhere.so => %s/nowhere (0x00007f04)\n",
             dir, dir, dir, dir);
    struct bundle b = {0};
    bundle_add_trace(&b, trace);
    assert_int_equal(b.libraries.n, 2);
    assert_string_equal(b.libraries.v[0], first);
    assert_true(str_starts(b.libraries.v[1], "libz.so.1.2=")); /* one named by its path alone */
    assert_null(b.libraries.v[2]);
    bundle_fini(&b);
    file_remove_tree(dir, NULL);
}

/* Our own programs lie in $BIN when the tests run. */
static void test_packed_programs_run_with_the_loader_they_bring(void **state) {
    (void)state;
    const char *bin = getenv("BIN");
    char to[] = "/tmp/bundle_XXXXXX", copy[64];
    struct bundle b;
    struct err err = {0};
    struct stat st;
    struct buf image = {0};
    if (!bin || !mkdtemp(to))
        skip();
    if (bundle_pack(&b, bin, to, &err) != 0)
        fail_msg("%s", err.msg);
    snprintf(copy, sizeof(copy), "%s/rankprobe", to);
    assert_int_equal(stat(copy, &st), 0);
    assert_true(st.st_mode & 0100);
    assert_int_equal(file_read(copy, 256 << 20, &image, NULL), 0);
    assert_string_equal(bundle_interpreter(&image), BUNDLE_LOADER);
    bool loader = false, c_library = false;
    for (size_t i = 0; i < b.libraries.n; i++) {
        loader |= str_starts(b.libraries.v[i], "ld.so=/");
        c_library |= str_starts(b.libraries.v[i], "libc.so.6=/");
    }
    assert_true(loader && c_library);
    snprintf(copy, sizeof(copy), "%s/rankquake", to);
    assert_false(file_exists(copy)); /* it never runs in a node under its own name */
    buf_fini(&image);
    bundle_fini(&b);
    file_remove_tree(to, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_names_its_loader_and_another_can_be_written_there),
        cmocka_unit_test(test_a_loader_with_a_longer_name_is_refused),
        cmocka_unit_test(test_what_is_no_program_has_no_loader),
        cmocka_unit_test(test_libraries_are_taken_from_the_loaders_trace_once_each),
        cmocka_unit_test(test_packed_programs_run_with_the_loader_they_bring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
