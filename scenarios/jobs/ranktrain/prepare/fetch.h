/* fetch: the files of a dataset brought into a directory and held against their sums. */
#pragma once

#include "scenarios/jobs/ranktrain/data/dataset_kind.h"

#include "base/err.h"

/* From below a URL into a directory; archives are unpacked there. -EBADMSG: a file is not the known
 * one. unverified: it need not be. */
int fetch_files(const struct dataset_kind *k, const char *url, const char *dir, bool unverified,
                struct err *err);

/* Those that lie in a directory already. Files that are not there are no error. *ret_known: how many
 * there are and are the known ones. */
int fetch_verify(const struct dataset_kind *k, const char *dir, int *ret_known, struct err *err);
