/* history_parse: one line into a record, for who writes a history and who reads one. Private to
 * those of harness/history. */
#pragma once

#include "harness/history/history.h"

/* Takes a line apart and adds its record. foreign: it was not written just now by this program, so
 * what its kind demands is looked for. -EBADMSG: the message lacks the place, the caller knows it.
 */
int history_parse(struct history *h, const char *text, size_t len, bool foreign, struct err *err);
