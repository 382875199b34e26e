/* capture: the frames of one card as a file that Wireshark and tcpdump open (pcapng).
 *
 * Of each frame its first CAPTURE_SNAP bytes are kept, with its length, its direction and, where a
 * fault met it, a comment that says so. The file is bounded: what comes beyond is counted, and the
 * last block of the file says how many frames that were. It consists of whole blocks at any time. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CAPTURE_SNAP = 2048 };
static const int64_t CAPTURE_MOST = INT64_C(64) << 20;

struct capture;

/* Takes fd, an empty file. name: of the card, for people. ahead_ns: the time of day less the clock
 * by which frames are stamped. */
struct capture *capture_new(int fd, const char *name, int64_t ahead_ns, int64_t most);
/* Writes the end; NULL is allowed; returns NULL. */
struct capture *capture_free(struct capture *c);
/* comment: NULL or "": none. */
void capture_frame(struct capture *c, int64_t now_ns, const void *bytes, size_t len, bool inbound,
                   const char *comment);
void capture_flush(struct capture *c);
