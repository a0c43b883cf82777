// libpsl: the Public Suffix List, which comes with libcurl.
#pragma once
#include <libpsl.h>
