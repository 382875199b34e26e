/* Loaders: each step's images, whoever asks in which order; and what is said where one cannot be asked, heard or started. */
#include "scenarios/jobs/ranktrain/data/loaders.h"
#include "scenarios/jobs/ranktrain/data/packing.h"
#include "scenarios/jobs/ranktrain/data/sampler.h"
#include "base/sys/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { COUNT = 40, BYTES = 2 * 3 * 3, BATCH = 8, PLACES = 4, LAST = 20 };

/* In place of the C library's: the send that fails (1: the next), and with what. */
static int fails_in, fails_with;

ssize_t send(int fd, const void *p, size_t n, int flags) {
    if (fails_in && --fails_in == 0) {
        errno = fails_with;
        return -1;
    }
    return syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

static const uint32_t places[PLACES] = {1, 2, 5, 7};
static struct images images;

/* Image i is of the grey i; `bad` has rotted. */
static void open_images(int bad) {
    static const struct images_shape shape = {
        .channels = 2, .side = 3, .classes = 7, .deviation = {1, 1}};
    struct packing p;
    struct err err;
    int fd = memfd_create("images", MFD_CLOEXEC);
    packing_begin(&p, fd, &shape, 0, 1);
    for (int i = 0; i < COUNT; i++) {
        uint8_t pixels[BYTES];
        memset(pixels, i, sizeof(pixels));
        assert_int_equal(packing_add(&p, pixels, (uint8_t)(i % 7), &err), 0);
    }
    assert_int_equal(packing_end(&p, &err), 0);
    packing_fini(&p);
    if (bad >= 0)
        assert_int_equal(pwrite(fd, "\377", 1, IMAGES_HEADER + bad * BYTES + 3), 1);
    assert_int_equal(images_open(fd, "some.images", &images, &err), 0);
    close(fd);
}

static struct loaders *start(int n, uint64_t last) {
    const struct loaders_job job = {.images = &images,
                                    .seed = 3,
                                    .batch = BATCH,
                                    .parts = 1,
                                    .places = places,
                                    .places_n = PLACES,
                                    .loaders = n,
                                    .last_step = last};
    struct loaders *l;
    struct err err;
    assert_int_equal(loaders_start(&job, &l, &err), 0);
    images.ahead = l;
    return l;
}

static void end(struct loaders *l) {
    loaders_end(l);
    images_close(&images);
    fails_in = 0;
}

static void assert_has(struct loaders *l, uint64_t step) {
    struct sampler s;
    struct err err;
    sampler_init(&s, 3, COUNT, BATCH, 1, false);
    const uint32_t *samples = sampler_step(&s, step);
    bool ours[COUNT] = {false};
    for (int i = 0; i < PLACES; i++) {
        uint32_t sample = samples[places[i]], number = COUNT;
        const uint8_t *image = loaders_find(l, sample);
        ours[sample] = true;
        assert_non_null(image);
        assert_ptr_equal(images_read(&images, sample, &err), image);
        for (int k = 0; k < BYTES; k++)
            assert_int_equal(image[k], sample);
        assert_true(loaders_number(l, image, &number));
        assert_int_equal(number, sample);
        assert_int_equal(images_number(&images, image), sample);
        assert_true(loaders_number(l, image + BYTES - 1, &number) && number == sample);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        if (!ours[i])
            assert_null(loaders_find(l, i));
    uint32_t number;
    const uint8_t *first = loaders_find(l, samples[places[0]]);
    assert_false(loaders_number(l, first - 1, &number));
    assert_false(loaders_number(l, first + PLACES * BYTES, &number));
    sampler_fini(&s);
}

static void test_steps_come_in_any_order(void **state) {
    (void)state;
    static const uint64_t orders[][8] = {{1, 2, 3, 4, 5, 6, 7, 8},
                                         {5, 6, 7, 1, 2, 3, 3, 4},
                                         {19, 20, 1, 20, 19, 18, 2, 3},
                                         {20, 20, 20, 1, 1, 13, 2, 20}};
    for (int n = 1; n <= 4; n++)
        for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
            struct err err = {0};
            open_images(-1);
            struct loaders *l = start(n, LAST);
            assert_null(loaders_find(l, 0));
            uint32_t number;
            assert_false(loaders_number(l, images.pixels, &number));
            for (int k = 0; k < 8; k++) {
                assert_int_equal(loaders_take(l, orders[i][k], -1, &err), 0);
                assert_has(l, orders[i][k]);
            }
            end(l);
        }
}

static void test_an_image_that_has_rotted_is_an_error_of_its_step(void **state) {
    (void)state;
    struct err err = {0};
    struct sampler s;
    uint64_t step = 0;
    sampler_init(&s, 3, COUNT, BATCH, 1, false);
    open_images((int)sampler_step(&s, 3)[places[2]]);
    uint32_t bad = s.taken[places[2]];
    struct loaders *l = start(2, LAST);
    int r = 0;
    while (r == 0 && step < 3)
        r = loaders_take(l, ++step, -1, &err);
    assert_int_equal(step, 3);
    assert_int_equal(r, -EBADMSG);
    char wanted[160];
    snprintf(wanted, sizeof(wanted),
             "some.images is damaged: image %u, at byte %u, does not have its checksum; prepare it "
             "again or remove it",
             bad, IMAGES_HEADER + bad * BYTES);
    assert_string_equal(err.msg, wanted);
    assert_int_equal(loaders_take(l, 3, -1, NULL), -EBADMSG);
    assert_int_equal(loaders_take(l, 4, -1, &err), 0); /* the others are as they were */
    assert_has(l, 4);
    sampler_fini(&s);
    end(l);
}

static void test_who_waits_for_images_can_be_called_off(void **state) {
    (void)state;
    struct err err = {0};
    open_images(-1);
    struct loaders *l = start(1, LAST);
    int wake = eventfd(1, EFD_CLOEXEC);
    int r = 0;
    for (uint64_t step = 1; step <= LAST && r == 0; step++)
        r = loaders_take(l, step, wake, &err); /* one that is there is taken all the same */
    assert_true(r == 0 || r == -ECANCELED);
    assert_int_equal(err.code, 0);
    close(wake);
    end(l);
}

/* The children of this process: the loaders, as they were started. */
static int children(pid_t ret[8]) {
    char path[64], text[256] = "", *save;
    int n = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    if (!fgets(text, sizeof(text), f))
        *text = 0;
    fclose(f);
    for (char *w = strtok_r(text, " ", &save); w && n < 8; w = strtok_r(NULL, " ", &save))
        ret[n++] = atoi(w);
    return n;
}

static void test_a_loader_that_is_killed_is_named(void **state) {
    (void)state;
    for (int victim = 0; victim < 2; victim++) {
        struct err err = {0};
        pid_t pids[8];
        char wanted[128];
        open_images(-1);
        struct loaders *l = start(2, LAST);
        assert_int_equal(children(pids), 2);
        assert_int_equal(loaders_take(l, 1, -1, &err), 0);
        assert_int_equal(kill(pids[victim], SIGKILL), 0);
        int r = 0;
        for (uint64_t step = 2; step <= LAST && r == 0; step++)
            r = loaders_take(l, step, -1, &err);
        assert_int_equal(r, -ECHILD);
        snprintf(wanted, sizeof(wanted),
                 "loader %d of 2, process %d, was ended by signal 9 (Killed)", victim,
                 (int)pids[victim]);
        assert_string_equal(err.msg, wanted);
        end(l);
        assert_int_equal(children(pids), 0);
    }
}

/* It takes no signal that is meant for the rank. */
static void test_a_loader_does_not_end_by_what_ends_a_rank(void **state) {
    (void)state;
    struct err err = {0};
    pid_t pids[8];
    open_images(-1);
    struct loaders *l = start(2, LAST);
    assert_int_equal(loaders_take(l, 1, -1, &err), 0);
    assert_int_equal(loaders_take(l, 2, -1, &err), 0); /* both have come so far */
    assert_int_equal(children(pids), 2);
    for (int i = 0; i < 2; i++) {
        char path[64], name[32] = "";
        kill(pids[i], SIGTERM);
        kill(pids[i], SIGINT);
        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pids[i]);
        FILE *f = fopen(path, "r");
        assert_non_null(fgets(name, sizeof(name), f));
        fclose(f);
        assert_string_equal(name, "rank-loader\n");
    }
    for (uint64_t step = 3; step <= LAST; step++) {
        assert_int_equal(loaders_take(l, step, -1, &err), 0);
        assert_has(l, step);
    }
    end(l);
}

/* It has not failed itself: then the system's word says why. */
static void test_a_loader_that_cannot_be_asked_is_named_with_the_reason(void **state) {
    (void)state;
    for (int which = 1; which <= 4; which++) {
        struct err err = {0};
        pid_t pids[8];
        char wanted[128];
        open_images(-1);
        struct loaders *l = start(2, LAST);
        fails_in = which;
        fails_with = which == 4 ? EPIPE : ECONNRESET;
        int r = loaders_take(l, 1, -1, &err);
        assert_int_equal(r, -fails_with);
        snprintf(wanted, sizeof(wanted), "loader %d of 2: %s", which % 2, strerror(fails_with));
        assert_string_equal(err.msg, wanted);
        end(l);
        assert_int_equal(children(pids), 0);
    }
}

/* Nobody asks beyond the last step. */
static void test_only_so_many_steps_are_asked_for(void **state) {
    (void)state;
    for (uint64_t last = 1; last <= 7; last++) {
        struct err err = {0};
        open_images(-1);
        struct loaders *l = start(1, last);
        fails_in = last < 3 ? (int)last + 1 : 4; /* two steps ahead, and the step itself */
        assert_int_equal(loaders_take(l, 1, -1, &err), 0);
        assert_int_equal(fails_in, 1);
        fails_in = 0;
        end(l);
    }
}

static int open_descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* With so few descriptors that a socket, a pipe or nothing can be opened any more. */
static void test_loaders_that_cannot_be_started_leave_nothing(void **state) {
    (void)state;
    struct rlimit was, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (int left = 0; left <= 8; left++) {
        const struct loaders_job job = {.images = &images,
                                        .seed = 3,
                                        .batch = BATCH,
                                        .parts = 1,
                                        .places = places,
                                        .places_n = PLACES,
                                        .loaders = 2,
                                        .last_step = LAST};
        struct loaders *l = NULL;
        struct err err = {0};
        pid_t pids[8];
        open_images(-1);
        int before = open_descriptors(), next = dup(0);
        close(next);
        few = was;
        few.rlim_cur = (rlim_t)(next + left);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int r = loaders_start(&job, &l, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        /* Four for each while it is started, of which two stay. */
        assert_int_equal(r, left < 6 ? -EMFILE : 0);
        if (r < 0) {
            char wanted[64];
            snprintf(wanted, sizeof(wanted), "loader %d: Too many open files", left >= 4);
            assert_string_equal(err.msg, wanted);
            assert_null(l);
        }
        images.ahead = l;
        end(l);
        assert_int_equal(open_descriptors(), before);
        assert_int_equal(children(pids), 0);
    }
}

int main(int argc, char **argv) {
    descriptors_open_standard(); /* what is told of numbers begins behind them */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_come_in_any_order),
        cmocka_unit_test(test_an_image_that_has_rotted_is_an_error_of_its_step),
        cmocka_unit_test(test_who_waits_for_images_can_be_called_off),
        cmocka_unit_test(test_a_loader_that_is_killed_is_named),
        cmocka_unit_test(test_a_loader_does_not_end_by_what_ends_a_rank),
        cmocka_unit_test(test_a_loader_that_cannot_be_asked_is_named_with_the_reason),
        cmocka_unit_test(test_only_so_many_steps_are_asked_for),
        cmocka_unit_test(test_loaders_that_cannot_be_started_leave_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
