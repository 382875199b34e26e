/* certificates: an authority, what it signed, and one that it did not, made by the openssl program
 * in a folder of the test's; and where make leaves rankrun_tls.so. */
#pragma once

#include "agent/tls/tls.h"
#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char certificates[256]; /* the folder */

static inline const char *certificate_path(const char *name) {
    static char paths[8][320];
    static unsigned at;
    char *path = paths[at++ % 8];
    snprintf(path, sizeof(*paths), "%s/%s", certificates, name);
    return path;
}

/* build/release/tests/agent/... belongs to build/bin, build/asan/tests/agent/... to build/asan/bin.
 */
static inline bool certificates_find_module(void) {
    static const char *const ups[] = {"/../../../bin/", "/../../../../bin/"};
    char folder[1024], path[1100];
    if (getenv(TLS_VARIABLE))
        return true;
    file_own_folder(folder, sizeof(folder));
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s%s" TLS_FILE, folder, ups[i]);
        if (access(path, R_OK) == 0)
            return setenv(TLS_VARIABLE, path, 1) == 0;
    }
    return false;
}

/* ca.pem signs both.pem (certificate and key in one), server.pem, server.key; other.pem, other.key
 * are nobody's. False: there is no TLS here, or no openssl to try it with; why is printed. */
static inline bool certificates_make(void) {
    static const char script[] =
        "cd %s && exec >said 2>&1 && command -v openssl || exit 3\n"
        "new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1'\n"
        "for n in ca other; do openssl req -x509 $new -nodes -days 2 -subj /O=$n "
        "-keyout $n.key -out $n.pem || exit 1; done\n"
        "openssl req $new -nodes -subj /O=server -keyout server.key -out csr &&\n"
        "printf 'subjectAltName=IP:127.0.0.1\\n' >ext &&\n"
        "openssl x509 -req -in csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext "
        "-out server.pem && cat server.key server.pem >both.pem &&\n"
        "openssl ec -in server.key -aes128 -passout pass:word -out locked.key && : >empty.pem\n";
    char command[2048];
    if (!certificates_find_module()) {
        printf("no TLS in this build: libssl-dev was missing\n");
        return false;
    }
    const char *tmp = getenv("TMPDIR");
    snprintf(certificates, sizeof(certificates), "%s/tls-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(certificates))
        abort();
    snprintf(command, sizeof(command), script, certificates);
    int status = system(command);
    if (status)
        printf("no certificates: is there an openssl on this host?\n");
    return status == 0;
}

static inline void certificates_end(void) {
    char command[320];
    snprintf(command, sizeof(command), "rm -rf %s", certificates);
    if (system(command))
        abort();
}
