/* disk_faults: what rules (disk_rules.h) have a disk do to operations through one of its mounts: an
 * error, a part of a write, or a wait, in which whoever waits holds nothing of ours and can be
 * killed. All that the kernel asks of the disk passes here, whoever caused it: pages of mappings,
 * direct IO, programs that are linked statically. */
#pragma once

#include "faults/mechanism/disk/disk_server.h"

#include <limits.h>

/* What came of an operation; only verdict is there where it passes. */
struct disk_blow {
    enum disk_verdict verdict;
    int64_t rule;
    int error, pid;
    unsigned does;
    char path[PATH_MAX];
};

void disk_faults_begin(struct disk *d);

/* True: it is answered, or will be. False: it is to be dealt with, in part if c->cut; then told. */
bool disk_faults_strike(struct disk_call *c, struct disk_blow *blow);
void disk_faults_tell(const struct disk_call *c, const struct disk_blow *blow);

/* Under the lock: who waits for the answer to that request has a signal. */
void disk_faults_interrupt(struct disk *d, uint64_t unique);

/* Under the lock: it is told what is so no more, as that rule has it. */
void disk_faults_late(struct disk_call *c, const struct disk_rule *rule, const char *path);

/* Under the lock. What goes with the last name of a file, if it is this one; then, or where it was
 * cut off: there is room again. */
int64_t disk_faults_held(const struct disk_call *c, const struct disk_file *f);
void disk_faults_freed(struct disk_call *c, const char *path, int64_t bytes);
