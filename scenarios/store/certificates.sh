#!/bin/sh
# An authority, and the certificates of a store and of agents that it has signed, of tests of TLS: in the folder that is named.
set -eu
mkdir -p "$1"
cd "$1"
new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
sign() { # sign NAME EXTENSION...: NAME.pem and NAME.key
    name=$1
    shift
    printf '%s\n' "$@" >"$name.ext"
    openssl req $new -subj "/O=$name" -keyout "$name.key" -out "$name.csr"
    openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -extfile "$name.ext" -out "$name.pem"
    rm "$name.ext" "$name.csr"
}
for name in ca other; do
    openssl req -x509 $new -days 36500 -subj "/O=$name" -keyout $name.key -out $name.pem
done
sign store subjectAltName=DNS:store extendedKeyUsage=serverAuth
sign here subjectAltName=IP:127.0.0.1 extendedKeyUsage=serverAuth
sign agent subjectAltName=DNS:agent extendedKeyUsage=clientAuth
