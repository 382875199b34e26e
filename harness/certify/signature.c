#include "harness/certify/signature.h"

#include "base/base64.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Somebody may have to find a token and touch it. */
static const int64_t SIGN_WAIT_NS = INT64_C(600) * 1000000000,
                     CHECK_WAIT_NS = INT64_C(60) * 1000000000;
enum { SAID_MAX = 1 << 20, LINE = 70 };

static const char head[] = "-----BEGIN SSH SIGNATURE-----\n",
                  tail[] = "-----END SSH SIGNATURE-----\n";

static int hold(const char *name, const struct buf *text, struct err *err) {
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "hold %s", name);
    if (text &&
        (file_write_all(fd, text->data, text->len, err) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
        close(fd);
        return -EIO;
    }
    return fd;
}

/* What ssh-keygen is given and says. */
struct keygen {
    const char *const *argv;
    int input;   /* -1: nothing */
    int further; /* a descriptor that argv names; -1: none */
    int64_t within_ns;
    struct buf out, said; /* standard output and error */
    int status;
};

static void keygen_fini(struct keygen *k) {
    buf_fini(&k->out);
    buf_fini(&k->said);
}

static int take(int fd, struct buf *ret, struct err *err) {
    return lseek(fd, 0, SEEK_SET) < 0 ? err_set(err, -errno, "read what ssh-keygen said")
                                      : file_read_fd(fd, SAID_MAX, ret, err);
}

static int keygen(struct keygen *k, struct err *err) {
    FILE_CLOSE int out = hold("ssh-keygen's output", NULL, err);
    FILE_CLOSE int said = out < 0 ? -1 : hold("ssh-keygen's errors", NULL, err);
    struct process p;
    if (said < 0)
        return -EIO;
    struct process_spawn s = {.argv = k->argv,
                              .fds = (int[]){k->input, out, said},
                              .keep = &k->further,
                              .keep_n = k->further >= 0,
                              .death_signal = SIGKILL};
    int r = process_spawn(&s, &p, err);
    if (r == -ENOENT)
        return err_say(err, r,
                       "ssh-keygen is not there; install OpenSSH's client (openssh-client)");
    if (r < 0)
        return r;
    r = process_reap(&p, k->within_ns, &k->status);
    if (r == -ETIME) {
        process_signal(&p, SIGKILL);
        process_reap(&p, -1, &k->status);
        err_say(err, r, "ssh-keygen was not done within %lld s",
                (long long)(k->within_ns / 1000000000));
    }
    process_close(&p);
    if (r == 0)
        r = take(out, &k->out, err);
    return r == 0 ? take(said, &k->said, err) : r;
}

static bool was_well(const struct keygen *k) {
    return WIFEXITED(k->status) && WEXITSTATUS(k->status) == 0;
}

/* Its last line, which is the sentence. */
static int refused(const struct keygen *k, int code, const char *what, struct err *err) {
    ARENA_FINI struct arena a = {0};
    const char *last = "nothing";
    char **lines = str_split(&a, buf_str(&k->said), '\n', NULL);
    for (; *lines; lines++)
        if (**lines)
            last = *lines;
    size_t n = strlen(last);
    return err_say(err, code, "%s; ssh-keygen said: %.*s", what,
                   (int)(n && last[n - 1] == '\r' ? n - 1 : n), last);
}

int signature_make(const char *key, const struct buf *text, struct buf *ret, struct err *err) {
    FILE_CLOSE int input = hold("the certificate", text, err);
    struct keygen k = {.argv = (const char *const[]){"ssh-keygen", "-Y", "sign", "-f", key, "-n",
                                                     SIGNATURE_NAMESPACE, NULL},
                       .input = input,
                       .further = -1,
                       .within_ns = SIGN_WAIT_NS};
    int r = input < 0 ? input : keygen(&k, err);
    if (r == 0 && !was_well(&k))
        r = refused(&k, -EACCES, "nothing could be signed", err);
    if (r == 0)
        buf_put(ret, k.out.data, k.out.len);
    keygen_fini(&k);
    return r;
}

/* A string as SSH writes one: its length in four bytes, the highest first. False: it is cut. */
static bool take_string(const struct buf *from, size_t *at, size_t *len) {
    const uint8_t *p = (const uint8_t *)from->data + *at;
    if (from->len - *at < 4)
        return false;
    *len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    *at += 4;
    if (from->len - *at < *len)
        return false;
    *at += *len;
    return true;
}

/* ssh-keygen reads on where version and reserved text are others, which nothing signs. */
static bool is_version_1(const struct buf *bytes) {
    static const char magic[] = "SSHSIG\0\0\0\1";
    size_t at = sizeof(magic) - 1, key, namespace, reserved;
    return bytes->len >= at && memcmp(bytes->data, magic, at) == 0 &&
           take_string(bytes, &at, &key) && take_string(bytes, &at, &namespace) &&
           take_string(bytes, &at, &reserved) && reserved == 0;
}

/* ssh-keygen lets blanks and line ends differ. We do not: of a signature there is one form. */
static bool is_exact(const struct buf *signature) {
    BUF_FINI struct buf packed = {0}, bytes = {0}, coded = {0}, again = {0};
    size_t n = signature->len, ends = strlen(head) + strlen(tail);
    if (n < ends || memcmp(signature->data, head, strlen(head)) != 0)
        return false;
    for (size_t i = strlen(head); i < n - strlen(tail); i++)
        if (signature->data[i] != '\n')
            buf_putc(&packed, signature->data[i]);
    if (!packed.len || !base64_take(&bytes, packed.data, packed.len) || !is_version_1(&bytes))
        return false;
    base64_put(&coded, bytes.data, bytes.len);
    buf_puts(&again, head);
    for (size_t i = 0; i < coded.len; i += LINE) {
        size_t left = coded.len - i;
        buf_put(&again, coded.data + i, left < LINE ? left : LINE);
        buf_putc(&again, '\n');
    }
    buf_puts(&again, tail);
    return again.len == n && memcmp(again.data, signature->data, n) == 0;
}

/* `Good "NAMESPACE" signature with ED25519 key SHA256:...` */
static void take_key(const struct keygen *k, struct signature_judged *ret) {
    char kind[32], print[80];
    const char *with = strstr(buf_str(&k->out), " with ");
    if (with && sscanf(with, " with %31s key %79s", kind, print) == 2)
        snprintf(ret->key, sizeof(ret->key), "%s %s", kind, print);
}

struct checking {
    const char *signers, *at;
    const struct buf *text;
    int signature; /* a descriptor */
    char name[32]; /* by which ssh-keygen opens it */
};

static int ask(const struct checking *c, const char *const *argv, struct keygen *ret,
               struct err *err) {
    FILE_CLOSE int input = hold("the certificate", c->text, err);
    *ret = (struct keygen){
        .argv = argv, .input = input, .further = c->signature, .within_ns = CHECK_WAIT_NS};
    return input < 0 ? input : keygen(ret, err);
}

static int check_text(const struct checking *c, struct signature_judged *ret, struct err *err) {
    struct keygen k;
    int r = ask(c,
                (const char *const[]){"ssh-keygen", "-Y", "check-novalidate", "-n",
                                      SIGNATURE_NAMESPACE, "-s", c->name, NULL},
                &k, err);
    if (r == 0 && !was_well(&k)) {
        refused(&k, -EBADMSG, "the signature is not of this certificate", err);
        r = SIGNATURE_BAD;
    } else if (r == 0) {
        take_key(&k, ret);
    }
    keygen_fini(&k);
    return r;
}

static int find_principal(const struct checking *c, struct signature_judged *ret, struct err *err) {
    struct keygen k;
    char time[64];
    snprintf(time, sizeof(time), "-Overify-time=%s", c->at);
    int r = ask(c,
                (const char *const[]){"ssh-keygen", "-Y", "find-principals", "-s", c->name, "-f",
                                      c->signers, time, NULL},
                &k, err);
    if (r == 0 && was_well(&k))
        snprintf(ret->principal, sizeof(ret->principal), "%.*s",
                 (int)strcspn(buf_str(&k.out), "\n"), buf_str(&k.out));
    if (r == 0 && !*ret->principal) {
        err_say(err, -EACCES, "the key that signed it, %s, is nobody's in %s", ret->key,
                c->signers);
        r = SIGNATURE_STRANGER;
    }
    keygen_fini(&k);
    return r;
}

static int check_signer(const struct checking *c, const struct signature_judged *of,
                        struct err *err) {
    struct keygen k;
    char time[64], sentence[400];
    snprintf(time, sizeof(time), "-Overify-time=%s", c->at);
    int r = ask(c,
                (const char *const[]){"ssh-keygen", "-Y", "verify", "-f", c->signers, "-I",
                                      of->principal, "-n", SIGNATURE_NAMESPACE, time, "-s", c->name,
                                      NULL},
                &k, err);
    if (r == 0 && !was_well(&k)) {
        snprintf(sentence, sizeof(sentence), "the key that signed it, %s, may not sign it by %s",
                 of->key, c->signers);
        refused(&k, -EACCES, sentence, err);
        r = SIGNATURE_STRANGER;
    }
    keygen_fini(&k);
    return r;
}

int signature_check(const char *signers, const char *at, const struct buf *text,
                    const struct buf *signature, struct signature_judged *ret, struct err *err) {
    BUF_FINI struct buf known = {0};
    *ret = (struct signature_judged){.key = "", .principal = ""};
    int r = file_read_plain(signers, SAID_MAX, &known, err);
    if (r < 0)
        return r;
    if (!is_exact(signature)) {
        err_say(err, -EBADMSG, "the signature is not as ssh-keygen writes one");
        return SIGNATURE_BAD;
    }
    FILE_CLOSE int held = hold("the signature", signature, err);
    if (held < 0)
        return held;
    struct checking c = {.signers = signers, .at = at, .text = text, .signature = held};
    snprintf(c.name, sizeof(c.name), "/proc/self/fd/%d", held);
    r = check_text(&c, ret, err);
    r = r ? r : find_principal(&c, ret, err);
    return r ? r : check_signer(&c, ret, err);
}
