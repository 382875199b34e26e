/* call_file: which file a watched call (call_watch.h) is about. */
#pragma once

#include "faults/mechanism/call_watch.h"

enum { CALL_FILE_MAX = 4096 };

/* The paths as the caller sees them, absolute and without "." and ".."; links are not followed. to:
 * the new name of a rename, else "". "" as well where the call changes no file: an open for reading,
 * the close of what was. */
void call_file_paths(const struct watched_call *c, char from[CALL_FILE_MAX],
                     char to[CALL_FILE_MAX]);
