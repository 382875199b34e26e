/* progress: what is made again after a failure, and whether the job goes on when all is whole. */
#pragma once

#include "tests/harness/checks/wrongs.h"

/* A cut of n2 at 1.061 s, before the power goes, healed at once or when nothing goes on any more.
 */
#define CUT_UNTIL(ns)                                                                              \
    "{\"t\":1061000000,\"source\":\"harness\",\"kind\":\"fault-fired\",\"id\":\"cut\",\"n\":1,"    \
    "\"fault\":\"net-partition\"}\n{\"seq\":0,\"t\":1061000000,\"source\":\"harness\",\"kind\":"   \
    "\"fault-in-force\",\"id\":\"cut\",\"n\":1,\"fault\":\"net-partition\",\"ends_node\":false,"   \
    "\"t0\":1061000000,\"targets\":[{\"what\":\"node\",\"name\":\"n2\",\"node\":\"n2\",\"pid\":"   \
    "80}]}\n{\"seq\":0,\"t\":1061100000,\"source\":\"wire\",\"kind\":\"fault-evidence\",\"id\":"   \
    "\"cut\",\"n\":1,\"what\":\"x\"}\n{\"seq\":0,\"t\":" #ns                                       \
    ",\"source\":\"harness\",\"kind\":\"fault-recovered\",\"id\":\"cut\",\"n\":1}"

static const struct wrong progress[] = {
    {"heal",
     PASS,
     "the next step 5 ms after cut was healed",
     DARK,
     {{"\"steady\"", NULL, NULL, CUT_UNTIL(1065000000)}}},
    {"heal",
     SKIP,
     "nothing was healed while the job ran",
     DARK,
     {{"\"steady\"", NULL, NULL, CUT_UNTIL(3065000000)}}},
    {"heal",
     FAIL,
     "no step came any more",
     DARK,
     {{"\"steady\"", NULL, NULL, CUT_UNTIL(1092000000)},
      {"\"step\",", "\"pid\":120", "", NULL},
      {"\"step\",", "\"pid\":121", "", NULL},
      {"job-end", NULL, "\"t\":20", "\"t\":990"}}},
    {"heal",
     FAIL,
     "the next step came after 88.9 s",
     DARK,
     {{"\"steady\"", NULL, NULL, CUT_UNTIL(1092000000)},
      {"\"step\",", "\"pid\":12", "\"t\":19", "\"t\":899"},
      {"\"step\",", "\"pid\":12", "\"t\":20", "\"t\":902"},
      {"job-end", NULL, "\"t\":20", "\"t\":990"}}},
    {"heal", SKIP, "the job sends no steps", KILLED, {{"\"kind\":\"step\"", NULL, "", NULL}}},
    {"lost_work",
     PASS,
     "1 step made again in 1 resume, 0.01 s of work",
     KILLED,
     {{"\"steady\"", NULL, NULL, "{\"t\":1,\"source\":\"job\",\"kind\":\"other\"}"}}},
    {"lost_work",
     FAIL,
     "round 2 resumed from step 2 when step 5 had been made: 3 steps",
     KILLED,
     {{"\"resume\"", NULL, "\"step\":4", "\"step\":2"}}},
    {"lost_work",
     FAIL,
     "round 2 resumed from step 0 when step 5 had been made: 5 steps",
     DARK,
     {{"\"resume\"", NULL, "\"step\":4", "\"step\":0"}}},
    {"lost_work", SKIP, "nothing was resumed", KILLED, {{"\"resume\"", NULL, "", NULL}}},
};

enum { PROGRESS = sizeof(progress) / sizeof(*progress) };
