#include "tests/mutate/rooms.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* The longest folder that begins a path is the one that counts. */
static const struct {
    const char *folder, *room;
} rooms[] = {
    {"agent/core/", "core"},
    {"agent/legacy/", "legacy"},
    {"agent/store/", "store"},
    {"agent/workers/", "workers"},
    {"agent/", "shell"},
    {"scenarios/jobs/ranktrain/", "job"},
    {"harness/observe/", "observe"},
    {"harness/judge/", "judge"},
};

const char *room_of(const char *path, char *buf, int size) {
    for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++)
        if (str_starts(path, rooms[i].folder))
            return rooms[i].room;
    const char *slash = strrchr(path, '/');
    snprintf(buf, (size_t)size, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    return buf;
}
