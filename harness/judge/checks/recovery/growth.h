/* growth: whether one worker holds more and more while its round goes on. */
#pragma once

#include "harness/judge/checks/recovery/trend.h"

/* False, with the finding filled, where it does. *ret_judged: so many workers were looked at often enough to tell. */
bool growth_judge(const struct trial *t, struct finding *f, struct readings *r, int *ret_judged);
