/* Takes all nodes of a rack away at once. */
#include "faults/node/notice.h"

const struct fault fault_node_reclaim = {
    .name = "node-reclaim",
    .summary =
        "a cloud takes a whole rack away: all of its nodes get the notice, and go off together",
    .effects = EFFECT_ASKS_TO_LEAVE | EFFECT_ENDS_NODE | EFFECT_SILENCES_NODE | EFFECT_LOUD,
    .targets = TARGET_RACK,
    .needs = FAULT_NEEDS_SILENCE,
    .where = FAULT_IN_HARNESS,
    .by_cloud = true,
    .evidence = EVIDENCE(notice_taken) | EVIDENCE(target_exit),
    .params = (const struct fault_param[]){NOTICE_PARAMS, {0}},
    .undo = "nothing to undo: the nodes stay off until a node-start",
    .blast = "every agent and worker of the rack, and the store if it is there",
    .example = "{when: {step: 20}, fault: node-reclaim, with: {grace: 3s}, on: rack 1}",
    .check = notice_check,
    .course = notice_course,
    .inject = notice_give,
    .follow = notice_follow,
};
