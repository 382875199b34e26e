/* disk_call: the system calls of a program as operations on a disk. */
#pragma once

#include "faults/mechanism/call_file.h"
#include "faults/mechanism/disk_rules.h"

/* Adds all calls by which such operations are made to what is watched, each once. */
void disk_call_watch(struct call_watch *w, unsigned does);

struct disk_call_paths {
    char from[CALL_FILE_MAX], to[CALL_FILE_MAX];
};
/* False: it is no operation on a file that has a name. */
bool disk_call_read(const struct watched_call *c, struct disk_call_paths *paths,
                    struct disk_request *ret);
