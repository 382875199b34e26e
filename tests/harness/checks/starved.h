/* starved: a host on which agents may not have been run for longer than they may be silent. The
 * workers of one are then ended by its guard, by force, and it may come back as a new one. Nothing
 * that is recorded tells that from a launcher that does wrong; how late the harness was tells that
 * it may be so. */
#pragma once

#include "tests/harness/checks/wrongs.h"

/* A tenth of the fence of the fast profile, 600 ms, is not yet late. */
#define LATE(ns)                                                                                   \
    { "\"lag\"", NULL, "\"max_ns\":300000", "\"max_ns\":" #ns }
#define BY_FORCE                                                                                   \
    { "worker-exit", "\"pid\":110", "\"signal\":15", "\"signal\":9" }
#define TURNED                                                                                     \
    {"\"pid\":120,\"argv0\"", NULL, "\"GROUP_RANK\":\"0\"", "\"GROUP_RANK\":\"1\""}, {             \
        "\"pid\":121,\"argv0\"", NULL, "\"GROUP_RANK\":\"1\"", "\"GROUP_RANK\":\"0\""              \
    }
#define OTHER_NODE                                                                                 \
    { "\"pid\":120,\"argv0\"", NULL, "\"node\":\"n0\"", "\"node\":\"n5\"" }
/* A fault that strikes a worker only. */
#define AT_WORKER                                                                                  \
    {"\"dark\"", NULL, "node-poweroff", "worker-kill"},                                            \
        {"\"dark\"", NULL, "\"ends_node\":true", "\"ends_node\":false"},                           \
        {"\"dark\"", NULL, "\"what\":\"node\"", "\"what\":\"worker\""}, {                          \
        "\"dark\"", NULL, "\"pid\":80", "\"pid\":112"                                              \
    }
#define COUNTED(n)                                                                                 \
    { "\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"" #n "\"" }

static const struct wrong starved[] = {
    {"grace",
     UNKNOWN,
     "its agent may have been silent for so long",
     DARK,
     {BY_FORCE, LATE(60000001)}},
    {"grace", FAIL, "no more than 810 ms after", DARK, {BY_FORCE, LATE(60000000)}},
    {"grace", PASS, "no worker ended on SIGKILL, except by a fault", DARK, {LATE(60000001)}},
    /* It had just begun. */
    {"grace", FAIL, "no more than 3 ms after", KILLED, {BY_FORCE, LATE(60000001)}},
    /* The harness was late when its round had not begun, or when the worker had ended. */
    {"grace",
     FAIL,
     "no more than 810 ms after",
     DARK,
     {BY_FORCE,
      LATE(60000001),
      {"\"lag\"", NULL, "\"t\":2025050000", "\"t\":1019000000"},
      {"\"lag\"", NULL, "\"window_ns\":1000000000", "\"window_ns\":1000000"}}},
    {"grace",
     FAIL,
     "no more than 810 ms after",
     DARK,
     {BY_FORCE,
      LATE(60000001),
      {"\"lag\"", NULL, "\"window_ns\":1000000000", "\"window_ns\":1000000"}}},

    {"rank_order", UNKNOWN, "n0 has lost its place in round 2", DARK, {TURNED, LATE(60000001)}},
    {"rank_order", FAIL, "n0 came before n1 in round 1", DARK, {TURNED, LATE(60000000)}},
    {"rank_order", UNKNOWN, "n1 has lost its place in round 2", DARK, {OTHER_NODE, LATE(60000001)}},
    {"rank_order", FAIL, "although n1 survived", DARK, {OTHER_NODE, LATE(60000000)}},
    {"rank_order", PASS, "the order was kept through 1 change", DARK, {LATE(60000001)}},

    {"restart_count",
     UNKNOWN,
     "the round may have lost a node whose agent was silent for too long",
     DARK,
     {AT_WORKER, LATE(60000001)}},
    {"restart_count", FAIL, "0 on all 2 workers of round 2", DARK, {AT_WORKER, LATE(60000000)}},
    {"restart_count", PASS, "1 after 2 rounds", DARK, {AT_WORKER, COUNTED(1), LATE(60000001)}},
    {"restart_count",
     FAIL,
     "2 on all 2 workers of round 2",
     DARK,
     {AT_WORKER, COUNTED(2), LATE(60000001)}},
    /* A round that lasts no longer than an agent may be silent loses none for that. */
    {"restart_count",
     FAIL,
     "0 on all 2 workers of round 2",
     KILLED,
     {{"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"1\"", "COUNT\":\"0\""}, LATE(60000001)}},
};
enum { STARVED = sizeof(starved) / sizeof(*starved) };
