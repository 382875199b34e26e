#include "base/sys/unix_address.h"

#include "base/sys/random.h"
#include "scenarios/jobs/rankquake.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int unix_address(const char *name, struct sockaddr_un *ret) {
    return rankquake_address_(name, ret);
}

bool unix_address_fits(const char *path) {
    return strlen(path) < UNIX_ADDRESS_MAX;
}

bool unix_address_is_abstract(const char *name) {
    return *name == '@';
}

void unix_address_draw(const char *what, char ret[UNIX_ADDRESS_MAX]) {
    snprintf(ret, UNIX_ADDRESS_MAX, "@rankquake-%016" PRIx64 "-%s", random_u64(), what);
}
