/* signature: of a certificate, by a key of the operator's, made and checked by OpenSSH's
 * ssh-keygen(1): `-Y sign -n rankquake-certificate`. Keys on tokens and in agents work as they do
 * there. Its form is that of OpenSSH's PROTOCOL.sshsig. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define SIGNATURE_NAMESPACE "rankquake-certificate"

/* Appends the armored signature of the text. key: a file with a private key, or with a public one
 * whose private one the agent has. ssh-keygen asks for a passphrase at the terminal. Returns 0 or a
 * -errno with what ssh-keygen said. */
int signature_make(const char *key, const struct buf *text, struct buf *ret, struct err *err);

enum signature_state {
    SIGNATURE_GOOD,
    SIGNATURE_BAD,      /* it is none, or not of this text */
    SIGNATURE_STRANGER, /* it is of this text, by a key that the file does not allow for it */
};

struct signature_judged {
    char key[128];       /* "ED25519 SHA256:..." */
    char principal[128]; /* as whom the file knows it */
};

/* signers: a file as in "ALLOWED SIGNERS" of ssh-keygen(1). at: when it was signed,
 * "20261129114500Z", for keys that are valid for a while only. Returns an enum signature_state, err
 * saying what is wrong where it is not good; or a -errno: ssh-keygen could not be asked, or the file not
 * be read. */
int signature_check(const char *signers, const char *at, const struct buf *text,
                    const struct buf *signature, struct signature_judged *ret, struct err *err);
