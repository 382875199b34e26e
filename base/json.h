/* json: reading and writing RFC 8259, pure and small.
 *
 * Reading builds a tree in an arena; depth is limited to 64, a number that is a whole one and fits
 * is an int64, every other a double. Accessors accept NULL and the wrong type and answer the
 * default, so that a message is taken apart without a test at each step; where absence matters, ask
 * for the node itself with json_get.
 *
 * Writing appends to a buf; commas are the writer's business. Strings are escaped, with them
 * whatever is not fit for a terminal (printable.h); bytes that are no UTF-8 are replaced, so that
 * output of any program can be carried. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,
    JSON_DOUBLE,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

struct json {
    enum json_type type;
    const char *key; /* of a member of an object, else NULL */
    union {
        bool boolean;
        int64_t integer;
        double number;
        const char *string;
        struct json *first; /* array, object: children in order */
    };
    size_t length; /* string: bytes; array, object: children */
    struct json *next;
};

#define json_each(it, parent) for (const struct json *it = json_first(parent); it; it = it->next)

/* Returns the tree, or NULL with err saying the byte offset and what was expected there. */
struct json *json_parse(struct arena *a, const char *text, size_t len, struct err *err);

const struct json *json_get(const struct json *object, const char *key); /* NULL: absent */
const struct json *json_first(const struct json *parent);                /* NULL: none */
const char *json_string(const struct json *j, const char *absent);
int64_t json_i64(const struct json *j, int64_t absent); /* also "123" as a string (etcd's way) */
double json_number(const struct json *j, double absent);
bool json_bool(const struct json *j, bool absent);

const char *json_get_string(const struct json *object, const char *key, const char *absent);
int64_t json_get_i64(const struct json *object, const char *key, int64_t absent);
bool json_get_bool(const struct json *object, const char *key, bool absent);

struct json_writer {
    struct buf *out;
    bool comma; /* the next value needs one */
};

/* key is NULL inside an array and at the top. */
void json_object(struct json_writer *w, const char *key);
void json_array(struct json_writer *w, const char *key);
void json_end_object(struct json_writer *w);
void json_end_array(struct json_writer *w);
void json_put_string(struct json_writer *w, const char *key, const char *s); /* NULL: null */
void json_put_stringn(struct json_writer *w, const char *key, const char *s, size_t n);
/* A list, ended by a NULL; NULL: an empty one. */
void json_put_strings(struct json_writer *w, const char *key, const char *const *v);
void json_put_i64(struct json_writer *w, const char *key, int64_t v);
void json_put_known(struct json_writer *w, const char *key, bool known, int64_t v); /* or null */
void json_put_double(struct json_writer *w, const char *key, double v);
void json_put_bool(struct json_writer *w, const char *key, bool v);
void json_put_null(struct json_writer *w, const char *key);
/* Copies a tree that was read. */
void json_put_tree(struct json_writer *w, const char *key, const struct json *j);
