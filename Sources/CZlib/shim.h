// zlib, for gzip answers to players. deflateInit2 is a macro, so it is wrapped.
#pragma once
#include <string.h>
#include <zlib.h>

/// deflateInit2(3) with gzip framing (RFC 1952).
static inline int sluice_gzip_init(z_stream *_Nonnull stream, int level) {
    memset(stream, 0, sizeof *stream);
    return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}

/// deflateInit2(3) without framing (RFC 1951).
static inline int sluice_deflate_init(z_stream *_Nonnull stream, int level) {
    memset(stream, 0, sizeof *stream);
    return deflateInit2(stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
}

/// inflateInit2(3) without framing (RFC 1951).
static inline int sluice_inflate_init(z_stream *_Nonnull stream) {
    memset(stream, 0, sizeof *stream);
    return inflateInit2(stream, -15);
}
