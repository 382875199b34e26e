/* The command line of a launcher that is only a template of the user's. */
#include "base/str.h"
#include "harness/launch/launchers.h"
#include "harness/launch/words.h"

#include <string.h>

static void put_worker(struct words *w, const struct launch *l) {
    words_put(w, "%s/rankprobe", l->bin);
    if (run_form_of(l->run) != RUN_PROGRAM) {
        words_add(w, words_python(l->plan));
        words_add(w, "-u");
    }
    words_add_all(w, l->run);
}

/* As a shell would have to be given it. */
static void put_quoted(struct buf *b, const char *word) {
    buf_putc(b, '\'');
    for (; *word; word++)
        if (*word == '\'')
            buf_puts(b, "'\\''");
        else
            buf_putc(b, *word);
    buf_putc(b, '\'');
}

/* {worker} inside a word is for a shell: one text, every word quoted. */
static void fill(struct buf *b, const char *text, const struct launch *l) {
    struct words worker = {.arena = NULL};
    ARENA_FINI struct arena a = {0};
    worker.arena = &a;
    put_worker(&worker, l);
    while (*text) {
        if (str_starts(text, "{worker}")) {
            for (size_t i = 0; i < worker.n; i++) {
                buf_puts(b, i ? " " : "");
                put_quoted(b, worker.v[i]);
            }
            text += strlen("{worker}");
        } else if (str_starts(text, "{nodes}")) {
            buf_printf(b, "%d", l->plan->scenario->cluster.nodes);
            text += strlen("{nodes}");
        } else if (str_starts(text, "{node}")) {
            buf_printf(b, "%d", l->node->index);
            text += strlen("{node}");
        } else if (str_starts(text, "{address}")) {
            buf_puts(b, plan_node_host(l->node));
            text += strlen("{address}");
        } else if (str_starts(text, "{endpoint}")) {
            buf_puts(b, l->plan->endpoint ? l->plan->endpoint : "");
            text += strlen("{endpoint}");
        } else {
            buf_putc(b, *text++);
        }
    }
}

static const char *const *agent_argv(struct arena *a, const struct launch *l) {
    struct words w = {.arena = a};
    BUF_FINI struct buf text = {0};
    const char *const *words = l->plan->scenario->job.launcher_argv;
    for (const char *const *word = words; *word; word++) {
        /* What follows sh -c is one text, also when it is nothing but the worker. */
        bool text_of_shell = word > words && word[-1][0] == '-' && str_ends(word[-1], "c");
        if (str_eq(*word, "{worker}") && !text_of_shell) {
            put_worker(&w, l);
            continue;
        }
        buf_clear(&text);
        fill(&text, *word, l);
        words_put(&w, "%s", buf_str(&text));
    }
    return w.v;
}

static const char *const *agent_env(struct arena *a, const struct launch *l) {
    return NULL;
}

const struct launcher launcher_template = {
    .name = "template",
    .text = "any command that names {worker}",
    .agent_argv = agent_argv,
    .agent_env = agent_env,
};
