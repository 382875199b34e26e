#include "scenarios/jobs/ranktrain/data/images.h"
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/data/packing.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { COUNT = 11, BYTES = 2 * 3 * 3 };

static const struct images_shape shape = {
    .channels = 2, .side = 3, .classes = 7, .mean = {0.5f, 0.25f}, .deviation = {1, 0.5f}};

static int pack(uint32_t part, uint32_t parts) {
    struct packing p;
    struct err err = {0};
    int fd = memfd_create("images", MFD_CLOEXEC);
    packing_begin(&p, fd, &shape, part, parts);
    for (uint8_t i = 0; i < COUNT; i++) {
        uint8_t pixels[BYTES];
        memset(pixels, 100 + i, sizeof(pixels));
        assert_int_equal(packing_add(&p, pixels, i % 7, &err), 0);
    }
    assert_int_equal(packing_end(&p, &err), 0);
    packing_fini(&p);
    return fd;
}

static void poke(int fd, off_t at, uint8_t value) {
    assert_int_equal(pwrite(fd, &value, 1, at), 1);
}

/* The header's own checksum, made right again. */
static void seal(int fd) {
    struct images_header h;
    assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
    h.crc = (uint32_t)crc32(0, (const unsigned char *)&h, offsetof(struct images_header, crc));
    assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
}

static void assert_refused(int fd, const char *text) {
    struct images d;
    struct err err = {0};
    assert_int_equal(images_open(fd, "some.images", &d, &err), -EBADMSG);
    if (!strstr(err.msg, text) || !strstr(err.msg, "some.images"))
        fail_msg("'%s' not found in: %s", text, err.msg);
    close(fd);
}

static void test_images_are_found_again_with_labels_and_shape(void **state) {
    (void)state;
    struct images d;
    struct err err = {0};
    int fd = pack(0, 1);
    assert_int_equal(images_open(fd, "x", &d, &err), 0);
    close(fd);
    assert_int_equal(d.count, COUNT);
    assert_memory_equal(&d.shape, &shape, sizeof(shape));
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint8_t *p = images_read(&d, i, &err);
        assert_int_equal(p[0], 100 + i);
        assert_int_equal(p[BYTES - 1], 100 + i);
        assert_int_equal(images_label(&d, i), i % 7);
        assert_int_equal(images_number(&d, p), i);
    }
    images_close(&d);
}

static void test_a_part_has_every_nth_image_and_knows_their_numbers(void **state) {
    (void)state;
    uint32_t all = 0;
    for (uint32_t part = 0; part < 3; part++) {
        struct images d;
        struct err err = {0};
        int fd = pack(part, 3);
        assert_int_equal(images_open(fd, "x", &d, &err), 0);
        close(fd);
        for (uint32_t i = 0; i < d.count; i++, all++) {
            const uint8_t *p = images_read(&d, i, &err);
            assert_int_equal(images_number(&d, p), part + 3 * i);
            assert_int_equal(p[0], 100 + part + 3 * i);
        }
        images_close(&d);
    }
    assert_int_equal(all, COUNT);
}

static void test_what_is_no_such_file_is_refused_with_the_byte(void **state) {
    (void)state;
    int fd = pack(0, 1);
    poke(fd, 0, 'X');
    assert_refused(fd, "begins with something else");
    fd = pack(0, 1);
    poke(fd, 8, 9);
    assert_refused(fd, "version 9");
    fd = pack(0, 1);
    poke(fd, 20, 9);
    assert_refused(fd, "the header's checksum at byte");
    fd = pack(0, 1);
    assert_int_equal(ftruncate(fd, IMAGES_HEADER + 5), 0);
    assert_refused(fd, "is cut short at byte 4101");
    fd = pack(0, 1);
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_refused(fd, "is cut short at byte 100");
    fd = pack(0, 1);
    assert_int_equal(ftruncate(fd, 10000), 0);
    assert_refused(fd, "goes on at byte");
    assert_refused(memfd_create("empty", MFD_CLOEXEC), "is cut short at byte 0");
}

/* What is sealed is still held against what can be, at each bound and beyond it. */
static void test_a_header_may_say_what_can_be_and_no_more(void **state) {
    (void)state;
#define AT(member) offsetof(struct images_header, member)
    static const float none = 0, some = 0.001f, less = -1;
    static const struct {
        size_t at;
        int32_t value;
        const float *real; /* in its place */
        bool possible;
    } rows[] = {{AT(shape.channels), 0, NULL, false},
                {AT(shape.channels), 1, NULL, true},
                {AT(shape.channels), -1, NULL, false},
                {AT(shape.channels), IMAGES_CHANNELS + 1, NULL, false},
                {AT(shape.side), 0, NULL, false},
                {AT(shape.side), 1, NULL, true},
                {AT(shape.side), IMAGES_SIDE, NULL, true},
                {AT(shape.side), IMAGES_SIDE + 1, NULL, false},
                {AT(shape.classes), 0, NULL, false},
                {AT(shape.classes), 1, NULL, true},
                {AT(shape.classes), IMAGES_CLASSES, NULL, true},
                {AT(shape.classes), IMAGES_CLASSES + 1, NULL, false},
                {AT(shape.deviation[0]), 0, &none, false},
                {AT(shape.deviation[0]), 0, &some, true},
                {AT(shape.deviation[1]), 0, &less, false},
                {AT(shape.deviation[2]), 0, &none, true}, /* there is no third channel */
                {AT(parts), 0, NULL, false},
                {AT(part), 0, NULL, true},
                {AT(part), 1, NULL, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct images d = {0};
        struct err err = {0};
        int fd = pack(0, 1);
        const void *value = rows[i].real ? (const void *)rows[i].real : &rows[i].value;
        assert_int_equal(pwrite(fd, value, sizeof(rows[i].value), (off_t)rows[i].at), 4);
        seal(fd);
        int r = images_open(fd, "some.images", &d, &err);
        bool refused = strcmp(err.msg, "some.images has a header that makes no sense: prepare it "
                                       "again") == 0;
        if (refused == rows[i].possible || (refused && r != -EBADMSG))
            fail_msg("row %zu: %d, %s", i, r, err.msg);
        if (r == 0)
            images_close(&d);
        close(fd);
    }
}

static void test_what_cannot_be_mapped_is_named(void **state) {
    (void)state;
    struct images d;
    struct err err = {0};
    int ends[2], fd = pack(0, 1);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(images_open(ends[0], "some.images", &d, &err), -EINVAL);
    assert_string_equal(err.msg, "some.images is no plain file");
    close(ends[0]);
    close(ends[1]);
    poke(fd, 8, 9);
    assert_int_equal(images_open(fd, "some.images", &d, &err), -EBADMSG);
    assert_string_equal(err.msg,
                        "some.images is of version 9 and this ranktrain reads 2: prepare it "
                        "again (ranktrain prepare)");
    close(fd);
    assert_int_equal(images_open(fd, "some.images", &d, &err), -EBADF);
    assert_non_null(strstr(err.msg, "some.images cannot be looked at: "));
}

static void test_a_label_that_has_changed_is_refused(void **state) {
    (void)state;
    struct images_header h;
    int fd = pack(0, 1);
    off_t labels = IMAGES_HEADER + COUNT * BYTES;
    poke(fd, labels + 3, 200);
    assert_refused(fd, "is damaged: labels and checksums from byte 4294");
    fd = pack(0, 1);
    poke(fd, labels + 3, 200);
    uint8_t tail[12 + COUNT * 4];
    assert_int_equal(pread(fd, tail, sizeof(tail), labels), sizeof(tail));
    assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
    h.tail = (uint32_t)crc32(0, tail, sizeof(tail));
    assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
    seal(fd);
    assert_refused(fd, "label 3 at byte 4297 is 200, more than 6");
}

static void test_an_image_that_has_rotted_is_refused_when_it_is_read(void **state) {
    (void)state;
    struct images d;
    struct err err = {0};
    int fd = pack(0, 1);
    poke(fd, IMAGES_HEADER + 4 * BYTES + 7, 1);
    assert_int_equal(images_open(fd, "some.images", &d, &err), 0);
    close(fd);
    assert_non_null(images_read(&d, 3, &err));
    assert_null(images_read(&d, 4, &err));
    assert_string_equal(err.msg, "some.images is damaged: image 4, at byte 4168, does not have its "
                                 "checksum; prepare it again or remove it");
    images_close(&d);
}

/* Every byte of header, labels and checksums, changed: noticed when it is opened, or when the image
 * is read, or of no meaning (what fills up). */
static void test_no_changed_byte_is_taken_for_another_image(void **state) {
    (void)state;
    struct err err = {0};
    uint64_t seed = 5;
    struct stat st;
    int whole = pack(0, 1);
    assert_int_equal(fstat(whole, &st), 0);
    close(whole);
    for (int i = 0; i < 3000; i++) {
        int fd = pack(0, 1);
        off_t at = draw_below(&seed, 3)
                       ? IMAGES_HEADER + draw_below(&seed, (uint32_t)st.st_size - IMAGES_HEADER)
                       : draw_below(&seed, sizeof(struct images_header));
        uint8_t was, now;
        assert_int_equal(pread(fd, &was, 1, at), 1);
        now = (uint8_t)(was ^ (1u << draw_below(&seed, 8)));
        poke(fd, at, now);
        if (draw_below(&seed, 2))
            seal(fd);
        struct images d;
        if (images_open(fd, "x", &d, &err) == 0) {
            for (uint32_t k = 0; k < d.count; k++) {
                const uint8_t *p = images_read(&d, k, &err);
                if (p && d.bytes == BYTES && d.parts == 1)
                    assert_int_equal(p[0], 100 + k);
            }
            images_close(&d);
        }
        close(fd);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_are_found_again_with_labels_and_shape),
        cmocka_unit_test(test_a_part_has_every_nth_image_and_knows_their_numbers),
        cmocka_unit_test(test_what_is_no_such_file_is_refused_with_the_byte),
        cmocka_unit_test(test_a_header_may_say_what_can_be_and_no_more),
        cmocka_unit_test(test_what_cannot_be_mapped_is_named),
        cmocka_unit_test(test_a_label_that_has_changed_is_refused),
        cmocka_unit_test(test_an_image_that_has_rotted_is_refused_when_it_is_read),
        cmocka_unit_test(test_no_changed_byte_is_taken_for_another_image),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
