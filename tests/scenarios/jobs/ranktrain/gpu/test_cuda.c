/* Whole jobs on the fake runtime: the same hash at every world size, a sentence for all that may be
 * wrong with a device, and nothing left on it. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

/* Of VGG-11 of width 8 and images of 28x28: numbers in all, parameters, and the largest layer's. */
enum { VALUES = 146098, TRAINED = 145410, UNIT = 64 * 64 * 9 };

static char output[1 << 16], report[64], place[PATH_MAX - 512];

static int begin(void **state) {
    (void)state;
    char *slash;
    ssize_t n = readlink("/proc/self/exe", place, sizeof(place) - 1);
    assert_true(n > 0);
    place[n] = 0;
    for (int up = 0; up < 2 && (slash = strrchr(place, '/')); up++) /* to .../ranktrain */
        *slash = 0;
    snprintf(report, sizeof(report), "%s/cuda-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int fd = mkstemp(report);
    close(fd);
    return fd < 0 ? -1 : 0;
}

static int end(void **state) {
    (void)state;
    return unlink(report);
}

/* Runs a shell's words and keeps what they said, stderr too. Returns the exit status. */
static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int run(const char *format, ...) {
    static char command[8 * 1024];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(output, 1, sizeof(output) - 1, f);
    output[n] = 0;
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* One worker with a device that is as the words of RANKTRAIN_FAKE_CUDA say. */
static int train(const char *fake, const char *environment, const char *options) {
    assert_int_equal(truncate(report, 0), 0);
    return run(
        "RANKTRAIN_CUDA=%s/../../../fakes/ranktrain_cuda.so RANKTRAIN_FAKE_CUDA=%s,report=%s "
        "%s %s/spawn_train --log-every=1 %s 2>&1",
        place, fake, report, environment, place, options);
}

static void assert_said(const char *text) {
    if (!strstr(output, text))
        fail_msg("'%s' not found in:\n%s", text, output);
}

static void assert_silent_about(const char *text) {
    if (strstr(output, text))
        fail_msg("'%s' found in:\n%s", text, output);
}

/* Nothing has been left in any of n processes. */
static void assert_all_given_back(int n) {
    char line[256];
    FILE *f = fopen(report, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        n--;
        if (!strstr(line, " bytes 0 pinned 0 streams 0 events 0 "))
            fail_msg("left on the device: %s", line);
    }
    fclose(f);
    assert_int_equal(n, 0);
}

static void test_every_world_size_ends_with_the_same_model_and_gives_all_back(void **state) {
    (void)state;
    char want[65] = "";
    for (int world = 1; world <= 4; world++) {
        assert_int_equal(truncate(report, 0), 0);
        run("RANKTRAIN_CUDA=%s/../../../fakes/ranktrain_cuda.so "
            "RANKTRAIN_FAKE_CUDA=devices=3,report=%s %s/spawn_world %d 0 0 0 0 -- %s/spawn_train "
            "--device=cuda --steps=3 2>&1",
            place, report, place, world, place);
        const char *model = strstr(output, "\nmodel ");
        if (!model)
            fail_msg("no model in:\n%s", output);
        assert_said("label cuda Fake GPU 13.0/13.0");
        if (*want)
            assert_memory_equal(model + 7, want, 64);
        memcpy(want, model + 7, 64);
        assert_all_given_back(world);
    }
}

/* Every way to share the work, by ranks on devices of their own or on one, or by one process that has
 * several devices or several streams of one. */
static void test_every_mode_of_every_network_ends_with_one_model(void **state) {
    (void)state;
    static const char *const networks[] = {"lenet", "resnet18 --width=2 --optimizer=adam"};
    static const struct {
        int world, devices;
        const char *mode;
    } rows[] = {{1, 1, "ddp"},
                {2, 2, "ddp --overlap"},
                {3, 1, "fsdp"},
                {2, 1, "zero"},
                {2, 2, "manual"},
                {3, 2, "ps"},
                {1, 3, "dp --devices=3"},
                {1, 1, "dp --devices=2"}};
    for (size_t n = 0; n < sizeof(networks) / sizeof(*networks); n++) {
        char want[65] = "";
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i += 1 + n) {
            assert_int_equal(truncate(report, 0), 0);
            run("RANKTRAIN_CUDA=%s/../../../fakes/ranktrain_cuda.so "
                "RANKTRAIN_FAKE_CUDA=devices=%d,report=%s %s/spawn_world %d 0 0 0 0 -- "
                "%s/spawn_train --device=cuda --steps=2 --samples=24 --batch-size=12 --shards=6 "
                "--network=%s --mode=%s 2>&1",
                place, rows[i].devices, report, place, rows[i].world, place, networks[n],
                rows[i].mode);
            const char *model = strstr(output, "\nmodel ");
            if (!model)
                fail_msg("no model of %s in:\n%s", rows[i].mode, output);
            if (*want && memcmp(model + 7, want, 64) != 0)
                fail_msg("%s, %s: not %s but:\n%s", networks[n], rows[i].mode, want, output);
            memcpy(want, model + 7, 64);
            assert_all_given_back(rows[i].world);
        }
    }
}

/* The most that was on the device is what each rank said that it holds, less what it holds in the
 * host's memory: the whole or its part of weights and moments, and sums. */
static void test_the_memory_that_is_told_is_what_was_taken_of_the_device(void **state) {
    (void)state;
    static const char *const modes[] = {"ddp", "zero", "fsdp"};
    for (size_t i = 0; i < 3; i++)
        for (int world = 1; world <= 4; world += 3) {
            size_t told = 0, taken = 0, n[4], host = 0;
            char *at = output, line[256];
            assert_int_equal(truncate(report, 0), 0);
            run("RANKTRAIN_CUDA=%s/../../../fakes/ranktrain_cuda.so "
                "RANKTRAIN_FAKE_CUDA=devices=4,report=%s %s/spawn_world %d 0 0 0 0 -- "
                "%s/spawn_train --device=cuda --steps=1 --samples=4 --batch-size=4 --shards=4 "
                "--network=vgg11 --width=8 --mode=%s 2>&1",
                place, report, place, world, place, modes[i]);
            for (int rank = 0; rank < world; rank++) {
                at = strstr(at, "holds parameters ");
                assert_non_null(at);
                assert_int_equal(sscanf(at,
                                        "holds parameters %zu, gradients %zu, optimizer state "
                                        "%zu, activations %zu bytes",
                                        &n[0], &n[1], &n[2], &n[3]),
                                 4);
                told += n[0] + n[1] + n[2] + n[3];
                at++;
            }
            FILE *f = fopen(report, "re");
            while (fgets(line, sizeof(line), f))
                taken += (size_t)atoll(strstr(line, " peak ") + 6);
            fclose(f);
            size_t w = (size_t)world;
            host = i == 2 ? VALUES * 4 + TRAINED * 4 + w * UNIT * 12 + VALUES * 8 +
                                w * (VALUES - TRAINED + 2) * 8
                          : w * (VALUES * 12 + 8) + (i == 0 ? w : 1) * TRAINED * 4;
            if (told != taken + host)
                fail_msg("%s of %d ranks: told %zu, taken %zu and %zu:\n%s", modes[i], world, told,
                         taken, host, output);
        }
}

static void test_each_rank_of_a_node_has_the_device_of_its_number(void **state) {
    (void)state;
    static const struct {
        const char *environment, *want;
    } rows[] = {{"LOCAL_RANK=0", " device 0 "},
                {"LOCAL_RANK=2", " device 2 "},
                {"LOCAL_RANK=4", " device 1 "},
                {"LOCAL_RANK=1 CUDA_VISIBLE_DEVICES=2,0", " device 1 "},
                {"LOCAL_RANK=1 CUDA_VISIBLE_DEVICES=2", " device 0 "}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        train("devices=3,sticky=700@launch:1", rows[i].environment, "--device=cuda");
        run("cat %s", report);
        assert_said(rows[i].want);
    }
}

/* What is wrong, whether --device=auto may go on without, and the sentence. */
static const struct wrong {
    const char *fake, *environment, *sentence;
    int may_go_on;
} wrongs[] = {
    {"driver=0", "", "there is no NVIDIA driver here (libcuda.so.1): install one", 1},
    {"driver=12040", "",
     "the NVIDIA driver is too old: it can do CUDA 12.4 and this ranktrain was built with CUDA "
     "13.0",
     1},
    {"devices=0", "", "the NVIDIA driver finds no GPU on this machine", 1},
    {"devices=1", "CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES= hides every GPU", 1},
    {"devices=2", "CUDA_VISIBLE_DEVICES=7",
     "CUDA_VISIBLE_DEVICES=7 names no GPU of this machine: nvidia-smi -L", 0},
    {"busy", "", "GPU 0 (Fake GPU) is busy or not available", 0},
    {"busy,mode=exclusive", "", "its compute mode is Exclusive_Process", 0},
    {"busy,mode=prohibited", "", "its compute mode is Prohibited", 0},
    {"full", "", "GPU 0 (Fake GPU) is full", 0},
    {"oom-at=1,memory=1073741824", "",
     "GPU 0 (Fake GPU) is full: allocating the network failed with 1024 of 1024 MiB free", 0},
    {"memory=4194304", "", "failed with 4 of 4 MiB free", 0},
};
enum { WRONGS = sizeof(wrongs) / sizeof(*wrongs) };

static void test_what_is_wrong_with_a_device_is_said_and_nothing_is_left(void **state) {
    (void)state;
    for (int i = 0; i < WRONGS; i++) {
        const struct wrong *w = &wrongs[i];
        assert_int_equal(train(w->fake, w->environment, "--device=cuda --steps=1"), 1);
        assert_said(w->sentence);
        assert_silent_about("step 1");
        assert_all_given_back(1);
    }
}

static void
test_auto_goes_on_where_there_is_no_device_and_fails_where_one_cannot_be_used(void **state) {
    (void)state;
    for (int i = 0; i < WRONGS; i++) {
        const struct wrong *w = &wrongs[i];
        int rc = train(w->fake, w->environment, "--device=auto --steps=1");
        assert_int_equal(rc, w->may_go_on ? 0 : 1);
        assert_said(w->sentence);
        if (w->may_go_on) {
            assert_said("; computing on the CPU\n");
            assert_said("label cpu ");
        }
        assert_all_given_back(1);
    }
}

static void test_auto_says_once_in_a_job_that_it_computes_on_the_cpu(void **state) {
    (void)state;
    run("RANKTRAIN_CUDA=%s/../../../fakes/ranktrain_cuda.so RANKTRAIN_FAKE_CUDA=devices=0 "
        "%s/spawn_world 3 0 0 0 0 -- %s/spawn_train --device=auto --steps=1 2>&1",
        place, place, place);
    assert_said("computing on the CPU\n");
    assert_null(strstr(strstr(output, "computing on the CPU") + 1, "computing on the CPU"));
    assert_said("label cpu ");
}

static void test_cpu_never_looks_for_a_device(void **state) {
    (void)state;
    assert_int_equal(run("RANKTRAIN_CUDA=/nonexistent %s/spawn_train --steps=1 2>&1", place), 0);
    assert_said("label cpu ");
    assert_silent_about("GPU");
    assert_int_equal(
        run("RANKTRAIN_CUDA=/nonexistent %s/spawn_train --device=cpu --steps=1 2>&1", place), 0);
}

static void test_a_library_that_is_not_there_or_not_one_of_ours_is_named(void **state) {
    (void)state;
    static const struct {
        const char *file, *sentence;
    } rows[] = {
        {"/nonexistent.so", "RANKTRAIN_CUDA=/nonexistent.so: there is no such file"},
        {"/etc/hostname", "the GPU library cannot be loaded (/etc/hostname: "},
        {"libcudart-fake.so", "is not a GPU library of ranktrain: it has no ranktrain_gpu"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        run("cd %s/../../..; RANKTRAIN_CUDA=%s%s %s/spawn_train --device=auto --steps=1 2>&1; echo "
            "status $?",
            place, *rows[i].file == '/' ? "" : "./fakes/", rows[i].file, place);
        assert_said(rows[i].sentence);
        assert_said("status 1\n");
    }
    assert_int_equal(run("env -u RANKTRAIN_CUDA %s/spawn_train --device=cuda 2>&1", place), 1);
    assert_said("this ranktrain was built without CUDA (there is no ");
    assert_int_equal(
        run("env -u RANKTRAIN_CUDA %s/spawn_train --device=auto --steps=1 2>&1", place), 0);
    assert_said("computing on the CPU\n");
}

static void test_an_error_that_spoils_the_context_ends_the_worker_at_its_step(void **state) {
    (void)state;
    static const struct {
        const char *fake, *sentence;
    } rows[] = {{"sticky=700@launch:40", "cudaErrorIllegalAddress (700)"},
                {"sticky=719@launch:1", "cudaErrorLaunchFailure (719)"},
                {"sticky=214@launch:14", "cudaErrorECCUncorrectable (214)"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(train(rows[i].fake, "", "--device=cuda --steps=4"), 1);
        assert_said(rows[i].sentence);
        assert_said("the GPU is of no more use to this process");
        assert_said(i == 0 ? "rank 0: step 2: GPU 0" : "rank 0: step 1: GPU 0");
        assert_silent_about("\nmodel ");
    }
}

static void test_an_error_of_one_rank_is_noticed_by_the_others(void **state) {
    (void)state;
    run("RANKTRAIN_CUDA=%s/../../../fakes/ranktrain_cuda.so "
        "RANKTRAIN_FAKE_CUDA=rank=1,sticky=700@launch:40 "
        "%s/spawn_world 3 0 0 0 0 -- %s/spawn_train --device=cuda --steps=100000 2>&1",
        place, place, place);
    assert_said("rank 1: step 2: GPU 0 (Fake GPU): computing: cudaErrorIllegalAddress (700)");
    assert_said("rank 0 exit 1\nrank 1 exit 1\nrank 2 exit 1\n");
}

static void test_a_device_that_hangs_is_given_up_at_the_deadline(void **state) {
    (void)state;
    static const char *const fakes[] = {"hang@launch:20", "hang@init"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(train(fakes[i], "", "--device=cuda --steps=4 --device-timeout=500ms"), 1);
        assert_said("GPU 0 (Fake GPU): has not answered within 0.5 s");
        assert_silent_about("\nmodel ");
    }
}

static void test_sigterm_ends_a_worker_whose_device_hangs(void **state) {
    (void)state;
    assert_int_equal(run("RANKTRAIN_CUDA=%s/../../../fakes/ranktrain_cuda.so "
                         "RANKTRAIN_FAKE_CUDA=hang@launch:40 "
                         "%s/spawn_world 1 0 15 0 1 -- %s/spawn_train --device=cuda --steps=4 "
                         "--log-every=1 2>&1",
                         place, place, place),
                     0);
    assert_said("step 1 loss");
    assert_said("rank 0 signal 15\n");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_world_size_ends_with_the_same_model_and_gives_all_back),
        cmocka_unit_test(test_every_mode_of_every_network_ends_with_one_model),
        cmocka_unit_test(test_the_memory_that_is_told_is_what_was_taken_of_the_device),
        cmocka_unit_test(test_each_rank_of_a_node_has_the_device_of_its_number),
        cmocka_unit_test(test_what_is_wrong_with_a_device_is_said_and_nothing_is_left),
        cmocka_unit_test(
            test_auto_goes_on_where_there_is_no_device_and_fails_where_one_cannot_be_used),
        cmocka_unit_test(test_auto_says_once_in_a_job_that_it_computes_on_the_cpu),
        cmocka_unit_test(test_cpu_never_looks_for_a_device),
        cmocka_unit_test(test_a_library_that_is_not_there_or_not_one_of_ours_is_named),
        cmocka_unit_test(test_an_error_that_spoils_the_context_ends_the_worker_at_its_step),
        cmocka_unit_test(test_an_error_of_one_rank_is_noticed_by_the_others),
        cmocka_unit_test(test_a_device_that_hangs_is_given_up_at_the_deadline),
        cmocka_unit_test(test_sigterm_ends_a_worker_whose_device_hangs),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, begin, end);
}
