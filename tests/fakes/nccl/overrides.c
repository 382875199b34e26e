#include "tests/fakes/nccl/overrides.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct overrides asked = {.rank = -1, .round = -1};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool take(const char *word) {
    static const struct {
        const char *head;
        int *at;
    } numbers[] = {
        {"version=", &asked.version},
        {"rank=", &asked.rank},
        {"round=", &asked.round},
        {"hang@collective:", &asked.hang_collective},
        {"drop@collective:", &asked.drop_collective},
    };
    static const struct {
        const char *word;
        bool *at;
    } switches[] = {
        {"hang@init", &asked.hang_init},
        {"kill@init", &asked.kill_init},
        {"hang@abort", &asked.hang_abort},
        {"hang@finalize", &asked.hang_finalize},
        {"leak", &asked.leak},
    };
    int length = 0;
    for (size_t i = 0; i < sizeof(switches) / sizeof(*switches); i++)
        if (strcmp(word, switches[i].word) == 0)
            return *switches[i].at = true;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        size_t head = strlen(numbers[i].head);
        if (strncmp(word, numbers[i].head, head) == 0) {
            char *end;
            *numbers[i].at = (int)strtol(word + head, &end, 10);
            return end != word + head && !*end;
        }
    }
    if (strncmp(word, "report=", 7) == 0)
        return snprintf(asked.report, sizeof(asked.report), "%s", word + 7) <
               (int)sizeof(asked.report);
    return sscanf(word, "error=%d@collective:%d%n", &asked.error, &asked.error_collective,
                  &length) == 2 &&
           !word[length];
}

static void read_all(void) {
    char text[512], *rest = text, *word;
    const char *given = getenv("RANKTRAIN_FAKE_NCCL");
    snprintf(text, sizeof(text), "%s", given ? given : "");
    while ((word = strsep(&rest, ",")))
        if (*word && !take(word)) {
            fprintf(stderr, "RANKTRAIN_FAKE_NCCL: '%s' is not known\n", word);
            abort();
        }
}

const struct overrides *overrides(void) {
    pthread_once(&once, read_all);
    return &asked;
}

bool overrides_meet(int rank) {
    const char *round = getenv("RANKRUN_ROUND");
    const struct overrides *w = overrides();
    return (w->rank < 0 || w->rank == rank) &&
           (w->round < 0 || w->round == (round ? atoi(round) : 0));
}
