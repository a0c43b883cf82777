// The part of OpenSSL's libcrypto that is used: SHA-256 and HMAC (EVP_Digest(3), HMAC(3)).
#pragma once
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
