/* process_dump: all that /proc says of one process, as text for people: its threads with their state,
 * wait channel and kernel stack, its open files and sockets. */
#pragma once

#include "base/buf.h"

#include <sys/types.h>

void process_dump(pid_t pid, struct buf *out);
