/* rankquake inquire coordinator ADDRESS PORT RUN_ID, or store-leader ADDRESS PORT: asks a store who
 * leads; keys ADDRESS PORT RUN_ID: how many a job has there; store-read ADDRESS PORT WORD RUN_ID
 * NUMBER: reads in it. Started by the harness in the network of the store's node, not by people. */
#include "base/str.h"
#include "harness/observe/leader.h"
#include "harness/observe/store_read.h"
#include "harness/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static int tell(int r, const struct err *err, const char *name, int64_t number) {
    if (r < 0)
        fputs(err->msg, stdout);
    else
        printf("%s%s%" PRId64, name, *name ? " " : "", number);
    return r < 0 ? EXIT_FAIL : EXIT_PASS;
}

/* Prints the number, or why there is none. */
static int read_main(char **argv, int64_t port) {
    struct store_question q = {
        .address = argv[2], .port = (uint16_t)port, .word = argv[4], .run_id = argv[5]};
    struct err err = {0};
    int64_t found = 0;
    int r = str_to_i64(argv[6], INT64_MIN, INT64_MAX, &q.number)
                ? store_read_ask(&q, &found, &err)
                : err_say(&err, -EINVAL, "%s", argv[6]);
    return tell(r, &err, "", found);
}

/* Prints "NAME TERM", or the number of keys, or why there is no answer. */
static int inquire_main(int argc, char **argv) {
    struct leader found = {0};
    struct err err = {0};
    int64_t port = 0;
    int r;
    bool there = argc > 3 && str_to_i64(argv[3], 1, UINT16_MAX, &port);
    if (there && argc == 7 && str_eq(argv[1], "store-read"))
        return read_main(argv, port);
    if (there && argc == 5 && str_eq(argv[1], "coordinator")) {
        r = leader_ask_job(argv[2], (uint16_t)port, argv[4], &found, &err);
    } else if (there && argc == 4 && str_eq(argv[1], "store-leader")) {
        r = leader_ask_member(argv[2], (uint16_t)port, &found, &err);
    } else if (there && argc == 5 && str_eq(argv[1], "keys")) {
        r = leader_ask_keys(argv[2], (uint16_t)port, argv[4], &found.term, &err);
    } else {
        fprintf(stderr, "rankquake inquire: started by rankquake itself, with a question and a "
                        "store\n");
        return EXIT_USAGE_ERROR;
    }
    return tell(r, &err, found.name, found.term);
}

const struct verb verb_inquire = {
    .name = "inquire",
    .usage = "inquire coordinator|store-leader|keys|store-read ADDRESS PORT [WORD] [RUN_ID] "
             "[NUMBER]",
    .options = (const struct verb_option[]){{0}},
    .main = inquire_main,
};
