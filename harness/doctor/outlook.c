#include "harness/doctor/outlook.h"

#include "faults/need.h"
#include "harness/doctor/host_questions.h"

static bool is_of(const struct host_question *q, enum question_part part) {
    return q->part == QUESTION_FOR_ALL || q->part == part;
}

/* What such nodes cannot be without, or the fault cannot be without on them; NULL: all is there. */
static const struct question_result *missing(const struct fault *f, enum question_part part,
                                             const struct question_result *answers) {
    for (int node = 1; node >= 0; node--)
        for (size_t i = 0; host_questions[i]; i++) {
            const struct host_question *q = host_questions[i];
            bool asked = node ? q->demo : q->need & f->needs;
            if (asked && is_of(q, part) && answers[i].status == QUESTION_LACKS)
                return &answers[i];
        }
    return NULL;
}

/* To a process alone the same is done on nodes of either kind. */
static const char *how_less(const struct fault *f) {
    return f->needs & FAULT_NEEDS_SILENCE
               ? "nodes are processes of this host; what they are sent is dropped at their sockets"
           : f->targets & (TARGET_NODE | TARGET_RACK) ? "nodes are processes of this host"
                                                      : NULL;
}

struct outlook outlook_of(const struct fault *f, const struct question_result *answers) {
    const struct question_result *lacks = missing(f, QUESTION_FOR_NAMESPACES, answers);
    if (!lacks)
        return (struct outlook){.kind = OUTLOOK_WORKS};
    if (!(f->needs & FAULT_NEEDS_OF_NAMESPACES) && !missing(f, QUESTION_FOR_PROCESSES, answers)) {
        const char *how = how_less(f);
        return (struct outlook){
            .kind = how ? OUTLOOK_LESS : OUTLOOK_WORKS, .why = how, .fix = how ? lacks->fix : NULL};
    }
    return (struct outlook){.kind = OUTLOOK_CANNOT, .why = lacks->seen, .fix = lacks->fix};
}
