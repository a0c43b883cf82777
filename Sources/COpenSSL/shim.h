// The part of OpenSSL's libcrypto that is used: SHA-256, HMAC and certificates (EVP_Digest(3),
// HMAC(3), X509_sign(3)).
#pragma once
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
