/* memory_flip: which bit the fault of this name is about. */
#pragma once

#include "faults/fault.h"
#include "faults/mechanism/bit.h"

/* 0; -ESRCH: the worker has announced no such region; or what bit_choose says. */
int memory_flip_bit(const struct target *t, const struct fault_args *a, struct bit *ret,
                    struct err *err);
