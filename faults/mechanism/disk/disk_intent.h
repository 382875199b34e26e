/* disk_intent: what a program is about to do whose request the disk is dealing with: the kernel asks
 * for a name in the same way for who looks at it and for who will open it. */
#pragma once

enum disk_intent {
    DISK_INTENT_OTHER, /* nothing of these, or it cannot be seen */
    DISK_LOOKS,        /* what it is told is what it gets: stat, access, readlink */
    DISK_OPENS,        /* what is there already */
};

/* Of a thread that waits for the disk, by the system call that it waits in. */
enum disk_intent disk_intent_of(int thread);
/* The same of a line as in /proc/THREAD/syscall. */
enum disk_intent disk_intent_read(const char *line);
