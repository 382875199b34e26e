#include "scenarios/jobs/ranktrain/model/networks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int conv(struct model *m, int input, int channels, int kernel, int stride, int padding) {
    return model_add(m, (struct model_layer){.kind = &layer_conv,
                                             .input = input,
                                             .second = LAYER_NONE,
                                             .channels = channels,
                                             .kernel = kernel,
                                             .stride = stride,
                                             .padding = padding});
}

static int norm(struct model *m, int input, bool relu) {
    return model_add(m,
                     (struct model_layer){
                         .kind = &layer_norm, .input = input, .second = LAYER_NONE, .relu = relu});
}

static int pool(struct model *m, int input, bool bias) {
    return model_add(m,
                     (struct model_layer){
                         .kind = &layer_pool, .input = input, .second = LAYER_NONE, .bias = bias});
}

static int add(struct model *m, int input, int second) {
    return model_add(m, (struct model_layer){.kind = &layer_add, .input = input, .second = second});
}

static int plain(struct model *m, const struct layer_kind *kind, int input) {
    return model_add(m, (struct model_layer){.kind = kind, .input = input, .second = LAYER_NONE});
}

static int dense(struct model *m, int input, int features, bool relu) {
    return model_add(m, (struct model_layer){.kind = &layer_dense,
                                             .input = input,
                                             .second = LAYER_NONE,
                                             .channels = features,
                                             .relu = relu});
}

/* conv 5x5, 6 channels, padding 2 - pool with bias - conv 5x5, 16 - pool with bias - dense 120 -
 * dense 84 - dense of the classes (LeCun et al. 1998, with maxima and relu). */
static void build_lenet(struct model *m, const struct architecture *k) {
    int at = pool(m, conv(m, LAYER_IMAGES, m->width, 5, 1, 2), true);
    at = pool(m, conv(m, at, m->width * 16 / 6, 5, 1, 0), true);
    at = dense(m, plain(m, &layer_flatten, at), 120, true);
    dense(m, dense(m, at, 84, true), m->data.classes, false);
}

static int conv_norm(struct model *m, int input, int channels, int kernel, int stride, bool relu) {
    return norm(m, conv(m, input, channels, kernel, stride, kernel / 2), relu);
}

/* A block's way around its convolutions; of other channels or side where the block's are. */
static int shortcut(struct model *m, int input, int from, int to, int stride) {
    return from == to && stride == 1 ? input : conv_norm(m, input, to, 1, stride, false);
}

/* Two convolutions of 3x3; or 1x1, 3x3 and 1x1 with four times the channels. */
static int block(struct model *m, int input, int from, int channels, int stride, bool bottleneck) {
    int to = bottleneck ? 4 * channels : channels, at;
    if (bottleneck) {
        at = conv_norm(m, input, channels, 1, 1, true);
        at = conv_norm(m, at, channels, 3, stride, true);
        at = conv_norm(m, at, to, 1, 1, false);
    } else {
        at = conv_norm(m, input, channels, 3, stride, true);
        at = conv_norm(m, at, to, 3, 1, false);
    }
    return add(m, at, shortcut(m, input, from, to, stride));
}

/* As He et al. (2015) describe them for small images: a convolution of 3x3, then stages of blocks,
 * each but the first with half the side and twice the channels. */
static void build_resnet(struct model *m, const struct architecture *k) {
    int channels = m->width, from = m->width;
    int at = conv_norm(m, LAYER_IMAGES, channels, 3, 1, true);
    for (int stage = 0; k->depth[stage]; stage++, channels *= 2)
        for (int i = 0; i < k->depth[stage]; i++) {
            at = block(m, at, from, channels, stage && i == 0 ? 2 : 1, k->bottleneck);
            from = k->bottleneck ? 4 * channels : channels;
        }
    dense(m, plain(m, &layer_average, at), m->data.classes, false);
}

/* As Simonyan and Zisserman (2014) describe them, with batch norm and one dense layer. Five times
 * the side is halved: the first layer makes 32x32 of smaller images, with a border of zeros. */
static void build_vgg(struct model *m, const struct architecture *k) {
    int border = m->data.side < 32 ? (32 - m->data.side) / 2 : 0, channels = m->width;
    int at = LAYER_IMAGES;
    for (int stage = 0; stage < NETWORK_STAGES; stage++) {
        for (int i = 0; i < k->depth[stage]; i++)
            at = norm(m, conv(m, at, channels, 3, 1, 1 + (at == LAYER_IMAGES ? border : 0)), true);
        at = pool(m, at, false);
        channels = channels < 8 * m->width ? 2 * channels : channels;
    }
    dense(m, plain(m, &layer_flatten, at), m->data.classes, false);
}

static const struct architecture table[] = {
    {"lenet", 6, {0}, false, build_lenet},
    {"resnet18", 64, {2, 2, 2, 2}, false, build_resnet},
    {"resnet32", 16, {5, 5, 5}, false, build_resnet},
    {"resnet50", 64, {3, 4, 6, 3}, true, build_resnet},
    {"resnet110", 16, {18, 18, 18}, false, build_resnet},
    {"resnet152", 64, {3, 8, 36, 3}, true, build_resnet},
    {"vgg11", 64, {1, 1, 2, 2, 2}, false, build_vgg},
    {"vgg16", 64, {2, 2, 3, 3, 3}, false, build_vgg},
};

/* "lenet, resnet18, ..." */
static void network_names(char *ret, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table) && n < size; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", table[i].name);
}

/* LeNet as well as lenet, ResNet-18 or resnet_18 as well as resnet18. */
static bool is_name(const char *name, const char *said) {
    for (; *name; name++, said++) {
        said += *said == '-' || *said == '_';
        if (*name != *said && *name - 'a' != *said - 'A')
            return false;
    }
    return !*said;
}

const struct architecture *network_find(const char *name, struct err *err) {
    char names[128];
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (is_name(table[i].name, name))
            return &table[i];
    network_names(names, sizeof(names));
    err_say(err, -EINVAL, "--network=%s is not known: there are %s", name, names);
    return NULL;
}
