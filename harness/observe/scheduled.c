#include "harness/observe/scheduled.h"

#include "base/buf.h"
#include "base/sys/file.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 128 };

/* Two numbers of nanoseconds, and one of how often it ran. */
bool scheduled_read(pid_t pid, struct scheduled *ret) {
    BUF_FINI struct buf text = {0};
    char path[64], *at, *end;
    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
    if (file_read(path, TEXT_MAX, &text, NULL))
        return false;
    ret->ran_ns = strtoll(buf_str(&text), &at, 10);
    ret->waited_ns = strtoll(at, &end, 10);
    return end != at && ret->ran_ns > 0;
}
