/* report: what a process has taken from the library and what of it is left at its end:
 *
 *     rank 0 ids 1 communicators 0 roots 0 listeners 0
 *
 * roots are threads called "NCCL BootstrapR", as NCCL calls its own; listeners are all listening
 * TCP sockets of the process, whoever made them. Both are read from /proc. */
#pragma once

enum report_count { REPORT_IDS, REPORT_COMMUNICATORS, REPORT_COUNTS };

void report_add(enum report_count what, int n);
