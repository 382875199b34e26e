/* Writes the tables of docs/scenario-language.md and docs/faults.md. */
#include "harness/verbs/language/language.h"

#include "base/str.h"
#include "harness/plan/features.h"
#include "harness/scenario/expand/schedule.h"

#include <errno.h>
#include <string.h>

/* A cell of a table of Markdown: the bar would end it. */
static void put_cell(struct buf *out, const char *text) {
    for (; *text; text++) {
        if (*text == '|')
            buf_putc(out, '\\');
        buf_putc(out, *text);
    }
}

/* Text in which names in angle brackets are no marks of HTML. */
static void put_prose(struct buf *out, const char *text) {
    for (; *text; text++)
        if (*text == '<')
            buf_puts(out, "&lt;");
        else if (*text == '|')
            buf_puts(out, "\\|");
        else
            buf_putc(out, *text);
}

static void put_key(struct buf *out, const struct key *k) {
    buf_printf(out, "| `%s` | ", k->name);
    put_prose(out, k->type);
    buf_puts(out, " | ");
    if (k->required)
        buf_puts(out, "required");
    else if (k->default_text && *k->default_text)
        put_prose(out, k->default_text);
    buf_puts(out, " | ");
    put_prose(out, k->text);
    if (k->example) {
        buf_puts(out, " `");
        put_cell(out, k->example);
        buf_putc(out, '`');
    }
    buf_puts(out, " |\n");
}

static bool put_section(struct buf *out, const char *name) {
    for (size_t i = 0; sections[i]; i++) {
        const struct section *s = sections[i];
        if (!str_eq(s->name, name))
            continue;
        put_prose(out, s->text);
        buf_puts(out, "\n\n| word | value | default | meaning, example |\n|---|---|---|---|\n");
        for (const struct key *k = s->keys; k->name; k++)
            if (k->read)
                put_key(out, k);
        return true;
    }
    return false;
}

static bool put_faults(struct buf *out, const char *name) {
    if (!str_eq(name, "faults"))
        return false;
    buf_puts(out, "| fault | what is done | on | with |\n|---|---|---|---|\n");
    for (size_t i = 0; faults[i]; i++) {
        const struct fault *f = faults[i];
        buf_printf(out, "| `%s` | ", f->name);
        put_prose(out, f->summary);
        buf_printf(out, " |%s%s%s%s |", f->targets & TARGET_WORKER ? " workers" : "",
                   f->targets & TARGET_AGENT ? " agents" : "",
                   f->targets & TARGET_NODE   ? " nodes"
                   : f->targets & TARGET_RACK ? " racks"
                                              : "",
                   f->targets & TARGET_STORE ? " the store" : "");
        for (const struct fault_param *p = f->params; p && p->name; p++) {
            buf_printf(out, "%s `%s`: ", p == f->params ? "" : ";", p->name);
            put_prose(out, p->text);
        }
        buf_puts(out, " |\n");
    }
    return true;
}

static bool put_presets(struct buf *out, const char *name) {
    if (!str_eq(name, "presets"))
        return false;
    buf_puts(out, "| preset | of what |\n|---|---|\n");
    for (const struct preset *p = presets; p->name; p++) {
        buf_printf(out, "| `%s` | ", p->name);
        put_prose(out, p->summary);
        buf_puts(out, " |\n");
    }
    return true;
}

static bool put_features(struct buf *out, const char *name) {
    if (!str_eq(name, "features"))
        return false;
    buf_puts(out, "| feature | what the host has |\n|---|---|\n");
    for (const struct feature *f = features; f->name; f++)
        buf_printf(out, "| `%s%s%s` | %s |\n", f->name, f->argument ? " " : "",
                   f->argument ? f->argument : "", f->text);
    return true;
}

static bool put_weights(struct buf *out, const char *name) {
    if (!str_eq(name, "weights"))
        return false;
    ARENA_FINI struct arena a = {0};
    buf_puts(out, "| weights | of what | shares |\n|---|---|---|\n");
    for (const struct hazards *w = hazards; w->name; w++) {
        buf_printf(out, "| `%s` | %s |", w->name, w->text);
        const struct hazard *shares = hit_shares(&a, w);
        for (const struct hazard *v = shares; v->fault; v++)
            buf_printf(out, "%s %s %g", v == shares ? "" : ",", v->fault, v->share);
        buf_puts(out, " |\n");
    }
    return true;
}

static bool put_catalogue(struct buf *out, const char *name) {
    static const char family[] = "family ";
    if (str_starts(name, family))
        return catalogue_put_family(out, name + sizeof(family) - 1);
    if (!str_eq(name, "catalogue"))
        return false;
    catalogue_put(out);
    return true;
}

/* The name in a line "<!-- words: NAME -->", NULL: it is another. */
static const char *name_in(struct arena *a, const char *line, size_t n) {
    static const char begin[] = "<!-- words: ", end[] = " -->";
    const char *s = arena_strndup(a, line, n);
    size_t edges = sizeof(begin) + sizeof(end) - 2;
    if (!str_starts(s, begin) || !str_ends(s, end) || strlen(s) <= edges)
        return NULL;
    return arena_strndup(a, s + sizeof(begin) - 1, strlen(s) - edges);
}

static const char *after_line(const char *s) {
    const char *nl = strchr(s, '\n');
    return nl ? nl + 1 : s + strlen(s);
}

static int fill(struct arena *a, const char *page, struct buf *out, struct err *err) {
    static const char end[] = "<!-- end -->";
    int line = 1;
    for (const char *next; *page; page = next, line++) {
        next = after_line(page);
        const char *name = name_in(a, page, strcspn(page, "\n"));
        buf_put(out, page, (size_t)(next - page));
        if (!name)
            continue;
        buf_putc(out, '\n');
        if (!put_section(out, name) && !put_faults(out, name) && !put_presets(out, name) &&
            !put_weights(out, name) && !put_features(out, name) && !put_catalogue(out, name))
            return err_say(
                err, -EINVAL,
                "line %d: there are no words \"%s\"; write the name of a section, faults, "
                "features, presets, weights, catalogue or a family of faults",
                line, name);
        buf_putc(out, '\n');
        for (; *next && !str_starts(next, end); next = after_line(next))
            line++;
        if (!*next)
            return err_say(err, -EINVAL, "line %d: the words of %s are not ended by %s", line, name,
                           end);
    }
    return 0;
}

int manual_fill(const char *page, struct buf *out, struct err *err) {
    ARENA_FINI struct arena a = {0};
    return fill(&a, page, out, err);
}
