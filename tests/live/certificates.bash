# certificates: authorities and certificates to be thrown away, made in the current folder, for tests of TLS; how these
# say that something is wrong, and end what they began. To be sourced at the root of the tree.

if ! command -v openssl >/dev/null; then
    echo 'no openssl on this host: apt install openssl'
    exit 77
fi
fail() {
    echo "FAILED: $*"
    tail -n 20 said* 2>/dev/null
    exit 1
}
# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
finish() {
    kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null
    wait 2>/dev/null
}
trap finish EXIT

new_key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
make_authority() { # make_authority NAME: leaves NAME.pem and NAME.key
    openssl req -x509 "${new_key[@]}" -days 2 -subj "/O=$1" -keyout "$1.key" -out "$1.pem" 2>said || fail "openssl: $1"
}
make_certificate() { # make_certificate NAME ADDRESS...: NAME.pem and NAME.key, signed by ca, of who serves there or asks
    local name=$1 names
    shift
    names=$(printf ',IP:%s' "$@")
    printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "${names#,}" >ext
    openssl req "${new_key[@]}" -subj "/O=$name" -keyout "$name.key" -out "$name.csr" 2>said &&
        openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext \
            -out "$name.pem" 2>said || fail "openssl: $name"
}
