/* output: the directories of the workers' logs and error files.
 *
 *   <log dir>/<run id>_XXXXXXXX/attempt_<restart count>/<local rank>/
 *       {stdout.log,stderr.log,error.json}
 *
 * as torchrun lays them out, one run directory per agent process. A round that comes at the same
 * restart count (a membership change) does not destroy what the last one wrote: its directory is
 * kept as attempt_<restart count>_round_<round>, and attempt_<n> is always the newest. Without a
 * log directory there are only the error files, round_<round>_<local rank>_error.json in a scratch
 * directory that is removed at the end;
 * when streams are to go into files it is one that stays, /tmp/torchelastic_XXXXXXXX. */
#pragma once

#include "agent/workers/spec.h"
#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct output {
    const struct worker_output *what;
    char run_dir[PATH_MAX - 128]; /* "": --log-dir /dev/null, nothing is kept */
    bool scratch;                 /* nothing of it is to stay */
    bool attempted;
    int restart_count; /* of the newest attempt */
    uint64_t round;
};

/* Paths of one worker; "": none, the stream is inherited. */
struct output_files {
    char out[PATH_MAX], err[PATH_MAX], error_json[PATH_MAX];
};

/* Makes log_dir, so that one that cannot be is known before anything starts: 0, or -errno with the
 * sentence. NULL and /dev/null are always good. */
int output_check(const char *log_dir, struct err *err);
/* what: the caller's, kept; with arrays of so many workers. */
int output_init(struct output *o, const struct worker_output *what, int workers, const char *run_id,
                struct err *err);
/* Makes the directories of a round. */
int output_begin(struct output *o, const struct worker_spec *s, struct err *err);
void output_files(const struct output *o, int local_rank, struct output_files *ret);
/* The file for the chosen lines of a stream (STREAM_*) of all workers of the round. */
void output_filtered_file(const struct output *o, int stream, char ret[PATH_MAX]);
/* What the worker of the newest attempt left in its error file, one line or more; "" when it left
 * none. A file that nobody can read is said to be one, and a disk that is full when nothing else is
 * said. */
void output_error_text(const struct output *o, int local_rank, char *ret, size_t size);
/* Of the n workers of the newest attempt the one whose error file is the oldest, if it is older
 * than this one's own, or there is no own: it has failed before, even if it has not ended yet. -1:
 * none. */
int output_failed_before(const struct output *o, int local_rank, int n);
/* Removes a scratch directory. */
void output_fini(struct output *o);
