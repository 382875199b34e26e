/* abilities: what a helper can do on its host, tried out there. Of this room only. */
#pragma once

#include "base/json.h"
#include "harness/carrier/hello.h"

/* Sets the bits of `can` that can be tried, and leaves the others. What cannot be done is put by its word, with the
 * sentence that says why. */
void abilities_try(struct hello *h, struct json_writer *why_not);
