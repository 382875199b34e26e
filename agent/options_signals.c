#include "agent/base/str.h"
#include "agent/options_given.h"

#include <signal.h>

static const struct {
    const char *name;
    int signo;
} signals[] = {
    {"SIGALRM", SIGALRM}, {"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},   {"SIGQUIT", SIGQUIT},
    {"SIGTERM", SIGTERM}, {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}, {"SIGXCPU", SIGXCPU},
};
enum { SIGNALS_N = sizeof(signals) / sizeof(signals[0]) };

static int number_of(const char *name) {
    for (int i = 0; i < SIGNALS_N; i++)
        if (str_eq(signals[i].name, name))
            return signals[i].signo;
    return 0;
}

/* As in torchrun a name that means nothing is only told. */
void options_settle_signals(struct options *o, struct options_given *g) {
    const char *text = g->signals_to_handle;
    size_t n;
    if (!text)
        text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
    char **names = str_split(g->arena, text, ',', &n);
    for (size_t i = 0; i < n; i++) {
        int signo = number_of(names[i]);
        if (signo)
            o->signals |= UINT64_C(1) << signo;
        else if (names[i][0])
            options_notice(g, "--signals-to-handle: %s is none that can be handled", names[i]);
    }
}
