/* What a checkpoint says of its training: each field is written, read, asked about and named. */
#include "scenarios/jobs/ranktrain/training.h"

#include <errno.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct training example = {.dataset = "mnist",
                                        .images = 960,
                                        .sum = 0xabc,
                                        .batch_size = 96,
                                        .shards = 12,
                                        .drop_last = true,
                                        .lr = 0.25,
                                        .momentum = 0.5,
                                        .scale_lr = 4,
                                        .mode = "zero",
                                        .computes = "cpu openblas"};

/* One field of the example, another way. */
enum field {
    DATASET,
    IMAGES,
    SUM,
    BATCH,
    SHARDS,
    DROP,
    LR,
    MOMENTUM,
    SCALE,
    MODE,
    COMPUTES,
    FIELDS
};

static struct training changed(enum field field) {
    struct training t = example;
    switch (field) {
    case DATASET:
        strcpy(t.dataset, "cifar10");
        break;
    case IMAGES:
        t.images = 961;
        break;
    case SUM:
        t.sum = 0xdef;
        break;
    case BATCH:
        t.batch_size = 48;
        break;
    case SHARDS:
        t.shards = 6;
        break;
    case DROP:
        t.drop_last = false;
        break;
    case LR:
        t.lr = 0.125;
        break;
    case MOMENTUM:
        t.momentum = 0.75;
        break;
    case SCALE:
        t.scale_lr = 5;
        break;
    case MODE:
        strcpy(t.mode, "ps-async");
        break;
    case COMPUTES:
        strcpy(t.computes, "cuda");
        break;
    case FIELDS:
        break;
    }
    return t;
}

static void write_text(const struct training *t, struct buf *ret) {
    struct json_writer w = {.out = ret};
    json_object(&w, NULL);
    training_write(t, &w);
    json_end_object(&w);
}

static struct training read_text(const char *text) {
    ARENA_FINI struct arena arena = {0};
    struct training t;
    memset(&t, 0xa5, sizeof(t));
    const struct json *j = json_parse(&arena, text, strlen(text), NULL);
    assert_non_null(j);
    training_read(j, &t);
    return t;
}

static void test_each_field_is_written_and_read_again(void **state) {
    (void)state;
    BUF_FINI struct buf text = {0};
    write_text(&example, &text);
    for (enum field f = 0; f <= FIELDS; f++) {
        BUF_FINI struct buf other = {0}, again = {0};
        struct training t = changed(f);
        write_text(&t, &other);
        t = read_text(buf_str(&other));
        write_text(&t, &again);
        assert_string_equal(buf_str(&again), buf_str(&other));
        assert_int_equal(strcmp(buf_str(&other), buf_str(&text)) == 0, f == FIELDS);
    }
    assert_string_equal(buf_str(&text),
                        "{\"mode\":\"zero\",\"dataset\":\"mnist\",\"images\":960,"
                        "\"images_sum\":2748,\"batch_size\":96,\"shards\":12,\"drop_last\":true,"
                        "\"lr\":0.25,\"momentum\":0.5,\"scale_lr\":4,"
                        "\"computes\":\"cpu openblas\"}");
}

static void test_what_is_not_said_is_nothing(void **state) {
    (void)state;
    BUF_FINI struct buf text = {0}, nothing = {0};
    struct training none = {0}, t = read_text("{}");
    write_text(&none, &nothing);
    write_text(&t, &text);
    assert_string_equal(buf_str(&text), buf_str(&nothing));
    assert_false(t.drop_last || t.images || t.sum || t.batch_size || t.shards || t.scale_lr);
    assert_true(t.lr == 0 && t.momentum == 0 && !*t.dataset && !*t.mode && !*t.computes);
}

static void test_a_name_that_is_too_long_is_cut_off(void **state) {
    (void)state;
    struct training t = read_text(
        "{\"dataset\":\"0123456789012345678901234567890123456789\",\"mode\":"
        "\"0123456789012345678901234567890123456789\",\"computes\":"
        "\"01234567890123456789012345678901234567890123456789012345678901234567890123456789"
        "01234567890123456789012345678901234567890123456789\"}");
    assert_int_equal(strlen(t.dataset), TRAINING_NAME - 1);
    assert_int_equal(strlen(t.mode), TRAINING_NAME - 1);
    assert_int_equal(strlen(t.computes), COMPUTE_LABEL - 1);
}

#define OTHER ": use another --checkpoint-dir"

/* NULL: the model may be another, and it is gone on from. */
static const char *const refusals[FIELDS] = {
    [DATASET] = "it was trained on --dataset=cifar10, not mnist" OTHER,
    [IMAGES] = "it was trained on 961 images, not 960 (--samples, --data-dir)" OTHER,
    [SUM] = "it was trained on other images of --dataset=mnist (sum 00000def, not 00000abc): use "
            "the --data-dir that it had, or another --checkpoint-dir",
    [BATCH] = "it was trained with --batch-size=48, not 96" OTHER,
    [SHARDS] = "it was trained with --shards=6, not 12" OTHER,
    [DROP] = "it was trained without --drop-last" OTHER,
};

static void
test_what_must_end_with_another_model_is_refused_by_the_name_of_its_option(void **state) {
    (void)state;
    for (enum field f = 0; f <= FIELDS; f++) {
        struct training saved = changed(f);
        struct err err = {.code = 77};
        const char *wanted = f < FIELDS ? refusals[f] : NULL;
        assert_int_equal(training_check(&example, &saved, &err), wanted ? -EXDEV : 0);
        if (wanted)
            assert_string_equal(err.msg, wanted);
        assert_int_equal(err.code, wanted ? -EXDEV : 77);
    }
    struct err err;
    struct training saved = changed(DROP);
    assert_int_equal(training_check(&saved, &example, &err), -EXDEV);
    assert_string_equal(err.msg, "it was trained with --drop-last" OTHER);
}

static const char *const notes[FIELDS] = {
    [LR] = "--lr=0.25 and not 0.125",         [MOMENTUM] = "--momentum=0.5 and not 0.75",
    [SCALE] = "--scale-lr=4 and not 5",       [MODE] = "--mode=zero and not ps-async",
    [COMPUTES] = "cpu openblas and not cuda",
};

static void test_what_may_be_changed_on_purpose_is_said(void **state) {
    (void)state;
    char text[TRAINING_TEXT];
    for (enum field f = 0; f <= FIELDS; f++) {
        struct training saved = changed(f);
        strcpy(text, "of before");
        training_changes(&example, &saved, text);
        assert_string_equal(text, f < FIELDS && notes[f] ? notes[f] : "");
    }
    struct training own = changed(MODE);
    training_changes(&own, &example, text);
    assert_string_equal(text, "--mode=ps-async and not zero");
    struct training other = example;
    strcpy(other.mode, "ddp"); /* the same model */
    training_changes(&other, &example, text);
    assert_string_equal(text, "");
}

static void test_all_that_has_changed_is_said_in_one_sentence(void **state) {
    (void)state;
    char text[TRAINING_TEXT];
    struct training saved = example;
    saved.lr = 1;
    saved.momentum = 0;
    saved.scale_lr = 0;
    strcpy(saved.mode, "ps-async");
    strcpy(saved.computes, "cuda");
    training_changes(&example, &saved, text);
    assert_string_equal(text, "--lr=0.25 and not 1, --momentum=0.5 and not 0, --scale-lr=4 and not "
                              "0, --mode=zero and not ps-async, cpu openblas and not cuda");
}

/* What an older ranktrain has saved does not say of which training it is. */
static void test_where_a_training_is_not_known_nothing_is_asked(void **state) {
    (void)state;
    char text[TRAINING_TEXT];
    struct err err;
    struct training unknown = {.images = 3, .lr = 7};
    const struct training *pairs[2][2] = {{&unknown, &example}, {&example, &unknown}};
    for (int i = 0; i < 2; i++) {
        strcpy(text, "of before");
        assert_int_equal(training_check(pairs[i][0], pairs[i][1], &err), 0);
        training_changes(pairs[i][0], pairs[i][1], text);
        assert_string_equal(text, "");
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_field_is_written_and_read_again),
        cmocka_unit_test(test_what_is_not_said_is_nothing),
        cmocka_unit_test(test_a_name_that_is_too_long_is_cut_off),
        cmocka_unit_test(
            test_what_must_end_with_another_model_is_refused_by_the_name_of_its_option),
        cmocka_unit_test(test_what_may_be_changed_on_purpose_is_said),
        cmocka_unit_test(test_all_that_has_changed_is_said_in_one_sentence),
        cmocka_unit_test(test_where_a_training_is_not_known_nothing_is_asked),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
