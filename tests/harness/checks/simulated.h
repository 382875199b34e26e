/* simulated: what runs of the simulator have taught the live judge. In each of them all was well,
 * and it said otherwise; beside each stands the wrong that it must still see. */
#pragma once

#include "tests/harness/checks/wrongs.h"

static const struct wrong simulated[] = {
    /* n2 had ended its worker before the power went, so it may have said so: the failure counts. */
    {"restart_count",
     PASS,
     "1 after 2 rounds",
     DARK,
     {{"worker-exit", "\"pid\":112", "\"t\":1091010000", "\"t\":1089000000"},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    {"restart_count",
     FAIL,
     "1 on all 2 workers of round 2",
     DARK,
     {{"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    /* A node came, and a worker had died of a signal that nobody had sent. */
    {"restart_count",
     PASS,
     "1 after 2 rounds",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "node-start"},
      {"\"dark\"", NULL, "\"ends_node\":true", "\"ends_node\":false"},
      {"\"dark\"", NULL, "\"node\":\"n2\"", "\"node\":\"n3\""},
      {"worker-exit", "\"pid\":112", "\"signal\":9", "\"signal\":11"},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    {"restart_count",
     FAIL,
     "1 on all 2 workers of round 2",
     DARK,
     {{"\"dark\"", NULL, "node-poweroff", "node-start"},
      {"\"dark\"", NULL, "\"ends_node\":true", "\"ends_node\":false"},
      {"\"dark\"", NULL, "\"node\":\"n2\"", "\"node\":\"n3\""},
      {"worker-exit", "\"pid\":112", "\"signal\":9", "\"signal\":15"},
      {"\"RANKRUN_ROUND\":\"2\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}}},
    /* A fault that began before the round lasted into it. */
    {"restart_count",
     PASS,
     "0 after 2 rounds",
     KILLED,
     {{"agent-start", NULL, NULL,
       "{\"t\":1006000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"cut\",\"n\":"
       "1,\"fault\":\"net-partition\",\"ends_node\":false,\"t0\":1006000000,\"targets\":[{\"what\":"
       "\"node\",\"name\":\"n0\",\"node\":\"n0\",\"pid\":0}]}"},
      {"\"steady\"", NULL, NULL,
       "{\"t\":1031000000,\"source\":\"harness\",\"kind\":\"fault-recovered\",\"id\":\"cut\","
       "\"n\":1}"},
      {"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"0\""}}},
    {"restart_count",
     FAIL,
     "0 on all 2 workers of round 2",
     KILLED,
     {{"agent-start", NULL, NULL,
       "{\"t\":1006000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"cut\",\"n\":"
       "1,\"fault\":\"net-partition\",\"ends_node\":false,\"t0\":1006000000,\"targets\":[{\"what\":"
       "\"node\",\"name\":\"n0\",\"node\":\"n0\",\"pid\":0}]}\n{\"seq\":0,\"t\":1007000000,"
       "\"source\":\"harness\",\"kind\":\"fault-recovered\",\"id\":\"cut\",\"n\":1}"},
      {"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"0\""}}},
    /* Who was cut off may have been given up, and have come back as a new one. */
    {"rank_order",
     PASS,
     "the order was kept",
     DARK,
     {{"\"node-down\"", "\"n2\"", NULL,
       "{\"t\":1091040000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"cut\",\"n\":"
       "1,\"fault\":\"net-partition\",\"ends_node\":false,\"t0\":1091040000,\"targets\":[{\"what\":"
       "\"node\",\"name\":\"n0\",\"node\":\"n0\",\"pid\":0}]}"},
      {"\"pid\":120,\"argv0\"", NULL, "\"GROUP_RANK\":\"0\"", "\"GROUP_RANK\":\"1\""},
      {"\"pid\":121,\"argv0\"", NULL, "\"GROUP_RANK\":\"1\"", "\"GROUP_RANK\":\"0\""}}},
    /* A round that never became complete has spent the last restart. */
    {"budget",
     PASS,
     "never above max_restarts",
     KILLED,
     {{"\"pid\":121,\"argv0\"", NULL, "", NULL},
      {"\"pid\":120,\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"3\""},
      {"agent-exit", NULL, "\"code\":0", "\"code\":1"}}},
    {"budget",
     FAIL,
     "gave up after round 1 with 1 of 3 restarts left",
     KILLED,
     {{"\"pid\":121", NULL, "", NULL},
      {"\"pid\":120,\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"2\""},
      {"agent-exit", NULL, "\"code\":0", "\"code\":1"}}},
    /* Nobody was left who could have ended with the outcome. */
    {"outcome",
     UNKNOWN,
     "all workers ended well, but every agent was taken away",
     DARK,
     {{"worker-exit", "\"pid\":121", NULL,
       "{\"t\":2022000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"all\",\"n\":"
       "1,\"fault\":\"agent-kill\",\"ends_node\":true,\"t0\":2022000000,\"targets\":[{\"what\":"
       "\"agent\",\"name\":\"n0\",\"node\":\"n0\",\"pid\":100},{\"what\":\"agent\",\"name\":\"n1\","
       "\"node\":\"n1\",\"pid\":101}]}"},
      {"agent-exit", NULL, "\"code\":0", "\"signal\":9"}}},
    {"outcome",
     FAIL,
     "no one outcome",
     DARK,
     {{"worker-exit", "\"pid\":121", NULL,
       "{\"t\":2022000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"all\",\"n\":"
       "1,\"fault\":\"agent-kill\",\"ends_node\":true,\"t0\":2022000000,\"targets\":[{\"what\":"
       "\"agent\",\"name\":\"n0\",\"node\":\"n0\",\"pid\":100},{\"what\":\"agent\",\"name\":\"n1\","
       "\"node\":\"n1\",\"pid\":101}]}"},
      {"worker-exit", "\"pid\":121", "\"code\":0", "\"code\":3"},
      {"agent-exit", NULL, "\"code\":0", "\"signal\":9"}}},
};

enum { SIMULATED = sizeof(simulated) / sizeof(*simulated) };
