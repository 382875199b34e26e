/* archive: the files of a .tar.gz. */
#pragma once

#include "base/err.h"

/* Writes its plain files into a directory, each under the last part of its name; what else is in it
 * is passed over. -EBADMSG: it is none, or cut short. */
int archive_unpack(const char *path, const char *dir, struct err *err);
