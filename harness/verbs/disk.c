/* rankquake disk: a command over whose directory a disk of ours lies; started by rankquake itself,
 * not by people. */
#include "base/str.h"
#include "faults/mechanism/disk/disk_over.h"
#include "harness/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

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
