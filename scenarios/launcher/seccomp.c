/* seccomp: libseccomp for a launcher with --sandbox, played. What is asked of it is noted as of the system (confined.c), and what it exports is a filter that
 * allows all, of SECCOMP_LENGTH instructions.
 *
 * SECCOMP_NAMES says which names of system calls it knows: all, by numbers of its own; none; odd, which are those that other architectures
 * have; one, which is the first call there is. WITHOUT, of the compiler, is a function that an old one has not.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <linux/filter.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 1000, NAMES_MAX = 256 };

struct compared_argument {
    unsigned argument;
    int how;
    uint64_t a, b;
};

int confined(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char known[NAMES_MAX][32];
static int known_n;

#ifndef NO_INIT
void *seccomp_init(uint32_t action) {
    return confined("library: begin, %#x", action) ? NULL : known;
}
#endif

#ifndef NO_ATTR
int seccomp_attr_set(void *filter, int attribute, uint32_t value) {
    return -confined("library: of %s attribute %d is %#x", filter == known ? "it" : "another",
                     attribute, value);
}
#endif

#ifndef NO_NAME
int seccomp_syscall_resolve_name(const char *name) {
    const char *names = getenv("SECCOMP_NAMES");
    if (names)
        return strcmp(names, "one") == 0 && strcmp(name, "ptrace") == 0 ? 0
               : strcmp(names, "odd") == 0                              ? -10123
                                                                        : -1;
    for (int i = 0; i < known_n; i++)
        if (strcmp(known[i], name) == 0)
            return FIRST + i;
    snprintf(known[known_n], sizeof(*known), "%s", name);
    return FIRST + known_n++;
}
#endif

#ifndef NO_RULE
int seccomp_rule_add_array(void *filter, uint32_t action, int call, unsigned n,
                           const struct compared_argument *all) {
    static const char *const how[] = {"?", "!=", "<", "<=", "==", ">=", ">", "masked"};
    char text[512] = "", number[16];
    snprintf(number, sizeof(number), "%d", call);
    for (unsigned i = 0; i < n; i++)
        sprintf(text + strlen(text), ", argument %u %s %#lx %#lx", all[i].argument,
                how[all[i].how & 7], (long)all[i].a, all[i].how == 7 ? (long)all[i].b : 0L);
    return -confined("library: in %s %s is answered with %#x%s", filter == known ? "it" : "another",
                     call >= FIRST && call < FIRST + known_n ? known[call - FIRST] : number, action,
                     text);
}
#endif

#ifndef NO_EXPORT
int seccomp_export_bpf(const void *filter, int fd) {
    int n = getenv("SECCOMP_LENGTH") ? atoi(getenv("SECCOMP_LENGTH")) : 3;
    int code = confined("library: export %s", filter == known ? "it" : "another");
    for (int i = 0; !code && i < n; i++) {
        struct sock_filter one = {6, 0, 0, 0x7fff0000U + (unsigned)i};
        if (write(fd, &one, sizeof(one)) != sizeof(one))
            abort();
    }
    return -code;
}
#endif

#ifndef NO_RELEASE
void seccomp_release(void *filter) {
    confined("library: release %s", filter == known ? "it" : "another");
}
#endif
