/* secrets: what of our environment nobody may read in what a run writes: the values of variables by
 * whose names they are secrets, also as our pages and files spell them. */
#pragma once

#include "base/hidden.h"
#include "base/sys/folder.h"

/* TOKEN, SECRET, PASSWORD, PASSWD, PASSPHRASE or CREDENTIAL anywhere in the name, or a word of it
 * (between underscores) that ends in KEY or KEYS; any case. */
bool secrets_is_name(const char *name);
/* Takes all values of such variables (of several lines each line too) and adds to names those that
 * are long enough to be covered. */
void secrets_take(struct hidden *ret, struct texts *names);
/* Covers them in every plain file of the tree. Links are not followed. All are tried; returns 0 or
 * the first -errno, with the file that could not be covered. */
int secrets_cover_tree(const struct hidden *h, const struct folder *dir, struct err *err);
