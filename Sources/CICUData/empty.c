// An empty package of ICU data: linked first, it takes the place of the 34 MB that come with Foundation.
//
// GRDB imports Foundation, and Foundation brings ICU with the data of all languages, which no part of the
// daemon uses. ICU accepts a package without entries; what would need an entry reports that it is missing.
// Decision 34 gives the figures. With a toolchain that has another version of ICU the name does not match,
// and the data come back.
#include "CICUData.h"

#include <stdint.h>

// The header of a common data file: ICU User Guide, "ICU Data"; UDataInfo in unicode/udata.h.
struct icu_data_package {
    uint16_t header_size;
    uint8_t magic[2];
    uint16_t info_size, info_reserved;
    uint8_t is_big_endian, charset_family, bytes_of_char, reserved_byte;
    uint8_t format[4], format_version[4], data_version[4];
    uint8_t padding[8];
    uint32_t entries, reserved;
    uint64_t no_entry[2];
};

const struct icu_data_package icudt76_dat __attribute__((aligned(16))) = {
    .header_size = 32,
    .magic = { 0xda, 0x27 },
    .info_size = 20,
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    .is_big_endian = 1,
#endif
    .bytes_of_char = 2,
    .format = { 'T', 'o', 'C', 'P' },
    .format_version = { 1 },
};
