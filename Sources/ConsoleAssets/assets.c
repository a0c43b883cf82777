// #embed (C23) rather than resources of SwiftPM: a bundle beside the program would have to be
// installed and found, and bytes embedded as Swift code are type-checked one by one.
#include "ConsoleAssets.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "page/index.html"
};
static const unsigned char console_css[] = {
#embed "page/console.css"
};
static const unsigned char app_mjs[] = {
#embed "page/app.mjs"
};
static const unsigned char api_mjs[] = {
#embed "page/api.mjs"
};
static const unsigned char dom_mjs[] = {
#embed "page/dom.mjs"
};
static const unsigned char plots_mjs[] = {
#embed "page/plots.mjs"
};
static const unsigned char player_mjs[] = {
#embed "page/player.mjs"
};
static const unsigned char waterfall_mjs[] = {
#embed "page/waterfall.mjs"
};
static const unsigned char library_mjs[] = {
#embed "page/library.mjs"
};
static const unsigned char network_mjs[] = {
#embed "page/network.mjs"
};
static const unsigned char tools_mjs[] = {
#embed "page/tools.mjs"
};
static const unsigned char inspect_mjs[] = {
#embed "page/inspect.mjs"
};
static const unsigned char feeds_mjs[] = {
#embed "page/feeds.mjs"
};
static const unsigned char export_mjs[] = {
#embed "page/export.mjs"
};
static const unsigned char pictures_mjs[] = {
#embed "page/pictures.mjs"
};

struct asset {
    const char *name;
    const unsigned char *bytes;
    size_t length;
};

#define ASSET(name, bytes) { name, bytes, sizeof bytes }

static const struct asset assets[] = {
    ASSET("index.html", index_html), ASSET("console.css", console_css),
    ASSET("app.mjs", app_mjs), ASSET("api.mjs", api_mjs), ASSET("dom.mjs", dom_mjs),
    ASSET("plots.mjs", plots_mjs), ASSET("player.mjs", player_mjs),
    ASSET("waterfall.mjs", waterfall_mjs), ASSET("library.mjs", library_mjs),
    ASSET("network.mjs", network_mjs), ASSET("tools.mjs", tools_mjs),
    ASSET("inspect.mjs", inspect_mjs), ASSET("feeds.mjs", feeds_mjs),
    ASSET("pictures.mjs", pictures_mjs), ASSET("export.mjs", export_mjs),
};

size_t console_asset_count(void) { return sizeof assets / sizeof assets[0]; }
const char *console_asset_name(size_t place) { return assets[place].name; }
const unsigned char *console_asset_bytes(size_t place) { return assets[place].bytes; }
size_t console_asset_length(size_t place) { return assets[place].length; }
