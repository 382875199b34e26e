/* annotations: what did not pass, told to a code host at the scenario's file. v points to n runs that are
 * alike (judged.h); a check is told once for all of them. */
#pragma once

#include "reports/judged.h"

/* GitHub's workflow commands, a line each. */
void github_put(struct buf *out, const struct judged *const *v, size_t n);
/* GitLab's issues of code quality, into an open array. */
void gitlab_put(struct json_writer *w, const struct judged *const *v, size_t n);
