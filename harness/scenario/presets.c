/* Shapes of output as the tools themselves make it, found in what people have published of it and in
 * the lines of their sources that print: deepspeed/runtime/{engine,pipe/engine}.py and
 * checkpoint_engine/torch_checkpoint_engine.py (0.9 to 0.17), megatron/training/{training,
 * checkpointing}.py (core_r0.8 to 2026), nanoGPT's train.py (3adf61e), torchtitan/components/
 * {metrics,checkpoint}.py (0.1 to b5bcd76).
 *
 * A bar of tqdm is rewritten after a carriage return: "Train:  22%|##2   | 4/18 [00:17<01:02,
 * 4.47s/it, loss=9.9]"; a loop of unknown length says "4it [00:01, 3.2it/s]". The bar at its
 * beginning, 0/18, is no step. Where there is no room for a bar it is left out: "22% 4/18 [". */
#include "harness/scenario/scenario.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))
#define NUMBER      "([-+0-9.e]+|nan|inf)"
#define SCIENTIFIC  "([-+0-9.E]+|nan|inf)"
#define COLOR       "(?:\033\\[[0-9;]*m)?"

/* The pipeline's engine counts steps by itself and knows a loss; the other one does not. "ready" is
 * said before the file `latest` names the checkpoint. */
static const struct observed deepspeed[] = {
    {"step", "(?:^|\\[Rank 0\\] )step=([0-9]+), skipped=|^steps: ([0-9]+) loss: ", false, {0}},
    {"loss", "^steps: [0-9]+ loss: " NUMBER, false, {0}},
    {"resume", "Loaded checkpoint from .*global_step([0-9]+)/", false, {0}},
    {"checkpoint-begin", "Checkpoint global_step([0-9]+) is about to be saved!", false, {0}},
    {"checkpoint-commit", "Checkpoint global_step([0-9]+) is ready now!", false, {0}},
};

/* The first line before a checkpoint is written; neither tool says when one is complete. */
static const struct observed hf_trainer[] = {
    /* The bar of the training has no name, those of data sets have; one of an evaluation counts to
     * another number, which is why the number is taken as well. */
    {"step", "^ *[0-9]+%\\|[^|]*\\| *([1-9][0-9]*)/([0-9]+) \\[", false, {0}},
    {"loss", "'loss': '?" NUMBER, false, {0}},
    {"resume", "Continuing training from global step ([0-9]+)", false, {0}},
    {"checkpoint-begin", "Saving model checkpoint to .*checkpoint-([0-9]+)", false, {0}},
    {"done", "'train_runtime': ", false, {0}},
};

static const struct observed lightning[] = {
    /* A bar for each epoch: the epoch from 0, the batch in it, the batches of an epoch. */
    {"step", "Epoch ([0-9]+): +[0-9]+%(?:\\|[^|]*\\|)? *([1-9][0-9]*)/([0-9]+) \\[", false, {0}},
    {"loss", "[, ](?:train[_/])?loss(?:_step)?=" NUMBER, false, {0}},
    {"resume", "Restored all states from the checkpoint.*step=([0-9]+)", false, {0}},
    {"checkpoint-begin", "global step ([0-9]+): .*saving model to", false, {0}},
    {"done", "Trainer\\.fit. stopped: .max_", false, {0}},
};

/* The last rank tells the steps, rank 0 the rest. */
static const struct observed megatron[] = {
    {"step", " iteration +([0-9]+)/ *([0-9]+) ", false, {0}},
    {"loss", " lm loss: " SCIENTIFIC, false, {0}},
    {"resume", "successfully loaded checkpoint from .* at iteration ([0-9]+)", false, {0}},
    {"checkpoint-begin", "^saving checkpoint at iteration +([0-9]+) to ", false, {0}},
    {"checkpoint-commit", "successfully saved checkpoint from iteration +([0-9]+) ", false, {0}},
    {"done", "\\[after training is done\\]", false, {0}},
};

/* Its steps begin with 0; what it saves has no number, and it does not say that it has ended. */
static const struct observed nanogpt[] = {
    {"step", "^iter ([0-9]+): loss ", false, {0}},
    {"loss", "^iter [0-9]+: loss " NUMBER, false, {0}},
};

/* "Saving the checkpoint." names no step either. Validation tells a step of its own, which is not
 * one of the training. */
static const struct observed torchtitan[] = {
    {"step", "- " COLOR "step: *([0-9]+) ", false, {0}},
    {"loss", "- " COLOR "step: *[0-9]+ +" COLOR "loss: *" NUMBER, false, {0}},
    {"resume", "Loading the checkpoint from .*step-([0-9]+)", false, {0}},
    {"done", "Training completed", false, {0}},
};

static const struct observed tqdm[] = {
    /* A loop of unknown length names its unit, which people choose: "4it", "4 batch", "4step". */
    {"step",
     "[|%] *([1-9][0-9]*)/[0-9]+ \\[|(?:^|: )([1-9][0-9]*) ?[a-z]+ \\[[0-9:]+, ",
     false,
     {0}},
    {"loss", "loss[a-z_]*[=:] *" NUMBER, false, {0}},
};

const struct preset presets[] = {
    {"deepspeed",
     "the engines of DeepSpeed; a step for each steps_per_print, a loss only of a pipeline; "
     "checkpoints and resume only under the tags that it chooses itself",
     deepspeed, COUNT(deepspeed)},
    {"hf-trainer",
     "the Trainer of transformers 4 and 5; resume and checkpoints only with log_level=info",
     hf_trainer, COUNT(hf_trainer)},
    {"lightning",
     "the Trainer of Lightning 1.6 to 2 with its tqdm bar; a step is a batch, counted over the "
     "epochs; checkpoints only with ModelCheckpoint(verbose=True)",
     lightning, COUNT(lightning)},
    {"megatron", "the training loop of Megatron-LM, Megatron Bridge and what is built on them",
     megatron, COUNT(megatron)},
    {"nanogpt", "the train.py of nanoGPT, whose steps begin with 0", nanogpt, COUNT(nanogpt)},
    {"torchtitan", "the trainer of torchtitan, with colors or without", torchtitan,
     COUNT(torchtitan)},
    {"tqdm", "any bar of tqdm; where each epoch has its own bar the steps begin again with it",
     tqdm, COUNT(tqdm)},
    {0},
};
