/* rankquake ask URL METRIC [NAME=ADDRESS...]: asks one question of a probe (http, prometheus);
 * started by the harness in the network of a node, not by people. RANKQUAKE_TOKEN: what is shown to
 * a store of the run. */
#include "base/http/http.h"
#include "base/sys/printing.h"
#include "harness/observe/metric.h"
#include "harness/verb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The harness ends it at the probe's deadline. */
enum { CONNECT_MS = 300000, BYTES_MAX = 16 << 20 };

/* Prints the answer, or why there is none. METRIC "": the answer is the whole body. The harness
 * reads it, and compares what the server has sent. */
static int ask_main(int argc, char **argv) {
    BUF_FINI struct buf body = {0};
    struct err err = {0};
    char value[64];
    if (argc < 3) {
        fprintf(stderr, "rankquake ask: started by rankquake itself, with a URL and a metric\n");
        return EXIT_USAGE_ERROR;
    }
    struct http_question q = {
        .way = {.names = (const char *const *)argv + 3,
                .names_n = (size_t)argc - 3,
                .token = getenv("RANKQUAKE_TOKEN")},
        .request = {.method = "GET",
                    .url = argv[1],
                    .agent = "rankquake/" RANKQUAKE_VERSION,
                    .timeout_ms = CONNECT_MS},
        .bytes_max = BYTES_MAX,
    };
    int r = http_ask(&q, &body, &err);
    if (r == 0 && *argv[2])
        r = metric_read(buf_str(&body), argv[2], value, &err);
    if (r < 0)
        fputs(err.msg, stdout);
    else if (*argv[2])
        printing_put(stdout, value, strlen(value));
    else
        printing_put(stdout, buf_str(&body), body.len);
    return r < 0 ? EXIT_FAIL : EXIT_PASS;
}

const struct verb verb_ask = {
    .name = "ask",
    .usage = "ask URL METRIC [NAME=ADDRESS...]",
    .options = (const struct verb_option[]){{0}},
    .main = ask_main,
};
