/* ends: how workers and agents may end, and how they may not. */
#pragma once

#include "tests/harness/checks/wrongs.h"

/* The agent of n0 names a worker, after the end of round 2; rank 1 has died at 1.150 s, struck by a
 * fault, and rank 0 has fallen with it. */
#define NAMES(rank, round)                                                                         \
    "{\"t\":1157000000,\"source\":\"launcher\",\"kind\":\"launcher\",\"node\":\"n0\",\"pid\":100," \
    "\"what\":\"first-failure\",\"round\":" #round ",\"of\":\"n0\",\"rank\":" #rank "}"

/* n2 is frozen instead of switched off, until then; its worker ends later. */
#define THAWS(ns)                                                                                  \
    "{\"t\":" #ns ",\"source\":\"harness\",\"kind\":\"fault-recovered\",\"id\":\"dark\",\"n\":1}"
#define FREEZES(exit_ns)                                                                           \
    {"\"dark\"", NULL, "node-poweroff", "node-freeze"}, {                                          \
        "worker-exit", "\"pid\":112", "1091010000", #exit_ns                                       \
    }

static const struct wrong ends[] = {
    {"one_round", PASS, "2 rounds, one after the other", DARK, {FREEZES(1950000000)}},
    {"one_round",
     PASS,
     "2 rounds, one after the other",
     DARK,
     {FREEZES(1980000000), {"\"pid\":121,\"argv0\"", NULL, NULL, THAWS(1940000000)}}},
    {"one_round",
     FAIL,
     "started while rank 2 on n2 of round 1 was alive (for another 70.0 ms)",
     DARK,
     {FREEZES(2000000000), {"\"pid\":121,\"argv0\"", NULL, NULL, THAWS(1940000000)}}},

    {"survivors",
     PASS,
     "within 2 ms of the first, in 1 round",
     KILLED,
     {{"\"steady\"", NULL, NULL, "{\"t\":1,\"source\":\"job\",\"kind\":\"other\"}"}}},
    /* A peer that waits for somebody who is gone. */
    {"survivors",
     FAIL,
     "rank 0 on n0 of round 1 lived on for 100.0 s after rank 1 on n0 had failed",
     KILLED,
     {{"worker-exit", "\"pid\":110", "\"t\":1073000000", "\"t\":101071000000"}}},
    {"survivors",
     FAIL,
     "rank 1 on n1 of round 1 lived on for 98.9 s after rank 2 on n2",
     DARK,
     {{"worker-exit", "\"pid\":111", "\"t\":1900010000", "\"t\":100000000000"}}},
    {"survivors",
     UNKNOWN,
     "the harness itself was late by as much",
     KILLED,
     {{"worker-exit", "\"pid\":110", "\"t\":1073000000", "\"t\":34071000000"},
      {"\"lag\"", NULL, "\"t\":1158020000", "\"t\":34071000000"},
      {"\"lag\"", NULL, "\"max_ns\":300000,\"window_ns\":150000000",
       "\"max_ns\":9000000000,\"window_ns\":9000000000"}}},
    {"survivors",
     UNKNOWN,
     "rank 0 on n0 was never seen to end after rank 1",
     KILLED,
     {{"worker-exit", "\"pid\":110", "", NULL},
      {"job-end", NULL, "\"t\":1160000000", "\"t\":99000000000"}}},
    {"survivors", UNKNOWN, "no worker-start", KILLED, {{"\"probe\"", NULL, "", NULL}}},

    /* Begun again after success; and success called failure. */
    {"exits",
     FAIL,
     "all 2 workers of round 1 had ended 0, and round 2 was started",
     KILLED,
     {{"worker-exit", "\"pid\":11", "\"signal\":9", "\"code\":0"},
      {"worker-exit", "\"pid\":11", "\"signal\":15", "\"code\":0"}}},
    {"exits",
     FAIL,
     "all 2 workers of round 2 ended 0, and the agent of n0 ended with code 1",
     KILLED,
     {{"agent-exit", NULL, "\"code\":0", "\"code\":1"}}},
    /* Nobody waited for the workers. */
    {"exits",
     FAIL,
     "the agent of n0 ended 0.7 ms before rank 1 of round 2",
     KILLED,
     {{"worker-exit", "\"pid\":121", "\"t\":1155010000", "\"t\":1158700000"}}},
    {"exits",
     UNKNOWN,
     "rank 1 of round 2 on n0 was never seen to end",
     KILLED,
     {{"worker-exit", "\"pid\":121", "", NULL}}},
    /* The node went before it could tell: what its workers did is lost. */
    {"exits",
     PASS,
     "what ended well was the end",
     DARK,
     {{"worker-exit", "\"pid\":11", "\"signal\":15", "\"code\":0"},
      {"worker-exit", "\"pid\":112", "\"signal\":9", "\"code\":0"}}},
    {"exits", UNKNOWN, "no worker-start", KILLED, {{"\"probe\"", NULL, "", NULL}}},

    /* Killed without a word. */
    {"grace",
     FAIL,
     "rank 0 on n0 of round 1 died on signal 9 no more than 3 ms after it could have been told",
     KILLED,
     {{"worker-exit", "\"pid\":110", "\"signal\":15", "\"signal\":9"}}},
    {"grace",
     FAIL,
     "the first of its round, and no fault was aimed at it",
     KILLED,
     {{"worker-exit", "\"pid\":121", "\"code\":0", "\"signal\":9"},
      {"worker-exit", "\"pid\":120", "\"t\":1155000000", "\"t\":1155020000"}}},
    {"grace",
     PASS,
     "1 worker was ended by force, none before 2.9 s",
     KILLED,
     {{"worker-exit", "\"pid\":110", "\"signal\":15", "\"signal\":9"},
      {"worker-exit", "\"pid\":110", "\"t\":1073", "\"t\":3973"},
      {"agent-exit", NULL, "\"t\":1158", "\"t\":4158"},
      {"job-end", NULL, "\"t\":1160", "\"t\":4160"}}},
    /* A limit was reached, and the harness took everything down. */
    {"grace",
     PASS,
     "no worker was ended by force but by a fault",
     KILLED,
     {{"worker-exit", "\"pid\":12", "\"code\":0", "\"signal\":9"},
      {"job-end", NULL, "\"t\":1160", "\"t\":1150"}}},
    {"survivors",
     SKIP,
     "no worker failed",
     KILLED,
     {{"job-end", NULL, "\"t\":1160", "\"t\":1070"}}},
    /* The others of a node that is lost are members of a change, not of a failure. */
    {"grace",
     FAIL,
     "rank 0 on n0 of round 1 died on signal 9 no more than 810 ms",
     DARK,
     {{"worker-exit", "\"pid\":110", "\"signal\":15", "\"signal\":9"}}},
    {"grace",
     UNKNOWN,
     "its launcher says that it had lost the store",
     KILLED,
     {{"worker-exit", "\"pid\":110", "\"signal\":15", "\"signal\":9"},
      {"worker failed", NULL, "worker failed", "fenced"}}},
    {"grace", UNKNOWN, "no worker-start", KILLED, {{"\"probe\"", NULL, "", NULL}}},

    {"root_cause",
     PASS,
     "1 agent named rank 1 on n0, rightly",
     KILLED,
     {{"succeeded", NULL, NULL, NAMES(1, 1)}}},
    {"root_cause",
     FAIL,
     "names rank 0 on n0, which ended 129 ms later",
     KILLED,
     {{"succeeded", NULL, NULL, NAMES(0, 1)},
      {"worker-exit", "\"pid\":110", "\"t\":1073", "\"t\":1200"}}},
    /* What fell in the same moment may be named as well. */
    {"root_cause",
     PASS,
     "named rank 0 on n0, rightly",
     KILLED,
     {{"succeeded", NULL, NULL, NAMES(0, 1)}}},
    {"root_cause",
     FAIL,
     "the agent of n0 names rank 0 on n0, which ended 0",
     KILLED,
     {{"succeeded", NULL, NULL, NAMES(0, 2)}}},
    {"root_cause",
     FAIL,
     "names rank 7 on n0 in its round 1; there was none",
     KILLED,
     {{"succeeded", NULL, NULL, NAMES(7, 1)}}},
    {"root_cause",
     UNKNOWN,
     "the kernel did not tell how rank 1 on n0 ended",
     KILLED,
     {{"succeeded", NULL, NULL, NAMES(1, 1)},
      {"worker-exit", "\"pid\":111", "\"signal\":9", "\"unknown\":true"}}},
    {"root_cause", UNKNOWN, "no worker-start", KILLED, {{"\"probe\"", NULL, "", NULL}}},
};

enum { ENDS = sizeof(ends) / sizeof(*ends) };
