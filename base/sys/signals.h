/* signals: their names, which of them end nobody, and what a child must be given back before it
 * runs something else. */
#pragma once

/* "SIGTERM", or "signal 77" for one without a name; never NULL. Valid until the next call. */
const char *signal_name(int signo);
/* "SIGTERM", "TERM" or "15" -> 15; 0 when there is no such signal. */
int signal_number(const char *name);

/* A reader that has gone (SIGPIPE) and a file that may not grow (SIGXFSZ, by the limit of a batch
 * system) are errors of a write from now on, and end nobody: as in Python. */
void signal_ignore_writes(void);

/* In a child before exec: nothing is blocked, SIGPIPE and SIGXFSZ are as usual. Async-signal-safe.
 * Dispositions that the caller itself inherited (nohup's) stay. */
void signal_reset(void);
