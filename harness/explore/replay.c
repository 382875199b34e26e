/* Takes a world along a path that a search has found. */
#include "harness/explore/world.h"

#include "base/arena.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static bool is_possible(const struct world *w, struct choice c) {
    struct choice all[CHOICES_MAX];
    int n = choice_list(w, all);
    for (int i = 0; i < n; i++)
        if (all[i].kind == c.kind && all[i].node == c.node && all[i].arg == c.arg)
            return true;
    return false;
}

static bool line_read(const char *line, struct choice *ret) {
    char name[32];
    int node, arg;
    if (sscanf(line, "%31s %d %d", name, &node, &arg) != 3 || node < 0 || arg < 0 || node > 255 ||
        arg > 255)
        return false;
    ret->node = (uint8_t)node;
    ret->arg = (uint8_t)arg;
    return choice_find(name, &ret->kind);
}

static bool take(struct world *w, const char *line, int number, struct explore_result *ret) {
    struct choice c;
    if (!line_read(line, &c)) {
        snprintf(ret->text, sizeof(ret->text), "line %d: \"%.60s\" is no choice", number, line);
        return false;
    }
    if (!is_possible(w, c)) {
        snprintf(ret->text, sizeof(ret->text), "line %d: \"%.60s\" is not possible there", number,
                 line);
        return false;
    }
    printf("%8lld %4d %s\n", (long long)(w->now_ns / EXPLORE_STEP_NS - 100), number, line);
    choice_take(w, c);
    ret->transitions++;
    return true;
}

bool explore_replay(const struct explore_config *config, const char *path,
                    struct explore_result *ret) {
    struct world *w = world_new(config, true);
    ARENA_FINI struct arena arena = {0};
    char **lines = str_split(&arena, path, '\n', NULL);
    bool good = true;
    *ret = (struct explore_result){.end = EXPLORE_COMPLETE};
    for (int i = 0; lines[i] && good && !w->violated; i++)
        if (lines[i][0] && lines[i][0] != '#')
            good = take(w, lines[i], i + 1, ret);
    if (good && w->violated) {
        ret->end = EXPLORE_VIOLATED;
        snprintf(ret->text, sizeof(ret->text), "%s", w->text);
    } else if (good) {
        ret->end = world_is_over(w) ? EXPLORE_COMPLETE : EXPLORE_STOPPED;
    }
    ret->states = ret->transitions + 1;
    world_free(w);
    return good;
}
