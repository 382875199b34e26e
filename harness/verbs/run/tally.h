/* tally: how runs have ended. */
#pragma once

#include "harness/verbs/run/asked.h"

struct run_tally {
    struct ended {
        int code;
        const struct selected *of;
        bool forgiven; /* it failed, and the file allows that */
    } * v;
    size_t n;
};

void tally_add(struct run_tally *t, int code, const struct selected *of);
bool tally_has(const struct run_tally *t, int code);
bool tally_last_failed(const struct run_tally *t);
/* Failures that files allow, once they have been told. */
void tally_forgive(const struct run_request *q, struct run_tally *t);
void tally_print(const struct run_request *q, const struct run_tally *t);
/* Those whose newest run could answer fewer checks from evidence than the one before. */
void tally_print_lost(const struct run_request *q, const struct run_tally *t);
/* The exit code of all. What was left out counts as skipped. */
int tally_code(struct run_request *q, struct run_tally *t);
