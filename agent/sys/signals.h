/* signals: names of signals, and what a child must be given back before it runs something else. */
#pragma once

/* "SIGTERM", or "signal 77" for one without a name; never NULL. Valid until the next call. */
const char *signal_name(int signo);
/* "SIGTERM", "TERM" or "15" -> 15; 0 when there is no such signal. */
int signal_number(const char *name);

/* In a child before exec: nothing is blocked, SIGPIPE is as usual. Async-signal-safe. Dispositions
 * that the caller itself inherited (nohup's) stay. */
void signal_reset(void);
