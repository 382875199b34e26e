#include "scenarios/jobs/ranktrain/gpu/nccl_interface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int nccl_interface_fits(const char *list, const char *name) {
    bool all_but = *list == '^';
    list += all_but;
    bool whole = *list == '=';
    list += whole;
    while (*list) {
        size_t n = strcspn(list, ","), length = strcspn(list, ",:");
        if (length && strncmp(list, name, length) == 0 && (!whole || !name[length]))
            return !all_but;
        list += n + (list[n] == ',');
    }
    return all_but;
}

static bool usable(const struct ifaddrs *i) {
    int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
    return (family == AF_INET || family == AF_INET6) && (i->ifa_flags & IFF_UP);
}

/* An interface has a line for each of its addresses. */
static void add_name(char *names, size_t size, const char *name) {
    size_t n = strlen(names), length = strlen(name);
    const char *at = strstr(names, name);
    if (at && (at[length] == ',' || !at[length]) && (at == names || at[-1] == ' '))
        return;
    snprintf(names + n, size - n, "%s%s", n ? ", " : "", name);
}

int nccl_interface_check(const char *list, struct err *err) {
    struct ifaddrs *all;
    char names[256] = "";
    bool found = false;
    if (!list || !*list)
        return 0;
    if (getifaddrs(&all) < 0)
        return err_set(err, -errno, "the list of network interfaces");
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if (usable(i)) {
            found |= nccl_interface_fits(list, i->ifa_name);
            add_name(names, sizeof(names), i->ifa_name);
        }
    freeifaddrs(all);
    if (found)
        return 0;
    return err_say(err, -ENODEV,
                   "NCCL_SOCKET_IFNAME=%s names no network interface that is up and has an "
                   "address: there %s %s",
                   list, *names ? "are" : "is", *names ? names : "none");
}
