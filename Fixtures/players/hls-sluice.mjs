// hls.js: plays URLs through Sluice.
//
//     import { throughSluice } from "./hls-sluice.mjs";
//     const hls = new Hls({ ...throughSluice("http://127.0.0.1:9000") });
//     hls.loadSource("https://cdn.example.com/vod/master.m3u8");
//
// Playlists that the daemon has rewritten name URLs of the daemon, which are loaded as they are.

/// The daemon's URL for a URL of an origin.
export function throughURL(base, url) {
    const daemon = base.replace(/\/+$/, "");
    const isForeign = /^https?:\/\//i.test(url) && !url.startsWith(daemon + "/");
    return isForeign ? `${daemon}/${url}` : url;
}

/// Options for `new Hls()`; they replace an `xhrSetup` of yours, which can call this one.
export function throughSluice(base) {
    return {
        xhrSetup(xhr, url) {
            xhr.open("GET", throughURL(base, url), true);
        },
    };
}
