#include "harness/host/host_self.h"

#include "base/sys/file.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pwd.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

const char *host_self_name(struct arena *a) {
    struct utsname u;
    uname(&u);
    return arena_strdup(a, u.nodename);
}

const char *host_self_user(struct arena *a) {
    struct passwd *p = getpwuid(getuid());
    return arena_strdup(a, p ? p->pw_name : "?");
}

static const char *text_of(struct arena *a, const struct sockaddr *at) {
    char text[INET6_ADDRSTRLEN];
    int family = at ? at->sa_family : AF_UNSPEC;
    const void *bytes =
        family == AF_INET
            ? (const void *)&((const struct sockaddr_in *)(const void *)at)->sin_addr
            : (const void *)&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr;
    if (family != AF_INET && family != AF_INET6)
        return NULL;
    return inet_ntop(family, bytes, text, sizeof(text)) ? arena_strdup(a, text) : NULL;
}

const char *const *host_self_addresses(struct arena *a) {
    struct ifaddrs *all = NULL;
    size_t n = 0;
    if (getifaddrs(&all) < 0)
        all = NULL;
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        n++;
    const char **v = arena_array(a, const char *, n + 1);
    n = 0;
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        if ((v[n] = text_of(a, i->ifa_addr)) != NULL)
            n++;
    v[n] = NULL;
    freeifaddrs(all);
    return v;
}

void host_self_put(struct json_writer *w) {
    BUF_FINI struct buf kernel = {0};
    file_read("/proc/sys/kernel/random/boot_id", 4096, &kernel, NULL);
    json_put_stringn(w, "kernel", buf_str(&kernel), strcspn(buf_str(&kernel), "\n"));
    ARENA_FINI struct arena a = {0};
    json_put_string(w, "host", host_self_name(&a));
    json_put_string(w, "user", host_self_user(&a));
    json_put_strings(w, "addresses", host_self_addresses(&a));
}
