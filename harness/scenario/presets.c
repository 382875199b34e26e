/* Shapes of output as the tools themselves make it, found in what people have published of it.
 *
 * A bar of tqdm is rewritten after a carriage return: "Train:  22%|##2   | 4/18 [00:17<01:02,
 * 4.47s/it, loss=9.9]"; a loop of unknown length says "4it [00:01, 3.2it/s]". The bar at its
 * beginning, 0/18, is no step. Where there is no room for a bar it is left out: "22% 4/18 [". */
#include "harness/scenario/scenario.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))
#define NUMBER      "([-+0-9.e]+|nan|inf)"

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

static const struct observed tqdm[] = {
    /* A loop of unknown length names its unit, which people choose: "4it", "4 batch", "4step". */
    {"step",
     "[|%] *([1-9][0-9]*)/[0-9]+ \\[|(?:^|: )([1-9][0-9]*) ?[a-z]+ \\[[0-9:]+, ",
     false,
     {0}},
    {"loss", "loss[a-z_]*[=:] *" NUMBER, false, {0}},
};

const struct preset presets[] = {
    {"hf-trainer",
     "the Trainer of transformers 4 and 5; resume and checkpoints only with log_level=info",
     hf_trainer, COUNT(hf_trainer)},
    {"lightning",
     "the Trainer of Lightning 1.6 to 2 with its tqdm bar; a step is a batch, counted over the "
     "epochs; checkpoints only with ModelCheckpoint(verbose=True)",
     lightning, COUNT(lightning)},
    {"tqdm", "any bar of tqdm; where each epoch has its own bar the steps begin again with it",
     tqdm, COUNT(tqdm)},
    {0},
};
