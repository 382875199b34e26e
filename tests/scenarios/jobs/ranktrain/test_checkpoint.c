#include "scenarios/jobs/ranktrain/checkpoint.h"
#include "scenarios/jobs/ranktrain/checkpoint_dir.h"
#include "scenarios/jobs/ranktrain/checkpoints/leases.h"
#include "tests/scenarios/jobs/ranktrain/model/fashion.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* A place of its own, a state of it, and what was said about checkpoints passed over. */
struct scene {
    char dir[64], said[4096];
    struct checkpoint_place place;
    struct rankquake q;
    struct state state, loaded;
    char path[PATH_MAX];
    struct err err;
};

/* Another training in the same place. */
static void train(struct scene *s, const char *network, int width, const char *optimizer) {
    model_free((struct model *)s->place.model);
    state_fini(&s->state);
    state_fini(&s->loaded);
    s->place.model = fashion_model(network, width);
    s->place.optimizer = optimizer_find(optimizer, &s->err);
    state_init(&s->state, s->place.model, s->place.optimizer);
    state_init(&s->loaded, s->place.model, s->place.optimizer);
}

static int scene_setup(void **state) {
    struct scene *s = calloc(1, sizeof(*s));
    snprintf(s->dir, sizeof(s->dir), "/tmp/test-checkpoint-XXXXXX");
    if (!mkdtemp(s->dir))
        return -1;
    s->place = (struct checkpoint_place){
        .dir = s->dir, .run_id = "job", .round = 2, .seed = 1, .world = 4, .keep = 3};
    s->q.fd = -1;
    train(s, "lenet", 0, "sgd");
    *state = s;
    return 0;
}

static int scene_teardown(void **state) {
    struct scene *s = *state;
    int dir = open(s->dir, O_RDONLY | O_DIRECTORY);
    DIR *d = fdopendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            checkpoint_dir_remove(dir, e->d_name);
    closedir(d);
    rmdir(s->dir);
    model_free((struct model *)s->place.model);
    state_fini(&s->state);
    state_fini(&s->loaded);
    free(s);
    return 0;
}

static void hear(void *arg, int code, const char *sentence) {
    (void)code;
    struct scene *s = arg;
    size_t n = strlen(s->said);
    snprintf(s->said + n, sizeof(s->said) - n, "%s\n", sentence);
}

static void save(struct scene *s, uint64_t step) {
    s->state.step = step;
    for (size_t i = 0; i < s->state.values; i++)
        s->state.weights[i] = (float)i + (float)step;
    for (size_t i = 0; i < s->state.trained; i++)
        for (int k = 0; k < s->state.moments; k++)
            s->state.moment[k][i] = (float)i - (float)step * (float)(k + 1);
    assert_int_equal(checkpoint_save(&s->place, &s->state, &s->q, &s->err), 0);
}

static int load(struct scene *s) {
    s->said[0] = 0;
    return checkpoint_load(&s->place, 1000, &s->loaded, s->path, hear, s, &s->err);
}

static void damage(struct scene *s, uint64_t step, const char *file, long at) {
    char path[256], byte;
    snprintf(path, sizeof(path), "%s/step-%08llu/%s", s->dir, (unsigned long long)step, file);
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static int steps(struct scene *s, int64_t ret[8]) {
    int64_t *list;
    int dir = open(s->dir, O_RDONLY | O_DIRECTORY);
    int n = checkpoint_dir_steps(dir, &list, &s->err);
    close(dir);
    memcpy(ret, list, (size_t)(n < 8 ? n : 8) * sizeof(*ret));
    free(list);
    return n;
}

static void test_an_empty_place_has_no_checkpoint(void **state) {
    assert_int_equal(load(*state), 0);
}

static void test_the_newest_is_loaded_as_it_was_saved(void **state) {
    struct scene *s = *state;
    save(s, 25);
    save(s, 50);
    assert_int_equal(load(s), 1);
    assert_true(state_is_equal(&s->loaded, &s->state));
    assert_non_null(strstr(s->path, "/step-00000050"));
    assert_string_equal(s->said, "");
}

static void test_only_the_newest_few_are_kept(void **state) {
    struct scene *s = *state;
    int64_t left[8];
    for (uint64_t step = 10; step <= 50; step += 10)
        save(s, step);
    assert_int_equal(steps(s, left), 3);
    assert_int_equal(left[0], 50);
    assert_int_equal(left[2], 30);
}

static void test_a_damaged_one_is_passed_over_and_named(void **state) {
    struct scene *s = *state;
    save(s, 25);
    save(s, 50);
    save(s, 75);
    damage(s, 75, "velocity.f32", 246823);
    damage(s, 50, "manifest.json", 0);
    assert_int_equal(load(s), 1);
    assert_int_equal(s->loaded.step, 25);
    assert_non_null(strstr(s->said, "step-00000075: velocity.f32 has sha256"));
    assert_non_null(strstr(s->said, "step-00000050: manifest.json"));
}

static void test_an_interrupted_write_is_no_checkpoint_and_is_swept(void **state) {
    struct scene *s = *state;
    char path[256];
    save(s, 25);
    snprintf(path, sizeof(path), "%s/.step-00000050.round-1.pid-17", s->dir);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(load(s), 1);
    assert_int_equal(s->loaded.step, 25);
    save(s, 75);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_a_higher_rounds_checkpoint_is_not_for_a_lower_one(void **state) {
    struct scene *s = *state;
    save(s, 25);
    s->place.round = 3;
    save(s, 50);
    s->place.round = 2;
    assert_int_equal(load(s), 1);
    assert_int_equal(s->loaded.step, 25);
    assert_non_null(strstr(s->said, "written by round 3"));
    s->place.run_id = "another";
    assert_int_equal(load(s), 1);
    assert_int_equal(s->loaded.step, 50);
}

static void test_a_writer_of_an_older_round_is_kept_out(void **state) {
    struct scene *s = *state;
    int64_t left[8];
    s->place.round = 3;
    save(s, 50);
    s->place.round = 2;
    s->state.step = 75;
    assert_int_equal(checkpoint_save(&s->place, &s->state, &s->q, &s->err), -ESTALE);
    assert_int_equal(steps(s, left), 1);
    assert_int_equal(left[0], 50);
}

static void test_a_damaged_one_is_replaced_when_its_step_comes_again(void **state) {
    struct scene *s = *state;
    save(s, 25);
    damage(s, 25, "weights.f32", 5);
    assert_int_equal(load(s), 0);
    save(s, 25);
    save(s, 25);
    assert_int_equal(load(s), 1);
    assert_true(state_is_equal(&s->loaded, &s->state));
}

static void test_another_seeds_checkpoint_is_passed_over_and_named(void **state) {
    struct scene *s = *state;
    save(s, 25);
    s->place.seed = 2;
    assert_int_equal(load(s), 0);
    assert_non_null(strstr(s->said, "step-00000025: it was trained with --seed=1"));
    save(s, 20);
    assert_int_equal(load(s), 1);
    assert_int_equal(s->loaded.step, 20);
}

/* What ends with another model is of another training; what may be changed on purpose is said. */
static void test_another_trainings_checkpoint_is_passed_over_and_named(void **state) {
    struct scene *s = *state;
    static const struct training right = {.dataset = "mnist",
                                          .images = 960,
                                          .sum = 0xabc,
                                          .batch_size = 96,
                                          .shards = 12,
                                          .lr = 0.05,
                                          .mode = "zero",
                                          .computes = "cpu"};
    struct training own = right;
    static const struct {
        struct training saved;
        const char *said;
    } wrong[] = {
        {{.dataset = "cifar10"}, "trained on --dataset=cifar10, not mnist: use another"},
        {{.images = 192}, "trained on 192 images, not 960 (--samples, --data-dir)"},
        {{.sum = 0xdef}, "other images of --dataset=mnist (sum 00000def, not 00000abc)"},
        {{.batch_size = 48}, "trained with --batch-size=48, not 96"},
        {{.shards = 4}, "trained with --shards=4, not 12"},
        {{.drop_last = true}, "trained with --drop-last"},
    };
    s->place.training = &own;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        const struct training *w = &wrong[i].saved;
        own = right;
        own.drop_last = w->drop_last;
        own.images = w->images ? w->images : own.images;
        own.sum = w->sum ? w->sum : own.sum;
        own.batch_size = w->batch_size ? w->batch_size : own.batch_size;
        own.shards = w->shards ? w->shards : own.shards;
        if (*w->dataset)
            memcpy(own.dataset, w->dataset, sizeof(own.dataset));
        save(s, 25);
        own = right;
        assert_int_equal(load(s), 0);
        assert_non_null(strstr(s->said, wrong[i].said));
    }
    memcpy(own.mode, "ddp", 4);
    save(s, 25);
    own = right;
    assert_int_equal(load(s), 1);
    assert_string_equal(s->said, "");
    own.lr = 0.1;
    assert_int_equal(load(s), 1);
    assert_non_null(strstr(s->said, "is gone on from with --lr=0.1 and not 0.05: the model"));
}

/* What an older ranktrain has saved does not say of which training it is. */
static void test_an_older_version_is_gone_on_from(void **state) {
    struct scene *s = *state;
    static const struct training own = {.dataset = "mnist", .images = 960};
    save(s, 25);
    s->place.training = &own;
    assert_int_equal(load(s), 1);
    assert_string_equal(s->said, "");
}

/* A manifest whose text has been changed. */
static void rewrite(struct scene *s, uint64_t step, const char *from, const char *to) {
    char path[256], text[1 << 16] = "", *at;
    snprintf(path, sizeof(path), "%s/step-%08llu/manifest.json", s->dir, (unsigned long long)step);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
    assert_non_null(at = strstr(text, from));
    rewind(f);
    fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    fclose(f);
}

static void test_what_is_missing_cut_off_or_of_the_future_is_passed_over_and_named(void **state) {
    struct scene *s = *state;
    char path[256];
    s->place.keep = 9;
    for (uint64_t step = 10; step <= 50; step += 10)
        save(s, step);
    rewrite(s, 50, "\"version\":1", "\"version\":7");
    snprintf(path, sizeof(path), "%s/step-00000040/velocity.f32", s->dir);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/step-00000030/weights.f32", s->dir);
    assert_int_equal(truncate(path, 1000), 0);
    snprintf(path, sizeof(path), "%s/step-00000020/manifest.json", s->dir);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(load(s), 1);
    assert_int_equal(s->loaded.step, 10);
    assert_non_null(strstr(s->said, "step-00000050: manifest.json: version 7 is not known"));
    assert_non_null(strstr(s->said, "step-00000040: velocity.f32: No such file"));
    assert_non_null(
        strstr(s->said, "step-00000030: weights.f32 has 1000 bytes, the manifest says"));
    assert_non_null(strstr(s->said, "step-00000020: manifest.json: "));
}

/* ---- in parts ---- */

static void save_parts(struct scene *s, uint64_t step, int parts) {
    struct checkpoint_part written[MANIFEST_PARTS] = {0};
    s->state.step = step;
    for (size_t i = 0; i < s->state.values; i++)
        s->state.weights[i] = (float)i * (float)step;
    assert_int_equal(checkpoint_parts_begin(&s->place, step, parts, &s->q, &s->err), 0);
    for (int i = 0; i < parts; i++)
        assert_int_equal(
            checkpoint_part_write(&s->place, &s->state, i, parts, &written[i], &s->err), 0);
    assert_int_equal(checkpoint_parts_commit(&s->place, &s->state, parts, written, &s->q, &s->err),
                     0);
}

static void test_parts_are_put_together_by_whatever_world(void **state) {
    struct scene *s = *state;
    struct state third;
    train(s, "resnet18", 2, "adam");
    save_parts(s, 25, 5);
    assert_int_equal(load(s), 1);
    assert_string_equal(s->said, "");
    assert_true(state_is_equal(&s->loaded, &s->state));
    size_t n = s->state.values, t = s->state.trained;
    state_init_part(&third, s->place.model, s->place.optimizer,
                    (struct state_range){n / 3, 2 * n / 3}, (struct state_range){t / 3, 2 * t / 3});
    assert_int_equal(checkpoint_load(&s->place, 1000, &third, s->path, hear, s, &s->err), 1);
    assert_memory_equal(third.weights, s->state.weights + n / 3,
                        (2 * n / 3 - n / 3) * sizeof(float));
    assert_memory_equal(third.moment[1], s->state.moment[1] + t / 3,
                        (2 * t / 3 - t / 3) * sizeof(float));
    state_fini(&third);
}

static void test_a_damaged_part_makes_all_of_it_none(void **state) {
    struct scene *s = *state;
    save(s, 10);
    save_parts(s, 25, 3);
    damage(s, 25, "weights.001-of-003.f32", 4);
    assert_int_equal(load(s), 1);
    assert_int_equal(s->loaded.step, 10);
    assert_non_null(strstr(s->said, "step-00000025: weights.001-of-003.f32 has sha256"));
}

/* Two ranks, each of which has only its half: the model's hash is that of the whole. */
static void test_ranks_that_hold_a_part_each_save_the_whole(void **state) {
    struct scene *s = *state;
    struct checkpoint_part written[2];
    size_t n = s->state.values, t = s->state.trained;
    char path[256], text[1 << 14] = "", hash[65];
    save(s, 10);
    state_hash(&s->state, hash);
    s->place.keep = 9;
    checkpoint_parts_begin(&s->place, 20, 2, &s->q, &s->err);
    struct state half[2];
    for (size_t i = 0; i < 2; i++) {
        state_init_part(&half[i], s->place.model, s->place.optimizer,
                        (struct state_range){i ? n / 2 : 0, i ? n : n / 2},
                        (struct state_range){i ? t / 2 : 0, i ? t : t / 2});
        half[i].step = 20;
        memcpy(half[i].weights, s->state.weights + half[i].held.lo,
               state_range_length(half[i].held) * sizeof(float));
        memcpy(half[i].moment[0], s->state.moment[0] + half[i].held_moments.lo,
               state_range_length(half[i].held_moments) * sizeof(float));
        assert_int_equal(
            checkpoint_part_write(&s->place, &half[i], (int)i, 2, &written[i], &s->err), 0);
    }
    assert_int_equal(checkpoint_parts_commit(&s->place, &half[0], 2, written, &s->q, &s->err), 0);
    assert_int_equal(load(s), 1);
    assert_int_equal(s->loaded.step, 20);
    s->state.step = 20;
    assert_true(state_is_equal(&s->loaded, &s->state));
    snprintf(path, sizeof(path), "%s/step-00000020/manifest.json", s->dir);
    FILE *f = fopen(path, "r");
    assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
    fclose(f);
    assert_non_null(strstr(strstr(text, "\"model\""), hash));
    state_fini(&half[0]);
    state_fini(&half[1]);
}

/* ---- what a reader has not read yet ---- */

static void test_what_a_reader_has_not_read_is_kept(void **state) {
    struct scene *s = *state;
    struct lease l;
    int64_t left[8];
    int dir = open(s->dir, O_RDONLY | O_DIRECTORY);
    s->place.keep = 1;
    assert_int_equal(lease_take(&l, dir, 20, &s->err), 0);
    for (uint64_t step = 10; step <= 60; step += 10)
        save(s, step);
    assert_int_equal(steps(s, left), 3);
    assert_int_equal(left[0], 60);
    assert_int_equal(left[1], 40);
    assert_int_equal(left[2], 20);
    assert_int_equal(lease_read(&l, 40, &s->err), 0);
    save(s, 70);
    assert_int_equal(steps(s, left), 2);
    assert_int_equal(left[1], 60);
    lease_drop(&l);
    save(s, 80);
    assert_int_equal(steps(s, left), 1);
    close(dir);
}

/* Its lock is gone with it; what is left is its file, and how old that is. */
static void test_a_dead_reader_keeps_nothing_for_long(void **state) {
    struct scene *s = *state;
    struct lease l;
    int64_t left[8];
    char path[256];
    int dir = open(s->dir, O_RDONLY | O_DIRECTORY);
    s->place.keep = 1;
    assert_int_equal(lease_take(&l, dir, 1, &s->err), 0);
    snprintf(path, sizeof(path), "%s/%s", s->dir, l.name);
    struct timespec old[2] = {{.tv_sec = time(NULL) - LEASE_SECONDS - 1},
                              {.tv_sec = time(NULL) - LEASE_SECONDS - 1}};
    save(s, 10);
    assert_int_equal(futimens(l.fd, old), 0);
    save(s, 20);
    assert_int_equal(steps(s, left), 2);
    close(l.fd);
    save(s, 30);
    assert_int_equal(steps(s, left), 1);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(lease_take(&l, dir, 1, &s->err), 0);
    close(l.fd);
    save(s, 40);
    assert_int_equal(steps(s, left), 2);
    assert_int_equal(unlink(path), 0);
    close(dir);
}

static void test_moments_of_every_optimizer_are_kept(void **state) {
    struct scene *s = *state;
    train(s, "resnet18", 2, "adam");
    save(s, 25);
    assert_int_equal(load(s), 1);
    assert_true(state_is_equal(&s->loaded, &s->state));
    damage(s, 25, "second_moment.f32", 9);
    assert_int_equal(load(s), 0);
    assert_non_null(strstr(s->said, "second_moment.f32 has sha256"));
}

static void test_another_networks_checkpoint_is_passed_over_and_named(void **state) {
    struct scene *s = *state;
    save(s, 25);
    train(s, "resnet18", 2, "sgd");
    assert_int_equal(load(s), 0);
    assert_non_null(strstr(s->said, "it is of --network=lenet --width=6, not of resnet18 of"));
    train(s, "lenet", 0, "adam");
    assert_int_equal(load(s), 0);
    assert_non_null(strstr(s->said, "trained with --optimizer=sgd, not adam"));
}

static void test_one_beyond_the_last_step_is_passed_over(void **state) {
    struct scene *s = *state;
    save(s, 1000);
    save(s, 1001);
    assert_int_equal(load(s), 1);
    assert_int_equal(s->loaded.step, 1000);
    assert_non_null(strstr(s->said, "beyond the last step"));
}

static void test_a_place_that_cannot_be_made_is_named(void **state) {
    struct scene *s = *state;
    s->place.dir = "/proc/self/none";
    assert_true(load(s) < 0);
    assert_non_null(strstr(s->err.msg, "/proc/self/none"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_empty_place_has_no_checkpoint, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_the_newest_is_loaded_as_it_was_saved, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_only_the_newest_few_are_kept, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_a_damaged_one_is_passed_over_and_named, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_an_interrupted_write_is_no_checkpoint_and_is_swept,
                                        scene_setup, scene_teardown),
        cmocka_unit_test_setup_teardown(test_a_higher_rounds_checkpoint_is_not_for_a_lower_one,
                                        scene_setup, scene_teardown),
        cmocka_unit_test_setup_teardown(test_a_writer_of_an_older_round_is_kept_out, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_a_damaged_one_is_replaced_when_its_step_comes_again,
                                        scene_setup, scene_teardown),
        cmocka_unit_test_setup_teardown(test_another_seeds_checkpoint_is_passed_over_and_named,
                                        scene_setup, scene_teardown),
        cmocka_unit_test_setup_teardown(test_another_trainings_checkpoint_is_passed_over_and_named,
                                        scene_setup, scene_teardown),
        cmocka_unit_test_setup_teardown(test_an_older_version_is_gone_on_from, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(
            test_what_is_missing_cut_off_or_of_the_future_is_passed_over_and_named, scene_setup,
            scene_teardown),
        cmocka_unit_test_setup_teardown(test_parts_are_put_together_by_whatever_world, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_a_damaged_part_makes_all_of_it_none, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_ranks_that_hold_a_part_each_save_the_whole,
                                        scene_setup, scene_teardown),
        cmocka_unit_test_setup_teardown(test_what_a_reader_has_not_read_is_kept, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_a_dead_reader_keeps_nothing_for_long, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_moments_of_every_optimizer_are_kept, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_another_networks_checkpoint_is_passed_over_and_named,
                                        scene_setup, scene_teardown),
        cmocka_unit_test_setup_teardown(test_one_beyond_the_last_step_is_passed_over, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_a_place_that_cannot_be_made_is_named, scene_setup,
                                        scene_teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
