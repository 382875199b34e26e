/* places: which ranks have the same checkpoint directory before them.
 *
 * The path is the same everywhere; whether what lies there is one directory that all share, a disk
 * of each node's own, or something between, is found out and not believed: numbers of devices and
 * inodes are equal on two machines by chance, and differ for one directory that two have mounted. So
 * every rank leaves an empty file named after the group's session, all wait for all, and each looks
 * whose files it sees. The lowest rank that has left one keeps the checkpoints of that directory.
 * A rank that cannot leave one, as on a disk that is full or read-only, keeps none where it sees
 * another's; where it sees nobody's it is alone, and fails when it is to save. */
#pragma once

#include "scenarios/jobs/ranktrain/net/bootstrap.h"

#include "base/err.h"

struct checkpoint_places {
    int keeper[BOOTSTRAP_MEMBERS]; /* of each rank's directory: a rank */
    int n;                         /* directories */
};

/* All ranks of a group that is forming call it, each with its directory open. What a rank leaves that
 * dies meanwhile is swept with the drafts of its round (checkpoint_dir_sweep). */
int places_find(struct bootstrap *b, int dir, struct checkpoint_places *ret, struct err *err);
