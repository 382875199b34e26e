/* error_file: what a worker leaves behind when it fails, in the file that TORCHELASTIC_ERROR_FILE
 * names (PyTorch's @record; torch.distributed.elastic.multiprocessing.errors):
 *
 *   {"message": {"message": "...", "extraInfo": {"py_callstack": "...", "timestamp": "..."}}}
 *   {"message": "...", "timestamp": "..."} */
#pragma once

#include "base/err.h"

#include <stddef.h>

/* Its message; "" when there is no such file. A file without one is said to be one, and why one cannot be
 * read is said, too. */
void error_file_text(const char *path, char *ret, size_t size);

/* Writes it once more at `to`, in place of what is there, with the code by which the worker ended
 * (negative: a signal) as "errorCode" beside the message, when that is an object: as torchrun does
 * for who started it. Returns 0, 1 when there is none, or -errno with the sentence. */
int error_file_pass_on(const char *path, const char *to, int code, struct err *err);
