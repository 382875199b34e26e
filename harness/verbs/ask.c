/* rankquake ask URL METRIC [NAME=ADDRESS...]: asks one question of a probe (http, prometheus);
 * started by the harness in the network of a node, not by people. RANKQUAKE_TOKEN: what is shown to
 * a store of the run. */
#include "agent/sys/printing.h"
#include "harness/observe/fetch.h"
#include "harness/observe/metric.h"
#include "harness/verb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the answer, or why there is none. METRIC "": the answer is the whole body. The harness
 * reads it, and compares what the server has sent. */
static int ask_main(int argc, char **argv) {
    struct buf body = {0};
    struct err err = {0};
    char value[64];
    if (argc < 3) {
        fprintf(stderr, "rankquake ask: started by rankquake itself, with a URL and a metric\n");
        return EXIT_USAGE_ERROR;
    }
    int r = fetch_url(argv[1], getenv("RANKQUAKE_TOKEN"), (const char *const *)argv + 3,
                      (size_t)argc - 3, &body, &err);
    if (r == 0 && *argv[2])
        r = metric_read(buf_str(&body), argv[2], value, &err);
    if (r < 0)
        fputs(err.msg, stdout);
    else if (*argv[2])
        printing_put(stdout, value, strlen(value));
    else
        printing_put(stdout, buf_str(&body), body.len);
    buf_fini(&body);
    return r < 0 ? EXIT_FAIL : EXIT_PASS;
}

const struct verb verb_ask = {
    .name = "ask",
    .usage = "ask URL METRIC [NAME=ADDRESS...]",
    .options = (const struct verb_option[]){{0}},
    .main = ask_main,
};
