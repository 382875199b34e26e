/* Settles the signals that end a job. */
#include "agent/options_given.h"
#include "base/str.h"
#include "base/sys/signals.h"

#include <signal.h>

/* Those that no process can handle, and those that tell of a broken one, are not taken. */
static int number_of(const char *name) {
    int signo = signal_number(name);
    bool taken = signo == SIGKILL || signo == SIGSTOP || signo == SIGCHLD || signo == SIGSEGV ||
                 signo == SIGBUS || signo == SIGFPE || signo == SIGILL || signo == SIGABRT;
    return taken || signo >= 64 ? 0 : signo;
}

/* As in torchrun a name that means nothing is only told. */
int options_settle_signals(struct options *o, struct options_given *g, struct err *err) {
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
            options_notice(g, "--signals-to-handle: %s is not a signal that can be handled",
                           names[i]);
    }
    return 0;
}
