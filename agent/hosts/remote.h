/* remote: the far end of `rankrun -H`: does the remote launch that comes by standard input. */
#pragma once

/* The word of its command line behind "remote" when its lines are to be JSON. */
#define REMOTE_JSON "--log-format=json"

/* Returns the exit code: the agent's, 128+n when a signal ended it, 64 when it could not begin. */
int remote_main(void);
