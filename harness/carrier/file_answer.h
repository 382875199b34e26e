/* file_answer: what a helper says of a file of its host: some of it, its last bytes, or what lies in
 * a directory. /proc is read in the same way: what has no size is read to its end. */
#pragma once

#include "base/json.h"

enum { FILE_ANSWER_MAX = 1 << 20 }; /* bytes of a file in one answer; who wants more asks again */

/* request: {do: "read"|"list"|"tail", path, at, max}. Puts {path, size, at, bytes} with the bytes in
 * base64, or {path, entries:[{name, kind, size}..]}, or {path, error} into w. */
void file_answer(const struct json *request, struct json_writer *w);
