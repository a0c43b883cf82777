// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, as in RFC 3720 appendix B.4), in hardware where there
// is any: three streams at once, because the instruction takes three cycles but can be started in
// each. The bit-reflected form is used throughout; bit 31 - i of a word stands for x^i.
#include "CLinux.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#define HARDWARE __attribute__((target("sse4.2,pclmul")))
#endif

enum { polynomial = (int)0x82F63B78, block = 1024 };

static uint32_t table[8][256];
// x^(8 * 2^k) mod P: appending 2^k zero bytes multiplies by that.
static uint32_t shifts[64];
// x^(8n - 33) mod P for n = block and 2 * block: what a carry-less product needs, see below.
static uint64_t one_block, two_blocks;
static bool has_hardware;

// The product of two polynomials modulo P.
static uint32_t multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        if (a & bit) {
            product ^= b;
        }
        b = b & 1 ? b >> 1 ^ (uint32_t)polynomial : b >> 1;
    }
    return product;
}

// x^bits mod P.
static uint32_t power(uint64_t bits) {
    uint32_t result = 1u << 31, square = 1u << 30;
    for (; bits != 0; bits >>= 1) {
        if (bits & 1) {
            result = multiply(result, square);
        }
        square = multiply(square, square);
    }
    return result;
}

__attribute__((constructor)) static void fill_tables(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++) {
            value = value & 1 ? value >> 1 ^ (uint32_t)polynomial : value >> 1;
        }
        table[0][byte] = value;
    }
    for (int row = 1; row < 8; row++) {
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = table[row - 1][byte];
            table[row][byte] = before >> 8 ^ table[0][before & 0xFF];
        }
    }
    shifts[0] = power(8);
    for (int k = 1; k < 64; k++) {
        shifts[k] = multiply(shifts[k - 1], shifts[k - 1]);
    }
    one_block = power(8ull * block - 33);
    two_blocks = power(16ull * block - 33);
#if defined(__x86_64__)
    __builtin_cpu_init();
    has_hardware = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
#endif
}

// Eight bytes a step by tables.
static uint32_t in_software(uint32_t crc, const uint8_t *bytes, size_t count) {
    for (; count >= 8; bytes += 8, count -= 8) {
        uint32_t low = crc ^ ((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8
                              | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24);
        crc = table[7][low & 0xFF] ^ table[6][low >> 8 & 0xFF] ^ table[5][low >> 16 & 0xFF]
            ^ table[4][low >> 24] ^ table[3][bytes[4]] ^ table[2][bytes[5]] ^ table[1][bytes[6]]
            ^ table[0][bytes[7]];
    }
    while (count-- > 0) {
        crc = crc >> 8 ^ table[0][(crc ^ *bytes++) & 0xFF];
    }
    return crc;
}

#if defined(__x86_64__)
static inline uint64_t word(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

// The product of a checksum and x^(8n). The carry-less product of two reflected words stands for
// their product times x, and the instruction multiplies by x^32, so the factor is x^(8n - 33).
HARDWARE static inline uint32_t moved(uint32_t crc, uint64_t factor) {
    __m128i product = _mm_clmulepi64_si128(
        _mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128((long long)factor), 0);
    return (uint32_t)_mm_crc32_u64(0, (unsigned long long)_mm_cvtsi128_si64(product));
}

HARDWARE static uint32_t in_hardware(uint32_t crc, const uint8_t *bytes, size_t count) {
    uint64_t first = crc;
    while (count >= 3 * block) {
        uint64_t second = 0, third = 0;
        // The checksums take one word a cycle; what counts the words should take little beside.
#pragma clang loop unroll_count(16)
        for (int i = 0; i < block; i += 8) {
            first = _mm_crc32_u64(first, word(bytes + i));
            second = _mm_crc32_u64(second, word(bytes + block + i));
            third = _mm_crc32_u64(third, word(bytes + 2 * block + i));
        }
        first = moved((uint32_t)first, two_blocks) ^ moved((uint32_t)second, one_block) ^ third;
        bytes += 3 * block;
        count -= 3 * block;
    }
    for (; count >= 8; bytes += 8, count -= 8) {
        first = _mm_crc32_u64(first, word(bytes));
    }
    uint32_t last = (uint32_t)first;
    while (count-- > 0) {
        last = _mm_crc32_u8(last, *bytes++);
    }
    return last;
}
#endif

uint32_t clinux_crc32c(uint32_t crc, const void *bytes, size_t count) {
#if defined(__x86_64__)
    if (has_hardware) {
        return ~in_hardware(~crc, bytes, count);
    }
#endif
    return ~in_software(~crc, bytes, count);
}

uint32_t clinux_crc32c_software(uint32_t crc, const void *bytes, size_t count) {
    return ~in_software(~crc, bytes, count);
}

uint32_t clinux_crc32c_joined(uint32_t first, uint32_t second, uint64_t second_count) {
    for (int k = 0; second_count != 0; k++, second_count >>= 1) {
        if (second_count & 1) {
            first = multiply(shifts[k], first);
        }
    }
    return first ^ second;
}
