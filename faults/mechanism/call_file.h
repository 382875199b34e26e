/* call_file: which file a watched call (call_watch.h) is about. */
#pragma once

#include "faults/mechanism/call_watch.h"

#include <stdbool.h>

enum { CALL_FILE_MAX = 4096 };

/* By a name that it gives, relative to a descriptor of a directory or AT_FDCWD; of a descriptor. ""
 * where it is no file. As below. */
void call_file_at(const struct watched_call *c, int dir, uint64_t name, char ret[CALL_FILE_MAX]);
void call_file_of(const struct watched_call *c, int fd, char ret[CALL_FILE_MAX]);
/* An open that may write, or makes the file; flags: its argument. */
bool call_file_opens_to_write(const struct watched_call *c, uint64_t flags);

/* The paths as the caller sees them, absolute and without "." and ".."; links are not followed. to:
 * the new name of a rename, else "". "" as well where the call changes no file: an open for reading,
 * the close of what was. */
void call_file_paths(const struct watched_call *c, char from[CALL_FILE_MAX],
                     char to[CALL_FILE_MAX]);
