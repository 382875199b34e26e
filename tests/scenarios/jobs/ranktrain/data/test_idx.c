#include "scenarios/jobs/ranktrain/data/idx.h"
#include "scenarios/jobs/ranktrain/data/generated.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Files of three images, the first n bytes of them. */
static int file_of(int dimensions, size_t n) {
    static uint8_t bytes[IDX_IMAGES_HEADER + 3 * IDX_PIXELS];
    memset(bytes, 7, sizeof(bytes));
    idx_put_header(bytes, dimensions, 3);
    int fd = memfd_create("idx", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes, n), n);
    return fd;
}

static int map(int images, int labels, struct idx *d, struct err *err) {
    int r = idx_map(images, labels, d, err);
    close(images);
    close(labels);
    return r;
}

enum { IMAGES = IDX_IMAGES_HEADER + 3 * IDX_PIXELS, LABELS = IDX_LABELS_HEADER + 3 };

static void test_images_and_labels_are_found(void **state) {
    (void)state;
    struct idx d;
    struct err err;
    uint8_t labels[IDX_LABELS_HEADER + 12];
    idx_put_header(labels, 1, 12);
    for (int i = 0; i < 12; i++)
        labels[IDX_LABELS_HEADER + i] = (uint8_t)(i % 10);
    static uint8_t pixels[IDX_IMAGES_HEADER + 12 * IDX_PIXELS];
    idx_put_header(pixels, 3, 12);
    for (int i = 0; i < 12; i++)
        memset(pixels + IDX_IMAGES_HEADER + i * IDX_PIXELS, 100 + i, IDX_PIXELS);
    int a = memfd_create("images", MFD_CLOEXEC), b = memfd_create("labels", MFD_CLOEXEC);
    assert_int_equal(write(a, pixels, sizeof(pixels)), sizeof(pixels));
    assert_int_equal(write(b, labels, sizeof(labels)), sizeof(labels));
    assert_int_equal(map(a, b, &d, &err), 0);
    assert_int_equal(d.count, 12);
    assert_int_equal(idx_label(&d, 11), 1);
    assert_int_equal(idx_image(&d, 11)[0], 111);
    assert_int_equal(idx_image(&d, 11)[IDX_PIXELS - 1], 111);
    idx_unmap(&d);
}

static void test_files_cut_short_or_of_another_kind_are_refused(void **state) {
    (void)state;
    struct idx d;
    struct err err;
    assert_int_equal(map(file_of(3, IMAGES - 1), file_of(1, LABELS + 5), &d, &err), -EBADMSG);
    assert_int_equal(map(file_of(3, IMAGES), file_of(1, LABELS + 5), &d, &err), -EBADMSG);
    assert_int_equal(map(file_of(1, IMAGES), file_of(1, LABELS + 5), &d, &err), -EBADMSG);
    assert_int_equal(map(file_of(3, 10), file_of(1, 10), &d, &err), -EBADMSG);
    assert_int_equal(map(file_of(3, 0), file_of(1, 0), &d, &err), -EBADMSG);
}

static void test_generated_files_are_of_that_format_and_always_the_same(void **state) {
    (void)state;
    struct idx d, again;
    struct err err;
    for (int i = 0; i < 2; i++) {
        int images = memfd_create("images", MFD_CLOEXEC), labels = memfd_create("l", MFD_CLOEXEC);
        struct generated_data g = {.test = true};
        assert_int_equal(generated_write(images, &g, &err), 0);
        g.labels = true;
        assert_int_equal(generated_write(labels, &g, &err), 0);
        assert_int_equal(map(images, labels, i ? &again : &d, &err), 0);
    }
    assert_int_equal(d.count, GENERATED_TEST);
    assert_memory_equal(d.images, again.images, (size_t)d.count * IDX_PIXELS);
    assert_memory_equal(d.labels, again.labels, d.count);
    idx_unmap(&d);
    idx_unmap(&again);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_and_labels_are_found),
        cmocka_unit_test(test_files_cut_short_or_of_another_kind_are_refused),
        cmocka_unit_test(test_generated_files_are_of_that_format_and_always_the_same),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
