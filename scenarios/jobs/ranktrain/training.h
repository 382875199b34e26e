/* training: what decides, besides network, optimizer and seed, what becomes of a model. A checkpoint
 * says of which training it is, and is not gone on from by one that must end with another model. */
#pragma once

#include "scenarios/jobs/ranktrain/compute.h"

#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRAINING_NAME = 32, TRAINING_TEXT = 512 };

struct training {
    char dataset[TRAINING_NAME]; /* "": not known, as of what an older ranktrain has saved */
    int64_t images, sum;         /* of the training data; sum 0: each node has a part of it */
    int64_t batch_size, shards;
    bool drop_last;

    double lr, momentum;
    int64_t scale_lr;
    char mode[TRAINING_NAME];     /* "ps-async": its models depend on time */
    char computes[COMPUTE_LABEL]; /* what rounds the numbers */
};

/* As members of the object that is open. */
void training_write(const struct training *t, struct json_writer *w);
void training_read(const struct json *object, struct training *ret);

/* Returns 0, or -EXDEV and what differs, by the name of its option. */
int training_check(const struct training *own, const struct training *saved, struct err *err);

/* What may have been changed on purpose, and leads to another model: in ret, "" where there is none. */
void training_changes(const struct training *own, const struct training *saved,
                      char ret[TRAINING_TEXT]);
