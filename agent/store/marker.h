/* marker: whether an earlier life of the embedded store may have left workers that it forgot.
 *
 * While a store serves more than one node, a file with the boot id stands for it, by host and port,
 * in $XDG_RUNTIME_DIR/rankrun, else /run/rankrun, else /tmp/rankrun-<uid>: the first of these that
 * is there or can be made, is the user's own and nobody else's to write. It is taken away when the
 * store ends and knows of no agent that may still have workers. Whoever finds one of this boot may
 * have forgotten a job: it holds the first round of the jobs that are begun on it back
 * (KEY_QUARANTINE). Written as design decision 24. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct kv;

enum marker_found {
    MARKER_NONE,
    MARKER_OF_EARLIER_BOOT,
    MARKER_LEFT,    /* of this boot, or of one that cannot be told */
    MARKER_UNKNOWN, /* there is no place for it, or it cannot be read */
};

/* quarantine: "auto", "always" or "never". */
bool marker_owes(const char *quarantine, enum marker_found found);
/* text: of the file, NULL when there is none; boot: of now. */
enum marker_found marker_judge(const char *text, const char *boot);
/* Whether a session is in kv, whose workers may live, or it has come back itself lately. */
bool marker_needed(const struct kv *kv);

struct marker {
    char path[4096]; /* "": there is no place for it */
};

/* For a store that has begun to listen and has answered nobody yet. Writes the quarantine into kv
 * when it is owed, for 10 minutes: after so long a store has seen the end of what it forgot, and
 * its other jobs need not wait. Returns whether it did. What went wrong is in err, and is no more
 * than something to tell: a place that cannot be had counts as a marker that was left. */
bool marker_open(struct marker *m, const char *host, uint16_t port, const char *quarantine,
                 struct kv *kv, struct err *err);
/* The store ends; nothing where none was opened. */
void marker_close(struct marker *m, const struct kv *kv);
