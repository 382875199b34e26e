/* The catalogue of faults as a table of Markdown. */
#include "harness/verbs/language/language.h"

#include "base/str.h"
#include "faults/need.h"

static void put_targets(struct buf *out, unsigned targets) {
    static const struct {
        unsigned target;
        const char *text;
    } words[] = {{TARGET_WORKER, "workers"},
                 {TARGET_AGENT, "agents"},
                 {TARGET_NODE, "nodes"},
                 {TARGET_RACK, "racks"},
                 {TARGET_STORE, "the store"}};
    const char *between = "";
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (targets & words[i].target) {
            buf_printf(out, "%s%s", between, words[i].text);
            between = ", ";
        }
}

static void put_evidence(struct buf *out, uint64_t evidence) {
    const char *between = "";
    for (int i = 0; i < EVIDENCES_N; i++)
        if (evidence >> i & 1) {
            buf_puts(out, between);
            for (const char *c = fault_evidence_names[i]; *c; c++)
                buf_putc(out, *c == '_' ? ' ' : *c);
            between = ", ";
        }
}

static void put_fault(struct buf *out, const struct fault *f) {
    bool wire = f->needs & FAULT_NEEDS_OF_NAMESPACES;
    buf_printf(out, "| `%s` | %s | ", f->name, fault_family(f));
    put_targets(out, f->targets);
    buf_printf(out, " | %s | ", f->needs ? fault_needs_text(f->needs) : "nothing");
    put_evidence(out, f->evidence);
    buf_printf(out, " | %s | %s |\n", f->undo, wire ? "namespaces" : "namespaces, processes");
}

void catalogue_put(struct buf *out) {
    buf_puts(out, "| fault | family | aimed at | needs | evidence | undo | isolation |\n"
                  "|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; faults[i]; i++)
        put_fault(out, faults[i]);
}

bool catalogue_put_family(struct buf *out, const char *family) {
    bool any = false;
    for (size_t i = 0; faults[i]; i++) {
        const struct fault *f = faults[i];
        if (!str_eq(fault_family(f), family))
            continue;
        buf_printf(out, "- **`%s`**: %s. It touches: %s.\n  `%s`\n", f->name, f->summary, f->blast,
                   f->example);
        any = true;
    }
    return any;
}
