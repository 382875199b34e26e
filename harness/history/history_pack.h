/* history_pack: trees of JSON kept in little memory.
 *
 * Of millions of records most say nearly the same: the same keys, the same list of shards. Texts
 * are kept once, and so is the end of a list or object that equals one that was kept before: trees
 * share it. What is remembered of what was kept is limited; who is forgotten is kept again. */
#pragma once

#include "base/json.h"

struct pack;

struct pack *pack_new(struct arena *a); /* what is kept lives in a */
struct pack *pack_free(struct pack *p); /* NULL is allowed; returns NULL; what was kept stays */

const struct json *pack_tree(struct pack *p, const struct json *j);
/* Equal short texts are mostly, not always, the same pointer. */
const char *pack_text(struct pack *p, const char *text, size_t len);

size_t pack_bytes(const struct pack *p); /* that what was kept has taken */
