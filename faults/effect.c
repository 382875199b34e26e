#include "faults/effect.h"

#include "base/str.h"
#include "faults/fault.h"

#include <assert.h>

const struct effect_word effect_words[EFFECTS_N] = {
#define X(name, word, text) {word, text},
    EFFECTS(X)
#undef X
};

unsigned fault_effects(const char *name) {
    const struct fault *f = fault_find(name);
    return f ? f->effects : 0;
}

const char *fault_that(unsigned effects) {
    size_t i = 0;
    while (faults[i] && (faults[i]->effects != effects ||
                         faults[i]->needs & FAULT_NEEDS_SCHEDULER)) /* which few clusters have */
        i++;
    assert(faults[i]);
    return faults[i]->name;
}

const char *const *fault_names(void) {
    static const char *names[] = {
#define X(name) NULL,
#include "faults/faults.h"
#undef X
        NULL};
    for (size_t i = 0; faults[i] && !names[i]; i++)
        names[i] = faults[i]->name;
    return names;
}

void effects_put(struct json_writer *w, const char *key, unsigned effects) {
    json_array(w, key);
    for (int i = 0; i < EFFECTS_N; i++)
        if (effects & 1U << i)
            json_put_string(w, NULL, effect_words[i].word);
    json_end_array(w);
}

unsigned effects_take(const struct json *list) {
    unsigned effects = 0;
    json_each(it, list) {
        for (int i = 0; i < EFFECTS_N; i++)
            if (str_eq(json_string(it, ""), effect_words[i].word))
                effects |= 1U << i;
    }
    return effects;
}
