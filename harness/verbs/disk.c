/* rankquake disk: a command over whose directory a disk of ours lies; or, as `disk FD`, the disks of
 * the nodes of a run. Started by rankquake itself, not by people. */
#include "base/str.h"
#include "faults/mechanism/disk/disk_over.h"
#include "harness/cluster/disk_keeper.h"
#include "harness/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

static int keep(const char *fd_text) {
    struct err err;
    int64_t fd;
    if (!str_to_i64(fd_text, 0, 1 << 20, &fd))
        return verb_usage_error(&verb_disk, "it takes --over DIR and, behind --, a command");
    return disk_keeper_run((int)fd, &err) == 0 ? EXIT_PASS : verb_broken(&verb_disk, &err);
}

static int disk_run(const struct arguments *a) {
    struct err err;
    int status = 0;
    int64_t max_bytes = 0;
    struct disk_over over = {.dir = arguments_value(a, "--over"),
                             .disk = {.record = arguments_value(a, "--record")},
                             .argv = a->rest};
    int r = arguments_number(a, "--max-bytes", 1, INT64_MAX, &max_bytes);
    if (r)
        return r;
    if (a->files_n == 1 && !over.dir && !over.argv)
        return keep(a->files[0]);
    if (!over.dir || !over.argv || !over.argv[0] || a->files_n)
        return verb_usage_error(&verb_disk, "it takes --over DIR and, behind --, a command");
    over.disk.max_bytes = (uint64_t)max_bytes;
    r = disk_run_over(&over, &status, &err);
    if (r)
        fprintf(stderr, "rankquake disk: %s\n", err.msg);
    if (r && r != -EFBIG)
        return r == -ENOTSUP ? EXIT_SKIPPED : EXIT_BROKEN;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const struct verb verb_disk = {
    .name = "disk",
    .usage = "disk --over DIR [--record FILE] [--max-bytes N] -- CMD...",
    .options =
        (const struct verb_option[]){
            {"--over", "DIR", "the directory that the command sees through a disk of ours"},
            {"--record", "FILE", "what is done to it, and in FILE.bytes the bytes"},
            {"--max-bytes", "N", "bound of FILE.bytes (1 GiB)"},
            {0},
        },
    .run = disk_run,
};
