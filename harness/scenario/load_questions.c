#include "agent/base/str.h"
#include "harness/scenario/load.h"

#include <stddef.h>
#include <string.h>

/* ---- checks of the user's own ---- */

enum { CHECKS_MAX = 8 };

static void read_check_name(struct reader *r, const struct key *k, const struct yaml *n,
                            void *out) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    struct own_check *c = out;
    if (!reader_is_scalar(r, k, n))
        return;
    if (!*n->text || strspn(n->text, allowed) != strlen(n->text) || strlen(n->text) > 40)
        diagnostics_add(r->d, n->place,
                        "name: \"%s\" must be letters, digits, - _ or ., 40 at most", n->text);
    c->name = n->text;
}

static void read_program(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct own_check *c = out;
    if (reader_words(r, k, n, &c->program, &c->program_n) && !c->program_n)
        diagnostics_add(r->d, n->place, "program is empty; %s", k->example);
}

#define AT(member) .offset = offsetof(struct own_check, member)

const struct section section_checks = {
    "checks",
    "A program of your own that judges a run. It is started when the run is judged, in the "
    "directory and environment of the caller, with the history on its standard input, one JSON "
    "object a line (`rankquake schema history`), and prints one JSON object: {\"status\": "
    "\"pass\", \"fail\", \"unknown\" or \"skip\", \"seen\": a sentence, \"expected\": a "
    "sentence, \"evidence\": [the seq of records that show it]}. When it crashes, ends with "
    "another "
    "status than 0, says nothing that can be read or takes too long, the answer is unknown. "
    "RANKQUAKE_RUN names the run directory.",
    (const struct key[]){
        {"name", "a name", "(the program's)", "What it is called in reports.", "name: no-nan",
         read_check_name, .form = "<name>"},
        {"program", "a list of words", NULL, "The program and its arguments.",
         "program: [python3, no_nan.py]", read_program, .required = true, .form = "[<scalar>]"},
        {"within", "a duration", "30s", "How long it may take.", "within: 2m", reader_duration,
         AT(within_ns), .min = 1},
        {0},
    },
};

static bool is_taken(const struct own_check *v, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(v[i].name, name))
            return true;
    return false;
}

void load_checks(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct scenario *s = out;
    if (n->type != YAML_LIST || n->length > CHECKS_MAX) {
        diagnostics_add(r->d, n->place, "checks must be %s, %d at most", k->type, CHECKS_MAX);
        return;
    }
    struct own_check *v = arena_array(r->arena, struct own_check, n->length + 1);
    size_t used = 0;
    yaml_each(it, n) {
        struct own_check *c = &v[used];
        c->place = it->place;
        reader_section(r, &section_checks, it, c);
        if (!c->name && c->program_n)
            c->name = str_base(c->program[c->program_n > 1 ? 1 : 0]);
        if (c->name && is_taken(v, used, c->name))
            diagnostics_add(r->d, it->place, "checks: there are two of the name \"%s\"", c->name);
        c->label = arena_printf(r->arena, "own:%s", c->name ? c->name : "");
        used++;
    }
    s->checks = v;
    s->checks_n = used;
}
