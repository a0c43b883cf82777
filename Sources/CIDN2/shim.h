// libidn2: international host names (IDNA2008 with UTS 46), the library that libcurl uses too.
#pragma once
#include <idn2.h>

/// idn2_lookup_u8(3) as libcurl calls it: NFC first, no transitional mapping.
static inline int sluice_idn2_lookup(const char *_Nonnull name, char *_Nullable *_Nonnull ascii) {
    return idn2_lookup_u8((const uint8_t *)name, (uint8_t **)ascii,
                          IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
}
