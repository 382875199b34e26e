/* A process that records by system calls what others do to a folder, as `crashpoints --record calls` has it. */
#pragma once

#include "harness/crash/call_record.h"

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void recording_fails(const char *what) {
    perror(what);
    _exit(1);
}

/* The watch that a writer sends when it has installed it. */
static int recording_take(int end) {
    struct pollfd p = {.fd = end, .events = POLLIN};
    int watch = poll(&p, 1, 20000) == 1 ? call_watch_take(end) : -1;
    if (watch < 0)
        recording_fails("take the watch");
    return watch;
}

/* Until no writer is left. */
static void recording_run(int watch, const char *folder, const char *path) {
    struct disk_recorder *to;
    struct err err = {0};
    int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (disk_recorder_open(&to, path, UINT64_C(1) << 36, &err) != 0)
        recording_fails(err.msg);
    struct call_record *r = call_record_new(watch, dir, to, &err);
    if (!r)
        recording_fails(err.msg);
    struct pollfd p[] = {{.fd = watch, .events = POLLIN},
                         {.fd = call_record_idle_fd(r), .events = POLLIN}};
    umask(0);
    while (poll(p, 2, -1) > 0) {
        if (p[0].revents && call_record_serve(r, p[0].revents) < 0)
            break;
        if (p[1].revents)
            call_record_idle(r);
    }
    if (disk_recorder_close(to, &err) != 0)
        recording_fails(err.msg);
    call_record_free(r);
    close(dir);
}
