/* Fashion-MNIST (Xiao et al. 2017), as the Debian package dataset-fashion-mnist installs it. */
#include "scenarios/jobs/ranktrain/data/idx.h"

const struct dataset_kind dataset_fashion_mnist = {
    .name = "fashion-mnist",
    .summary = "60000 grey images of clothes",
    .dir = "/usr/share/datasets/fashion-mnist",
    .url = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    .remedy = "install dataset-fashion-mnist (Debian, Ubuntu)",
    .shape = {.channels = 1,
              .side = IDX_SIDE,
              .classes = IDX_CLASSES,
              .mean = {0.2860f},
              .deviation = {0.3530f}},
    .list = idx_list,
    .pack = idx_pack,
    .files = {{"train-images-idx3-ubyte.gz",
               "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
              {"train-labels-idx1-ubyte.gz",
               "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
              {"t10k-images-idx3-ubyte.gz",
               "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
              {"t10k-labels-idx1-ubyte.gz",
               "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}},
};
