/* What a rank says that it holds is what malloc counts, and of a model that is divided over W ranks
 * the share that is promised: of zero the optimizer's state is 1/W, of fsdp all three and a layer. */
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

/* Of VGG-11 of width 16 and images of 28x28: numbers in all, parameters, and the largest layer's. */
enum { VALUES = 580186, TRAINED = 578810, UNIT = 128 * 128 * 9 };
enum {
    SLACK = 320 * 1024
}; /* of the heap, the ends of pages, and what else a worker has: of 12 MB */

struct held {
    size_t parameters, gradients, optimizer, activations, measured;
};

/* A rank of a world that never meets: what it holds is told before. */
static struct held ask(const char *mode, int world, int rank) {
    char here[PATH_MAX - 64] = {0}, command[2 * PATH_MAX], output[4096];
    struct held h;
    assert_true(readlink("/proc/self/exe", here, sizeof(here) - 1) > 0);
    *strrchr(here, '/') = 0;
    snprintf(
        command, sizeof(command),
        "RANK=%d WORLD_SIZE=%d MASTER_ADDR=localhost MASTER_PORT=9 %s/spawn_train_measured "
        "--network=vgg11 --width=16 --shards=4 --batch-size=8 --samples=8 --steps=1 --mode=%s 2>&1",
        rank, world, here, mode);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(output, 1, sizeof(output) - 1, f);
    output[n] = 0;
    pclose(f);
    const char *at = strstr(output, "holds parameters");
    if (!at || sscanf(at,
                      "holds parameters %zu, gradients %zu, optimizer state %zu, activations %zu "
                      "bytes measured %zu",
                      &h.parameters, &h.gradients, &h.optimizer, &h.activations, &h.measured) != 5)
        fail_msg("%s of %d, rank %d, does not say what it holds:\n%s", mode, world, rank, output);
    return h;
}

static void assert_is(size_t got, size_t want, const char *what, const char *mode, int world) {
    size_t slack = 16; /* shares are whole numbers */
    if (got + slack < want || got > want + slack)
        fail_msg("%s of %s, %d ranks: %zu bytes and not %zu", what, mode, world, got, want);
}

static void judge(const char *mode, int world, int rank) {
    struct held h = ask(mode, world, rank);
    bool parts = strcmp(mode, "fsdp") == 0, shares = parts || strcmp(mode, "zero") == 0;
    size_t w = (size_t)world, statistics = VALUES - TRAINED, last = rank == world - 1;
    size_t told = h.parameters + h.gradients + h.optimizer + h.activations;
    if (told > h.measured || h.measured > told + SLACK)
        fail_msg("%s of %d, rank %d: told %zu bytes, measured %zu", mode, world, rank, told,
                 h.measured);
    assert_is(h.optimizer, TRAINED * 4 / (shares ? w : 1), "optimizer state", mode, world);
    size_t own = parts ? TRAINED / w + last * statistics : VALUES;
    assert_is(h.parameters, 4 * (own + (parts ? UNIT : 0)), "parameters", mode, world);
    size_t gradients =
        parts ? 8 * own + (8 + 4) * (size_t)UNIT + 8 * (statistics + 2) : 12 * (size_t)VALUES + 8;
    assert_is(h.gradients, gradients, "gradients", mode, world);
}

static void test_every_rank_holds_its_share_and_no_more(void **state) {
    (void)state;
    static const char *const modes[] = {"ddp", "zero", "fsdp"};
    const char *build = getenv("BUILD");
    if (build && (strcmp(build, "asan") == 0 || strcmp(build, "tsan") == 0)) {
        puts("a sanitizer's malloc does not count as the C library's does");
        skip();
    }
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        for (int world = 1; world <= 4; world *= 2)
            for (int rank = 0; rank<world; rank += world> 1 ? world - 1 : 1)
                judge(modes[i], world, rank);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rank_holds_its_share_and_no_more),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
