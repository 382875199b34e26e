#include "base/sys/signals.h"

#include "base/str.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define NAME(x)                                                                                    \
    { SIG##x, "SIG" #x }

static const struct {
    int number;
    const char *name;
} names[] = {
    NAME(ABRT), NAME(ALRM), NAME(BUS),    NAME(CHLD),  NAME(CONT), NAME(FPE),
    NAME(HUP),  NAME(ILL),  NAME(INT),    NAME(IO),    NAME(KILL), NAME(PIPE),
    NAME(PROF), NAME(PWR),  NAME(QUIT),   NAME(SEGV),  NAME(STOP), NAME(SYS),
    NAME(TERM), NAME(TRAP), NAME(TSTP),   NAME(TTIN),  NAME(TTOU), NAME(URG),
    NAME(USR1), NAME(USR2), NAME(VTALRM), NAME(WINCH), NAME(XCPU), NAME(XFSZ),
};

const char *signal_name(int signo) {
    static char other[32];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].number == signo)
            return names[i].name;
    snprintf(other, sizeof(other), "signal %d", signo);
    return other;
}

int signal_number(const char *name) {
    int64_t number;
    if (str_to_i64(name, 1, SIGRTMAX, &number))
        return (int)number;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq(names[i].name, name) || str_eq(names[i].name + strlen("SIG"), name))
            return names[i].number;
    return 0;
}

void signal_ignore_writes(void) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void signal_reset(void) {
    sigset_t none;
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
