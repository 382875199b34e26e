/* options_facts: all that options_read has made of a command line, as text, field by field. */
#pragma once

#include "agent/options.h"
#include "base/arena.h"
#include "base/buf.h"

enum { FACTS_MAX = 96 };

/* The name of a field and what it holds; "-" where that is nothing. */
struct options_facts {
    struct {
        const char *name, *text;
    } list[FACTS_MAX];
    int n;
};

/* The texts are in the arena. */
void options_facts_of(const struct options *o, struct arena *a, struct options_facts *ret);
/* " name=text" of each that is another than in usual. */
void options_facts_put(struct buf *out, const struct options_facts *f,
                       const struct options_facts *usual);
