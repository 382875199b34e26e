/* nccl: the collective over NCCL (collective.h), in ranktrain_cuda.so. */
#pragma once

#include "scenarios/jobs/ranktrain/net/collective.h"

extern const struct collective collective_nccl;
