// The files of the console, which are part of the program: `page/` holds them.
#pragma once

#include <stddef.h>

/// How many there are.
size_t console_asset_count(void);

/// The name of one, by its place from 0 on; static.
const char *_Nonnull console_asset_name(size_t place);

/// Its bytes; static.
const unsigned char *_Nonnull console_asset_bytes(size_t place);

/// How many bytes it has.
size_t console_asset_length(size_t place);
