/* unix_address: the address of a socket that has a path, or behind an @ an abstract name: as
 * RANKQUAKE_EVENTS says it (scenarios/jobs/rankquake.h). */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { UNIX_ADDRESS_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) };

/* Returns the length of the address, or -ENAMETOOLONG. */
int unix_address(const char *name, struct sockaddr_un *ret);
bool unix_address_fits(const char *path);
bool unix_address_is_abstract(const char *name);
/* An abstract name that nobody has: for what has a path that does not fit. Cut off where `what` is
 * too long. */
void unix_address_draw(const char *what, char ret[UNIX_ADDRESS_MAX]);
