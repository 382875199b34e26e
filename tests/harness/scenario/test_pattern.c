/* Expressions as people write them: what they match, what they take out, and which are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "harness/scenario/pattern.h"
#include "harness/scenario/scenario.h"

#include <stdio.h>
#include <string.h>

/* values: those that took part, with a blank between; NULL: no match. */
static const struct {
    const char *pattern, *line, *values;
} cases[] = {
    {"step ([0-9]+)", "step 12 of 20", "12"},
    {"step ([0-9]+)", "stop 12", NULL},
    {"step (\\d+)", "step 7", "7"},
    {"step (\\d+)", "step d", NULL},
    {"^\\s*(\\w+):\\S", " loss:1", "loss"},
    {"(?:train|eval) step (\\d+)", "eval step 3", "3"},
    {"(?P<what>train|eval) step (?<n>\\d+)", "eval step 3", "eval 3"},
    {"(?i)STEP (\\d+)", "Step 9", "9"},
    {"loss[=:] *([-+0-9.e]+|nan|inf)", "loss=-1.5e-3,", "-1.5e-3"},
    {"loss[=:] *([-+0-9.e]+|nan|inf)", "loss: nan", "nan"},
    {"{'loss': ([\\d.]+)", "{'loss': 0.25, 'epoch': 1}", "0.25"},
    {"a{2}b{1,}(c{0,2})", "aabcc", "cc"},
    {"x{y} (\\d)", "x{y} 1", "1"},
    {"[\\]\\-\\^\\\\](\\d)", "]1", "1"},
    {"[\\]\\-\\^\\\\](\\d)", "-2", "2"},
    {"[\\]\\-\\^\\\\](\\d)", "^3", "3"},
    {"[\\]\\-\\^\\\\](\\d)", "\\4", "4"},
    {"[^\\]x](\\d)", "]5", NULL},
    {"[[:upper:]](\\d)", "E6", "6"},
    {"\\bstep\\b (\\d+)", "onestep 5", NULL},
    {"\\(a\\.b\\) (.*)$", "(a.b) rest of it", "rest of it"},
    {"(a)|b", "b", ""},
    {"loss \xff(\\d)",
     "loss \xff"
     "1",
     "1"},
    {"done", "all done", ""},
    {"Schritt \xc3\xbc(\\d+)",
     "Schritt \xc3\xbc"
     "12",
     "12"},
};

static void test_what_is_written_by_habit_matches_what_is_meant(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err err = {0};
        struct pattern_value v[PATTERN_VALUES_MAX];
        char got[100] = "";
        struct pattern *p = pattern_new(cases[i].pattern, &err);
        if (!p)
            fail_msg("%s: %s", cases[i].pattern, err.msg);
        bool matched = pattern_match(p, cases[i].line, v);
        for (size_t k = 0; matched && k < PATTERN_VALUES_MAX; k++)
            if (v[k].at)
                snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%.*s", *got ? " " : "",
                         (int)v[k].len, v[k].at);
        if (matched != !!cases[i].values || (matched && strcmp(got, cases[i].values) != 0))
            fail_msg("/%s/ on \"%s\": %s \"%s\"", cases[i].pattern, cases[i].line,
                     matched ? "matched" : "no match", got);
        pattern_free(p);
    }
}

static const struct {
    const char *pattern, *why;
} refused[] = {
    {"", "is empty"},
    {"step (.+?) ", "as little as possible"},
    {"a*+", "repetition of a repetition"},
    {"(a)\\1", "cannot be referred to again"},
    {"step(?=s)", "groups that begin with ?"},
    {"step(?!s)", "groups that begin with ?"},
    {"(?<=a)b", "groups that begin with ?"},
    {"(?P<name", "groups that begin with ?"},
    {"\\Astep", "have a meaning"},
    {"step\\n", "without its end"},
    {"[\\D]", "in brackets only"},
    {"step [0-9", "there is no ] to this ["},
    {"step (", "no regular expression: Unmatched ( or \\("},
    {"step )", "there is no ( to this )"},
    {"*a", "nothing stands before it"},
    {"(|*a)", "no regular expression"},
    {"[b-a]", "Invalid range end"},
    {"[[:number:]]", "Invalid character class name"},
    {"a{1,5000}", "repeated too often"},
    {"((a{1,40}){1,40}){1,40}", "repeated too often"},
    {"step\\", "nothing follows the backslash"},
};

static void test_what_would_be_taken_for_something_else_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        struct err err = {0};
        struct pattern *p = pattern_new(refused[i].pattern, &err);
        if (p || !strstr(err.msg, refused[i].why))
            fail_msg("/%s/: %s", refused[i].pattern, p ? "accepted" : err.msg);
    }
    char longest[PATTERN_TEXT_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    struct err err = {0};
    assert_null(pattern_new(longest, &err));
    longest[PATTERN_TEXT_MAX] = '\0';
    pattern_free(pattern_new(longest, &err));
}

/* The nearest line is the one that was meant. */
static void test_the_closest_line_is_the_one_that_was_meant(void **state) {
    (void)state;
    static const char *const lines[] = {
        "loading data set",          "Epoch 1 begins",     "step: 12 loss 0.5",
        "saving checkpoint for 12",  "GPU 0: 80 GB",       "trained for 10 minutes",
        "Resumed from snapshot 120", "12/20 [00:01<00:02]"};
    static const struct {
        const char *pattern, *meant;
    } near[] = {{"step ([0-9]+)", "step: 12 loss 0.5"},
                {"Step: (\\d+)", "step: 12 loss 0.5"},
                {"checkpoint saved for step (\\d+)", "saving checkpoint for 12"},
                {"resumed at (\\d+)", "Resumed from snapshot 120"},
                {"epoch=(\\d+)", "Epoch 1 begins"}};
    for (size_t i = 0; i < sizeof(near) / sizeof(*near); i++) {
        struct pattern *p = pattern_new(near[i].pattern, NULL);
        size_t best = 0, at = 0;
        for (size_t k = 0; k < sizeof(lines) / sizeof(*lines); k++) {
            assert_false(pattern_match(p, lines[k], NULL));
            if (pattern_nearness(p, lines[k]) > best) {
                best = pattern_nearness(p, lines[k]);
                at = k;
            }
        }
        assert_string_equal(lines[at], near[i].meant);
        pattern_free(p);
    }
}

/* What the tools print, and what of it is an event: kind and values. */
static const struct {
    const char *preset, *line, *kind, *values;
} shapes[] = {
    {"tqdm", "  0%|          | 0/1000 [00:00<?, ?it/s]", "step", NULL},
    {"tqdm",
     "Train:  22%|\xe2\x96\x88\xe2\x96\x88\xe2\x96\x8f       | 4/18 [00:17<01:02,  4.47s/it, "
     "loss=9.947]",
     "step", "4"},
    {"tqdm", "Train:  22%|##2       | 4/18 [00:17<01:02,  4.47s/it, loss=9.947]", "loss", "9.947"},
    {"tqdm", "12it [00:01, 10.2it/s]", "step", "12"},
    {"tqdm", "epoch 3: 12it [00:01, 10.2it/s]", "step", "12"},
    {"tqdm", "7 batch [00:02, 3.10 batch/s, loss=1.5]", "step", "7"},
    {"tqdm", "Train: 9step [01:00:02, 3.10step/s]", "step", "9"},
    {"tqdm", " 22% 4/18 [00:17<01:02,  4.47s/it]", "step", "4"},
    {"tqdm", "see: 3 files [of 7, as listed]", "step", NULL},
    {"hf-trainer", "{'loss': '2.035e+04', 'grad_norm': 'nan', 'epoch': '0.01'}", "loss",
     "2.035e+04"},
    {"hf-trainer", "{'eval_loss': '0.28', 'eval_runtime': '4.9', 'epoch': '1'}", "loss", NULL},
    {"hf-trainer", "{'train_runtime': '340', 'train_loss': '0.11', 'epoch': '3'}", "done", ""},
    {"hf-trainer", "{'train_runtime': '340', 'train_loss': '0.11', 'epoch': '3'}", "loss", NULL},
    {"hf-trainer", "  5%|5         | 50/1000 [00:10<03:10,  5.00it/s]", "step", "50 1000"},
    {"hf-trainer", "Map: 100%|##########| 25000/25000 [00:01<00:00, 19000 examples/s]", "step",
     NULL},
    {"hf-trainer", "{'loss': 0.4321, 'grad_norm': 1.25, 'learning_rate': 1e-05, 'epoch': 0.5}",
     "loss", "0.4321"},
    {"hf-trainer",
     "{'loss': '0.4321', 'grad_norm': '1.25', 'learning_rate': '1e-05', 'epoch': '0.5'}", "loss",
     "0.4321"},
    {"hf-trainer", "  Continuing training from global step 50", "resume", "50"},
    {"hf-trainer", "Saving model checkpoint to out/checkpoint-500", "checkpoint-begin", "500"},
    {"hf-trainer", "{'train_runtime': 246.2454, 'train_samples_per_second': 7.2, 'epoch': 3.0}",
     "done", ""},
    {"lightning", "Epoch 2:  22%|##2       | 4/18 [00:17<01:02,  4.47s/it, loss=9.947, v_num=1]",
     "step", "2 4 18"},
    {"lightning", "Epoch 2:   0%|          | 0/18 [00:00<?, ?it/s, v_num=1]", "step", NULL},
    {"lightning", "Validation DataLoader 0:  46%|####6     | 73/157 [00:02<00:02, 37.48it/s]",
     "step", NULL},
    {"lightning", "Epoch 2:  22%|##2 | 4/18 [00:17<01:02, 4.47s/it, v_num=1, train_loss_step=1.25]",
     "loss", "1.25"},
    {"lightning", "Epoch 2: 100%|##| 8/8 [00:01<00:00, 2.0it/s, v_num=9, train/loss_step=0.045]",
     "loss", "0.045"},
    {"lightning", "Epoch 2: 100% 850/850 [28:40<00:00,  2.02s/it, v_num=66]", "step", "2 850 850"},
    {"lightning", "Epoch 2: 100%|##| 8/8 [00:01<00:00, 2.0it/s, v_num=9, val_loss=0.5]", "loss",
     NULL},
    {"lightning", "Restored all states from the checkpoint at /x/last.ckpt", "resume", NULL},
    {"lightning", "Restored all states from the checkpoint at /x/epoch=9-step=16000-v1.ckpt",
     "resume", "16000"},
    {"lightning", "Restored all states from the checkpoint file at x/epoch=1-step=40.ckpt",
     "resume", "40"},
    {"lightning",
     "Epoch 9, global step 16000: 'dev_loss' reached 0.28 (best 0.28), saving model to '/x/y.ckpt' "
     "as top 1",
     "checkpoint-begin", "16000"},
    {"lightning", "`Trainer.fit` stopped: `max_epochs=3` reached.", "done", ""},
    {"deepspeed",
     "[2023-07-24 13:21:33,260] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=10, "
     "lr=[0.0001], mom=[(0.9, 0.999)]",
     "step", "10"},
    {"deepspeed",
     "[2023-07-24 13:21:33,260] [INFO] [timer.py:215:stop] epoch=0/micro_step=10/global_step=10, "
     "RunningAvgSamplesPerSec=199.0, CurrSamplesPerSec=216.7",
     "step", NULL},
    {"deepspeed", "steps: 2 loss: 10.6521 iter time (s): 1.337 samples/sec: 23.9", "step", "2"},
    {"deepspeed", "steps: 2 loss: 10.6521 iter time (s): 1.337 samples/sec: 23.9", "loss",
     "10.6521"},
    {"deepspeed",
     "[2023-07-24 13:21:33,261] [INFO] [logging.py:96:log_dist] [Rank 0] [Torch] Checkpoint "
     "global_step10 is about to be saved!",
     "checkpoint-begin", "10"},
    {"deepspeed",
     "[2023-07-24 13:21:33,296] [INFO] [torch_checkpoint_engine.py:33:commit] [Torch] Checkpoint "
     "global_step10 is ready now!",
     "checkpoint-commit", "10"},
    {"deepspeed",
     "[INFO] [torch_checkpoint_engine.py:29:load] [Torch] Loaded checkpoint from "
     "out/global_step10/mp_rank_00_model_states.pt.",
     "resume", "10"},
    {"deepspeed",
     "[INFO] [torch_checkpoint_engine.py:27:load] [Torch] Loading checkpoint from "
     "out/global_step10/mp_rank_00_model_states.pt...",
     "resume", NULL},
    {"megatron",
     " [2024-10-16 04:23:00] iteration        2/  500000 | consumed samples:          256 | "
     "elapsed "
     "time per iteration (ms): 1811.8 | learning rate: 4.000000E-07 | global batch size:   128 | "
     "lm "
     "loss: 1.177651E+01 | load_balancing_loss: 1.008666E+00 | loss scale: 1.0 | grad norm: 0.493 "
     "| number of skipped iterations:   0 | number of nan iterations:   0 |",
     "step", "2 500000"},
    {"megatron",
     " [2024-10-16 04:23:00] iteration        2/  500000 | global batch size:   128 | lm loss: "
     "1.177651E+01 | load_balancing_loss: 1.008666E+00 |",
     "loss", "1.177651E+01"},
    {"megatron",
     " iteration        1/    2500 | elapsed time per iteration (ms): 4220.8 | learning rate: "
     "0.000E+00 | lm loss: 1.065542E+01 | loss scale: 32768.0 |",
     "step", "1 2500"},
    {"megatron",
     "\033[32m[2026-05-19 17:32:11.504168]\033[0m iteration 1/10 lm loss: 1.193016E+01 loss scale: "
     "1.0",
     "step", "1 10"},
    {"megatron",
     " validation loss at iteration 100 on validation set | lm loss value: 5.1E+00 | lm loss PPL: "
     "1.6E+02 | ",
     "step", NULL},
    {"megatron",
     " validation loss at iteration 100 on validation set | lm loss value: 5.1E+00 | lm loss PPL: "
     "1.6E+02 | ",
     "loss", NULL},
    {"megatron", "  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration 845",
     "resume", "845"},
    {"megatron", "saving checkpoint at iteration      50 to /ckpt in torch_dist format",
     "checkpoint-begin", "50"},
    {"megatron", "  successfully saved checkpoint from iteration      50 to /ckpt",
     "checkpoint-begin", NULL},
    {"megatron", "  successfully saved checkpoint from iteration      50 to /ckpt",
     "checkpoint-commit", "50"},
    {"megatron", "  successfully saved checkpoint from iteration     845 to /ckpt [ t 1/2, p 1/1 ]",
     "checkpoint-commit", "845"},
    {"megatron", "[after training is done] datetime: 2026-06-27 16:51:51 ", "done", ""},
    {"nanogpt", "iter 0: loss 4.1903, time 912.04ms, mfu -100.00%", "step", "0"},
    {"nanogpt", "iter 40: loss 4.1903, time 912.04ms, mfu 0.02%", "loss", "4.1903"},
    {"nanogpt", "step 40: train loss 4.1, val loss 4.2", "step", NULL},
    {"nanogpt", "step 40: train loss 4.1, val loss 4.2", "loss", NULL},
    {"torchtitan",
     "[titan] 2026-08-21 21:30:21,000 - root - INFO - \033[31mstep: 10  \033[32mloss:  8.12345  "
     "\033[38;2;180;60;0mgrad_norm:  1.2345  \033[38;2;54;234;195mmemory:  2.34GiB(2.46%)",
     "step", "10"},
    {"torchtitan",
     "[titan] 2026-08-21 21:30:21,000 - root - INFO - \033[31mstep: 10  \033[32mloss:  8.12345  "
     "\033[38;2;180;60;0mgrad_norm:  1.2345  \033[38;2;54;234;195mmemory:  2.34GiB(2.46%)",
     "loss", "8.12345"},
    {"torchtitan",
     "[titan] 2026-08-21 21:30:21,000 - root - INFO - step:  1  loss: 12.12345  grad_norm:  1.2345",
     "step", "1"},
    {"torchtitan",
     "[titan] 2026-08-21 21:30:21,000 - root - INFO - step: 100  loss:  2.5  memory:  2.34GiB",
     "loss", "2.5"},
    {"torchtitan",
     "[titan] 2026-08-21 21:30:21,000 - root - INFO - \033[33mvalidate step: 10  \033[32mloss:  "
     "8.1234  ",
     "step", NULL},
    {"torchtitan", "[titan] 2026-08-21 - root - INFO - validate step: 10  loss:  8.1234  ", "loss",
     NULL},
    {"torchtitan",
     "[titan] 2026-08-21 - root - INFO - Loading the checkpoint from "
     "./outputs/checkpoint/step-500.",
     "resume", "500"},
    {"torchtitan", "[titan] 2026-08-21 - root - INFO - Training completed", "done", ""},
};

static const char *pattern_of(const char *preset, const char *kind) {
    for (const struct preset *p = presets; p->name; p++)
        for (size_t i = 0; strcmp(p->name, preset) == 0 && i < p->n; i++)
            if (strcmp(p->v[i].kind, kind) == 0)
                return p->v[i].pattern;
    fail_msg("%s has no %s", preset, kind);
    return NULL;
}

static void test_presets_know_the_shapes_of_their_tools(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        struct pattern_value v[PATTERN_VALUES_MAX];
        char got[100] = "";
        struct pattern *p = pattern_new(pattern_of(shapes[i].preset, shapes[i].kind), NULL);
        assert_non_null(p);
        bool matched = pattern_match(p, shapes[i].line, v);
        for (size_t k = 0; matched && k < PATTERN_VALUES_MAX; k++)
            if (v[k].at)
                snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%.*s", *got ? " " : "",
                         (int)v[k].len, v[k].at);
        if (matched != !!shapes[i].values || (matched && strcmp(got, shapes[i].values) != 0))
            fail_msg("%s: %s of \"%s\": %s \"%s\"", shapes[i].preset, shapes[i].kind,
                     shapes[i].line, matched ? "matched" : "no match", got);
        pattern_free(p);
    }
}

static void test_every_expression_of_a_preset_can_be_used(void **state) {
    (void)state;
    for (const struct preset *p = presets; p->name; p++) {
        assert_true(p == presets || strcmp(p[-1].name, p->name) < 0);
        for (size_t i = 0; i < p->n; i++) {
            struct err err = {0};
            struct pattern *x = pattern_new(p->v[i].pattern, &err);
            if (!x || pattern_values(x) > PATTERN_VALUES_MAX)
                fail_msg("%s: %s: %s", p->name, p->v[i].kind, err.msg);
            pattern_free(x);
        }
    }
}

/* Whatever is typed is refused with a sentence or can be matched. */
static void test_any_expression_is_refused_or_can_be_matched(void **state) {
    (void)state;
    static const char letters[] = "ab1 ()[]{}*+?|^$.\\\\dwsbDP<>:-,=\"\xc3";
    struct rand r;
    int used = 0;
    rand_init(&r, 7);
    for (int i = 0; i < 30000; i++) {
        char text[16];
        size_t n = 1 + rand_below(&r, sizeof(text) - 2);
        struct err err = {0};
        for (size_t k = 0; k < n; k++)
            text[k] = letters[rand_below(&r, sizeof(letters) - 1)];
        text[n] = '\0';
        struct pattern *p = pattern_new(text, &err);
        assert_true(p || (err.code < 0 && *err.msg));
        struct pattern_value v[PATTERN_VALUES_MAX];
        if (p && pattern_match(p, "step 12: loss=0.5 (a|b) [1] ab1\xc3", v))
            used++;
        if (p)
            pattern_nearness(p, "step 12: loss=0.5");
        pattern_free(p);
    }
    assert_true(used > 100);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_by_habit_matches_what_is_meant),
        cmocka_unit_test(test_what_would_be_taken_for_something_else_is_refused),
        cmocka_unit_test(test_the_closest_line_is_the_one_that_was_meant),
        cmocka_unit_test(test_presets_know_the_shapes_of_their_tools),
        cmocka_unit_test(test_any_expression_is_refused_or_can_be_matched),
        cmocka_unit_test(test_every_expression_of_a_preset_can_be_used),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
