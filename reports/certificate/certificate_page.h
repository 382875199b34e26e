/* certificate_page: a certificate for people, on the screen and on paper. */
#pragma once

#include "base/json.h"

/* Appends the page of a certificate, all of it but its member "files" (which has the page's hash). The
 * same tree gives the same bytes. */
void certificate_page(const struct json *certificate, struct buf *out);
