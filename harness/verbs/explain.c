#include "agent/base/str.h"
#include "harness/scenario/keys.h"
#include "harness/verbs.h"

static void print_key(const struct section *s, const struct key *k) {
    printf("%s.%s: %s\n  %s\n", s->name, k->name, k->type, k->text);
    if (k->required)
        puts("  required");
    else if (k->absent && *k->absent)
        printf("  default: %s\n", k->absent);
    if (k->example)
        printf("  example: %s\n", k->example);
    if (!k->read)
        puts("  not built yet");
}

static void print_section(const struct section *s) {
    printf("%s: %s\n", s->name, s->text);
    for (const struct key *k = s->keys; k->name; k++)
        printf("  %-18s %s%s\n", k->name, k->type, k->read ? "" : " (not built yet)");
}

static bool explain_key(const char *name) {
    bool found = false;
    for (size_t i = 0; sections[i]; i++)
        if (str_eq(sections[i]->name, name)) {
            print_section(sections[i]);
            found = true;
        }
    size_t it = 0;
    const struct section *s = NULL;
    for (const struct key *k; (k = keys_find(name, &it, &s)); found = true)
        print_key(s, k);
    return found;
}

static bool explain_verb(const char *name) {
    const struct verb *v = verb_find(name);
    if (!v || !v->summary)
        return false;
    verb_print_help(v, stdout);
    return true;
}

static int explain(int argc, char **argv) {
    if (argc != 2)
        return verb_usage_error(&verb_explain, "which name?");
    bool key = explain_key(argv[1]), verb = explain_verb(argv[1]);
    if (!key && !verb) {
        fprintf(stderr, "rankquake explain: nothing is called \"%s\"\n", argv[1]);
        return EXIT_USAGE_ERROR;
    }
    return 0;
}

const struct verb verb_explain = {
    .name = "explain",
    .usage = "explain NAME",
    .summary = "what a key of a scenario (job, job.run) or a verb means",
    .main = explain,
};
