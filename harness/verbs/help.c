/* Prints the table of verbs, and the usage of one. */
#include "harness/verbs.h"

static int help(int argc, char **argv) {
    if (argc < 2) {
        verbs_print_help(stdout);
        return 0;
    }
    const struct verb *v = verb_find(argv[1]);
    if (!v)
        return verb_usage_error(&verb_help, "there is no verb \"%s\"", argv[1]);
    verb_print_help(v, stdout);
    return 0;
}

const struct verb verb_help = {
    .name = "help",
    .usage = "help [VERB]",
    .summary = "list the verbs, or show how to use one",
    .example = "help run",
    .main = help,
};
