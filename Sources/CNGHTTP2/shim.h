// HTTP/2 (RFC 9113) and HPACK (RFC 7541): libnghttp2's sessions and header compression.
#pragma once
#include <nghttp2/nghttp2.h>
