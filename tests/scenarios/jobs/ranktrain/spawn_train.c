/* ranktrain as it is, built beside the tests and in their way (sanitizers). */
#include "scenarios/jobs/ranktrain/main.c"
