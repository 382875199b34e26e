/* language: the words of a scenario printed for others: as a JSON Schema for editors and
 * validators, and as the tables of docs/scenario-language.md. Both come from the tables of
 * harness/scenario/keys.h and faults/fault.h, so neither can say what the loader does not do. */
#pragma once

#include "base/json.h"
#include "harness/scenario/keys.h"

/* The schema (JSON Schema, draft 7) of a scenario file, or of a suite; indented, a line feed at the
 * end. What stands in quotes and braces, "{name}", may stand for any value (vars). What only a
 * whole file shows (an id that nobody has, a world size that can never be) is lint's. */
void schema_put_scenario(struct buf *out);

/* The page with the tables in it: what stands between a line `<!-- words: NAME -->` and the next
 * `<!-- end -->` is replaced by the table of the section, of `faults`, `features`, `presets` or
 * `weights`, by the `catalogue` of faults, or by a family of them, "family network". Returns 0, or -EINVAL with the line that names nothing or does not end. */
int manual_fill(const char *page, struct buf *out, struct err *err);

/* The catalogue of faults: a row each of a table; or an entry with its example for each of a family,
 * false: there is no such family. */
void catalogue_put(struct buf *out);
bool catalogue_put_family(struct buf *out, const char *family);

/* form: the values that may stand under a key, key->form as "anyOf" of the object that is open. */
void form_put(struct json_writer *w, const struct key *k);
/* What form_put refers to, as members of "definitions". */
void form_put_definitions(struct json_writer *w);
/* The form of a key: its own, or that of its reader in reader.h. NULL: the table lacks one. */
const char *form_of(const struct key *k);
