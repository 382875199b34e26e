/* Takes a node away as clouds do with what is cheap: with a notice and a short time. */
#include "faults/node/notice.h"

const struct fault fault_node_preempt = {
    .name = "node-preempt",
    .summary =
        "a cloud takes a node away: a notice in a file and at its metadata service, SIGTERM to the "
        "agent, power-off after it",
    .effects = EFFECT_ASKS_TO_LEAVE | EFFECT_ENDS_NODE | EFFECT_SILENCES_NODE | EFFECT_LOUD,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_SILENCE,
    .where = FAULT_IN_HARNESS,
    .by_cloud = true,
    .evidence = EVIDENCE(notice_taken) | EVIDENCE(target_exit),
    .params = (const struct fault_param[]){NOTICE_PARAMS, {0}},
    .undo = "nothing to undo: the node stays off until a node-start",
    .blast = "its agent leaves in order if the time is enough; else it and its workers are gone "
             "without a word",
    .example = "{when: {step: 20}, fault: node-preempt, with: {cloud: gcp, grace: 3s}, on: n2}",
    .check = notice_check,
    .course = notice_course,
    .inject = notice_give,
    .follow = notice_follow,
};
