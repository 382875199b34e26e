/* fetch: the files of a dataset brought into a directory and held against their sums. */
#pragma once

#include "scenarios/jobs/ranktrain/data/dataset_kind.h"

#include "base/err.h"

struct fetch_way {
    const char
        *cacert;     /* of https: a file, PEM, who signs the server's certificate; NULL or "": the
                           system's */
    bool unverified; /* the files need not be the known ones */
};

/* From below a URL into a directory; archives are unpacked there. -EBADMSG: a file is not the known
 * one. */
int fetch_files(const struct dataset_kind *k, const char *url, const char *dir,
                const struct fetch_way *way, struct err *err);

/* Those that lie in a directory already. Files that are not there are no error. *ret_known: how many
 * there are and are the known ones. */
int fetch_verify(const struct dataset_kind *k, const char *dir, int *ret_known, struct err *err);
