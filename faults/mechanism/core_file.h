/* core_file: the memory and the registers of a process that is about to die, as the kernel would
 * dump them, but where we want it: an ELF core that gdb opens. What core(5) of this host says of
 * its own dumps is not touched.
 *
 * Of its memory there is what no file holds, and of each file its first page, but for what it has asked
 * to be left out (MADV_DONTDUMP); pages that it has never used are holes of the file. */
#pragma once

#include "base/err.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct core_of {
    pid_t pid;
    const pid_t
        *tids; /* traced by the caller, and standing still; the first is whose signal it is */
    size_t n;
    siginfo_t info;     /* that signal */
    uint64_t bytes_max; /* of memory; a mapping that would exceed it is left out */
};

/* Writes it to this file, which is empty. 0 or a -errno. */
int core_file_write(int fd, const struct core_of *of, struct err *err);
