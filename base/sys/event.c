#include "base/sys/event.h"

#include "scenarios/jobs/rankquake.h"

/* One connection per process, as the protocol wants it. */
static struct rankquake harness = {.fd = -1};

void event_open(void) {
    rankquake_open(&harness);
}

void event_launcher(const char *what, int64_t round) {
    char quoted[256];
    if (!rankquake_listening(&harness))
        return;
    rankquake_quote(quoted, sizeof(quoted), what);
    if (round < 0)
        rankquake_event(&harness, RANKQUAKE_LAUNCHER, "\"what\":\"%s\"", quoted);
    else
        rankquake_event(&harness, RANKQUAKE_LAUNCHER, "\"what\":\"%s\",\"round\":%lld", quoted,
                        (long long)round);
}

void event_first_failure(int64_t round, const char *node, int rank) {
    char quoted[256];
    if (!rankquake_listening(&harness))
        return;
    rankquake_quote(quoted, sizeof(quoted), node);
    rankquake_event(&harness, RANKQUAKE_LAUNCHER,
                    "\"what\":\"first-failure\",\"round\":%lld,\"of\":\"%s\",\"rank\":%d",
                    (long long)round, quoted, rank);
}

void event_close(void) {
    rankquake_close(&harness);
}
