#include "harness/trend/rates.h"

#include "base/str.h"

#include <stddef.h>

/* A node has eight GPUs in all of them. Where counts were published the rate follows from them. */
const struct rate rates[] = {
    {.name = "hsdp",
     .per_1000 = 2.3,
     .mix = "hsdp",
     .source = "https://arxiv.org/abs/2602.00277",
     .text = "as quoted: training on 32,000 H100, 678 interruptions"},
    {.name = "infinitehbd",
     .failures = 584,
     .nodes = 400,
     .days = 349,
     .mix = "uniform",
     .source = "https://github.com/stepfun-ai/InfiniteHBD-Trace",
     .text = "counted in the published trace: 584 faults on 400 servers in 349 days"},
    {.name = "llama3",
     .failures = 419,
     .nodes = 2048,
     .days = 54,
     .mix = "llama3",
     .source = "https://arxiv.org/abs/2407.21783",
     .text = "419 unexpected interruptions of 16,384 H100 in 54 days (section 3.3.4)"},
    {.name = "rsc1",
     .per_1000 = 6.5,
     .mix = "uniform",
     .source = "https://arxiv.org/abs/2410.21680",
     .text = "as published: 16,000 A100, 11 months"},
    {.name = "rsc2",
     .per_1000 = 2.34,
     .mix = "uniform",
     .source = "https://arxiv.org/abs/2410.21680",
     .text = "as published: 8,000 A100, 11 months"},
    {0}};

const struct rate *rate_find(const char *name) {
    for (const struct rate *r = rates; r->name; r++)
        if (str_eq(r->name, name))
            return r;
    return NULL;
}

double rate_per_1000(const struct rate *r) {
    return r->days > 0 ? r->failures / r->nodes / r->days * 1000 : r->per_1000;
}

double rate_mtbf_s(const struct rate *r, double nodes) {
    return 86400 * 1000 / (rate_per_1000(r) * nodes);
}
