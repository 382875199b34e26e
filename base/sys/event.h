/* event: the launcher's claims to the harness (the client of scenarios/jobs/rankquake.h).
 *
 * Without RANKQUAKE_EVENTS nothing happens. An event is never waited for, except one that the
 * harness holds on purpose: then this process stands still until it is let go. */
#pragma once

#include <stdint.h>

/* Connects; a harness that does not answer within RANKQUAKE_WAIT seconds, or 5, is left alone,
 * silently. */
void event_open(void);
/* Tells that the launcher is at what ("join", "start", ...) of a round; round < 0: none yet. */
void event_launcher(const char *what, int64_t round);
/* Tells which worker the launcher calls the first that failed in that round: what is
 * "first-failure". */
void event_first_failure(int64_t round, const char *node, int rank);
void event_close(void);
