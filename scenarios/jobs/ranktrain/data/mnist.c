/* MNIST (LeCun et al. 1998). */
#include "scenarios/jobs/ranktrain/data/idx.h"

const struct dataset_kind dataset_mnist = {
    .name = "mnist",
    .summary = "60000 grey images of digits",
    .url = "https://storage.googleapis.com/cvdf-datasets/mnist",
    .remedy = "fetch it: ranktrain prepare --dataset=mnist",
    .shape = {.channels = 1,
              .side = IDX_SIDE,
              .classes = IDX_CLASSES,
              .mean = {0.1307f},
              .deviation = {0.3081f}},
    .list = idx_list,
    .pack = idx_pack,
    .files = {{"train-images-idx3-ubyte.gz",
               "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
              {"train-labels-idx1-ubyte.gz",
               "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
              {"t10k-images-idx3-ubyte.gz",
               "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
              {"t10k-labels-idx1-ubyte.gz",
               "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
};
