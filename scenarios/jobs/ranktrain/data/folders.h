/* folders: a set of images written as class folders of PNG files, SET/CLASS/NUMBER.png, as programs
 * that know nothing of ranktrain's own form read them. */
#pragma once

#include "scenarios/jobs/ranktrain/data/images.h"

#include "base/err.h"

/* The first `limit` images (0: all) into a folder that is not there yet. Every class has its folder,
 * also one without images. *ret_count: how many. Not atomic: the caller renames. */
int folders_write(const char *folder, const struct images *d, uint32_t limit, uint32_t *ret_count,
                  struct err *err);
