/* source: one file of C as libclang's tree says it, by the bytes of its text.
 *
 * What a macro brings has the place of the macro's name. So an operator compares what it expects with what stands in
 * the text, and points within macros fall away by themselves. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <clang-c/Index.h>
#include <stdbool.h>
#include <stddef.h>

struct node {
    CXCursor cursor;
    enum CXCursorKind kind;
    size_t begin, end; /* bytes of the text */
    struct node *parent, *first, *next;
};

struct source {
    const char *path;
    struct buf text;
    struct node *root; /* of the file: what is declared in it, not in its headers */
    CXIndex index;
    CXTranslationUnit unit;
    struct arena nodes;
};

/* Reads and parses; what does not compile is an error with the compiler's first sentence. */
int source_open(struct source *s, const char *path, const char *const *flags, int n_flags,
                struct err *err);
void source_close(struct source *s);

struct node *node_child(const struct node *n, int index); /* NULL: has no such */
int node_children(const struct node *n);
/* Whether this is what stands there, word for word. */
bool node_reads(const struct source *s, const struct node *n, const char *text);
/* Whether the same stands at both places, word for word. */
bool node_alike(const struct source *s, const struct node *a, const struct node *b);
/* Whether it begins with this word. */
bool node_opens(const struct source *s, const struct node *n, const char *word);
/* Whether nothing but this stands between two, white space aside. */
bool node_between(const struct source *s, const struct node *a, const struct node *b,
                  const char *text);
/* The nearest function around it, or what is declared at the file's level; NULL outside. */
const struct node *node_holder(const struct node *n);
/* A statement of its own: a block's, a branch's or a loop's, before whose end a semicolon is not. */
bool node_is_statement(const struct source *s, const struct node *n);
/* The condition that an if, a loop or a ?: has. */
struct node *node_condition(const struct source *s, const struct node *n);
/* Without the casts that nobody wrote and the parentheses. */
const struct node *node_bare(const struct node *n);
/* Whether it says how long an array is that is declared there. */
bool node_is_length(const struct node *n);
