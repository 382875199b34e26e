/* reader: values out of a tree, by the tables of keys.h. What is wrong is added to the diagnostics
 * and reading goes on, so that one pass finds every error. Private to this room. */
#pragma once

#include "harness/scenario/keys.h"

struct reader {
    struct arena *arena;
    struct diagnostics *d;
    struct scenario *s;
    /* While the timeline is read: the ids of all its entries, and how many were read before. */
    const char **ids; /* NULL-ended */
    size_t ids_n, ids_read;
    int line_errors; /* of all errors those in entries of the timeline */
};

/* Reads every key of the section into `out`: what is there, the defaults for what is not, an error
 * for what is required. n may be NULL (all defaults). */
void reader_section(struct reader *r, const struct section *s, const struct yaml *n, void *out);

/* Readers for a key whose value is one member of the section at key->offset. */
key_read_fn reader_text;     /* const char * */
key_read_fn reader_int;      /* int, from min to max */
key_read_fn reader_i64;      /* int64_t, from min to max */
key_read_fn reader_duration; /* int64_t, ns */
key_read_fn reader_bool;     /* bool */
key_read_fn reader_percent;  /* int, from min to max; "80%" */
key_read_fn reader_enum;     /* an enum: the index of the choice */
key_read_fn reader_flag;     /* bool: the last of the choices */
key_read_fn reader_under;    /* the struct of the section under it */

/* For readers of a section's own: each returns false after adding the error. */
bool reader_is_scalar(struct reader *r, const struct key *k, const struct yaml *n);
bool reader_number(struct reader *r, const struct key *k, const struct yaml *n, int64_t *ret);
bool reader_decimal(struct reader *r, const struct key *k, const struct yaml *n, double min,
                    double max, double *ret);
bool reader_time(struct reader *r, const struct key *k, const struct yaml *n, int64_t *ret_ns);
bool reader_pairs(struct reader *r, const struct key *k, const struct yaml *n,
                  const struct pair **ret, size_t *ret_n);
/* A list of texts, NULL-ended. */
bool reader_words(struct reader *r, const struct key *k, const struct yaml *n,
                  const char *const **ret, size_t *ret_n);
/* Adds what is wrong with a list in which a text is empty. */
void reader_no_empty(struct reader *r, const struct key *k, const struct yaml *n);
/* The value is the name of one of the choices: its index, else -1 after adding the error. What is
 * in `later` (NULL-ended or NULL) is known but not built yet. */
int reader_choice(struct reader *r, const struct key *k, const struct yaml *n,
                  const char *const *choices, const char *const *later);
/* "/regex/": what stands between the slashes, in the arena; NULL after adding the error. */
const char *reader_line(struct reader *r, const struct key *k, const struct yaml *n);
/* Which entry of the timeline has this id; -1 after adding the error. */
int reader_id(struct reader *r, const struct key *k, const char *id, struct place p);
/* "{shared}" and its like: only known names may stand in braces. */
void reader_check_placeholders(struct reader *r, const char *text, struct place p);
