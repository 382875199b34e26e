/* prices: what a change of rounds costs, case by case as the protocol's table has it. */
#pragma once

#include "tests/harness/checks/wrongs.h"

static const struct wrong prices[] = {
    /* A worker fails, then its round loses a node: whichever was counted first. */
    {"restart_count",
     PASS,
     "0 after 2 rounds",
     DARK,
     {{"\"steady\"", NULL, NULL,
       "{\"t\":1085000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"w\",\"n\":1,"
       "\"fault\":\"worker-kill\",\"ends_node\":false,\"t0\":1085000000,\"targets\":[{\"what\":"
       "\"worker\",\"name\":\"n1\",\"node\":\"n1\",\"pid\":111}]}\n{\"seq\":0,\"t\":1085001000,"
       "\"source\":\"kernel\",\"kind\":\"fault-evidence\",\"id\":\"w\",\"n\":1,\"what\":\"x\"}"}}},
    {"restart_count",
     PASS,
     "1 after 2 rounds",
     DARK,
     {{"\"steady\"", NULL, NULL,
       "{\"t\":1085000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"w\",\"n\":1,"
       "\"fault\":\"worker-kill\",\"ends_node\":false,\"t0\":1085000000,\"targets\":[{\"what\":"
       "\"worker\",\"name\":\"n1\",\"node\":\"n1\",\"pid\":111}]}\n{\"seq\":0,\"t\":1085001000,"
       "\"source\":\"kernel\",\"kind\":\"fault-evidence\",\"id\":\"w\",\"n\":1,\"what\":\"x\"}"},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    /* The node was lost first: free. */
    {"restart_count",
     PASS,
     "0 after 2 rounds",
     DARK,
     {{"\"steady\"", NULL, NULL,
       "{\"t\":1095000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"w\",\"n\":1,"
       "\"fault\":\"worker-kill\",\"ends_node\":false,\"t0\":1095000000,\"targets\":[{\"what\":"
       "\"worker\",\"name\":\"n1\",\"node\":\"n1\",\"pid\":111}]}\n{\"seq\":0,\"t\":1095001000,"
       "\"source\":\"kernel\",\"kind\":\"fault-evidence\",\"id\":\"w\",\"n\":1,\"what\":\"x\"}"}}},
    {"restart_count",
     FAIL,
     "1 on all 2 workers of round 2",
     DARK,
     {{"\"steady\"", NULL, NULL,
       "{\"t\":1095000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"w\",\"n\":1,"
       "\"fault\":\"worker-kill\",\"ends_node\":false,\"t0\":1095000000,\"targets\":[{\"what\":"
       "\"worker\",\"name\":\"n1\",\"node\":\"n1\",\"pid\":111}]}\n{\"seq\":0,\"t\":1095001000,"
       "\"source\":\"kernel\",\"kind\":\"fault-evidence\",\"id\":\"w\",\"n\":1,\"what\":\"x\"}"},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    /* A node that comes or leaves costs nothing. */
    {"restart_count",
     PASS,
     "0 after 2 rounds",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "node-start"},
      {"\"dark\"", NULL, "\"ends_node\":true", "\"ends_node\":false"},
      {"\"dark\"", NULL, "\"node\":\"n2\"", "\"node\":\"n3\""}}},
    {"restart_count",
     FAIL,
     "1 on all 2 workers of round 2",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "node-start"},
      {"\"dark\"", NULL, "\"ends_node\":true", "\"ends_node\":false"},
      {"\"dark\"", NULL, "\"node\":\"n2\"", "\"node\":\"n3\""},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    {"restart_count",
     PASS,
     "0 after 2 rounds",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "node-leave"}}},
    {"restart_count",
     FAIL,
     "1 on all 2 workers of round 2",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "node-leave"},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    /* Without a fault that explains it the price is not known, but it is one at most. */
    {"restart_count", PASS, "0 after 2 rounds", DARK, {{"\"dark\"", NULL, "", NULL}}},
    {"restart_count",
     PASS,
     "1 after 2 rounds",
     DARK,
     {{"\"dark\"", NULL, "", NULL},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    {"restart_count",
     FAIL,
     "2 on all 2 workers of round 2",
     DARK,
     {{"\"dark\"", NULL, "", NULL},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"2\""}}},
    /* A node that is cut off for longer than suspect is lost; a shorter cut may cost, or not. */
    {"restart_count",
     PASS,
     "0 after 2 rounds",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "net-partition"},
      {"\"dark\"", NULL, "\"ends_node\":true", "\"ends_node\":false"}}},
    {"restart_count",
     FAIL,
     "1 on all 2 workers of round 2",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "net-partition"},
      {"\"dark\"", NULL, "\"ends_node\":true", "\"ends_node\":false"},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    {"restart_count",
     PASS,
     "1 after 2 rounds",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "net-partition"},
      {"\"dark\"", NULL, "\"ends_node\":true", "\"ends_node\":false"},
      {"\"dark\"", "fault-evidence", NULL,
       "{\"t\":1300000000,\"source\":\"harness\",\"kind\":\"fault-recovered\",\"id\":\"dark\","
       "\"n\":1}"},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    {"restart_count",
     PASS,
     "0 after 2 rounds",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "net-partition"},
      {"\"dark\"", NULL, "\"ends_node\":true", "\"ends_node\":false"},
      {"\"dark\"", "fault-evidence", NULL,
       "{\"t\":1300000000,\"source\":\"harness\",\"kind\":\"fault-recovered\",\"id\":\"dark\","
       "\"n\":1}"}}},
    /* A spare that is lost changes nothing about the price of a worker. */
    {"restart_count",
     PASS,
     "1 after 2 rounds",
     KILLED,
     {{"\"steady\"", NULL, NULL,
       "{\"t\":1060000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"s\",\"n\":1,"
       "\"fault\":\"node-kill\",\"ends_node\":true,\"t0\":1060000000,\"targets\":[{\"what\":"
       "\"node\",\"name\":\"n7\",\"node\":\"n7\",\"pid\":0}]}\n{\"seq\":0,\"t\":1060001000,"
       "\"source\":\"kernel\",\"kind\":\"fault-evidence\",\"id\":\"s\",\"n\":1,\"what\":\"x\"}"}}},
    {"restart_count",
     FAIL,
     "0 on all 2 workers of round 2",
     KILLED,
     {{"\"steady\"", NULL, NULL,
       "{\"t\":1060000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"s\",\"n\":1,"
       "\"fault\":\"node-kill\",\"ends_node\":true,\"t0\":1060000000,\"targets\":[{\"what\":"
       "\"node\",\"name\":\"n7\",\"node\":\"n7\",\"pid\":0}]}\n{\"seq\":0,\"t\":1060001000,"
       "\"source\":\"kernel\",\"kind\":\"fault-evidence\",\"id\":\"s\",\"n\":1,\"what\":\"x\"}"},
      {"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"0\""}}},
    /* It never goes back, and it starts at none. */
    {"restart_count",
     FAIL,
     "1 in round 1, the first that was complete",
     KILLED,
     {{"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"x\""},
      {"\"argv0\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""},
      {"\"argv0\"", NULL, "COUNT\":\"x\"", "COUNT\":\"0\""}}},
    /* A peer fell of the loss and was reported first: the change is free all the same. */
    {"restart_count",
     PASS,
     "0 after 2 rounds",
     DARK,
     {{"worker-exit", "\"pid\":110", "\"t\":1900000000", "\"t\":1092000000"},
      {"worker-exit", "\"pid\":110", "\"signal\":15", "\"code\":1"}}},
    {"restart_count",
     FAIL,
     "1 on all 2 workers of round 2",
     DARK,
     {{"worker-exit", "\"pid\":110", "\"t\":1900000000", "\"t\":1092000000"},
      {"worker-exit", "\"pid\":110", "\"signal\":15", "\"code\":1"},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    {"agent_restarts",
     FAIL,
     "the agent of n0 told 2 in round 1 and 1 in round 2",
     KILLED,
     {{"\"RANKRUN_ROUND\":\"1\"", NULL, "COUNT\":\"0\"", "COUNT\":\"2\""}}},
    {"agent_restarts",
     UNKNOWN,
     "no agent was seen to start",
     KILLED,
     {{"agent-start", NULL, "", NULL}}},
};

enum { PRICES = sizeof(prices) / sizeof(*prices) };
