/* left_groups: control groups by which helpers that have gone held their nodes to limits (limit_group.h), where helper and
 * keeper were killed in the same moment: a limit would hold whoever comes into them for ever. Of this room only. */
#pragma once

#include "base/json.h"

/* Puts groups: [{pid, path, error}] into the object that is open, of the helper that has gone. clean: what runs in them is
 * ended, and they are removed; error: null where that was done, or was not asked for. */
void left_groups_put(bool clean, struct json_writer *w);
