/* worker_files: the files that a worker's output goes to, and its error file.
 *
 * They are opened while the worker waits to be executed and held, so that what becomes of them is
 * seen wherever they are moved. Sources: proc(5); TORCHELASTIC_ERROR_FILE of torchelastic. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { WORKER_FILES_N = 3 };

struct worker_file {
    const char *what; /* stdout, stderr or error-file */
    int fd;           /* -1: it is no file, or not there yet */
    int dir;          /* of an error file, which the worker makes; else -1 */
    int64_t bytes;    /* of the first look; -1: there was none */
    char path[1024];
};

struct worker_file_look {
    int64_t bytes;
    bool linked; /* it still has a name somewhere */
    char
        mark[13]; /* of what stood in it at the first look, of 64 KiB at most; as the file is now */
};

/* The caller owns the descriptors: worker_files_close. */
void worker_files_open(struct worker_file v[WORKER_FILES_N], pid_t pid);
void worker_files_close(struct worker_file v[WORKER_FILES_N]);
/* Any of them is held, so that there is something to look at. */
bool worker_files_any(const struct worker_file v[WORKER_FILES_N]);
/* False: it is no plain file, is not there, or cannot be read. */
bool worker_file_look(struct worker_file *f, struct worker_file_look *ret);
