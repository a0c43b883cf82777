# Varnish as a parent of sluice daemons: sluice serve --parent 'http://HOST:6081/{scheme}/{host}{path}'
vcl 4.1;

# One for each origin. Varnish speaks no TLS: one behind https is reached through a program that does,
# such as HAProxy on another port of this machine.
backend cdn {
    .host = "192.0.2.1";
    .port = "80";
}

sub vcl_recv {
    if (req.url !~ "^/https?/[^/?]+/") {
        return (synth(400, "the URL is /{scheme}/{host}{path}"));
    }
    set req.http.Host = regsub(req.url, "^/https?/([^/]+)/.*$", "\1");
    set req.url = regsub(req.url, "^/https?/[^/]+", "");
    if (req.http.Host == "cdn.example.com") {
        set req.backend_hint = cdn;
    } else {
        return (synth(503, "no backend for this origin"));
    }
    # A daemon that knows a name to stand for something else now asks past what is stored.
    if (req.http.Cache-Control ~ "no-cache") {
        set req.hash_always_miss = true;
    }
}

sub vcl_backend_response {
    # Whether a playlist is live is not known here: without a word of the origin it holds for nothing,
    # and what is stale is never given.
    if (bereq.url ~ "\.m3u8?(\?|$)") {
        set beresp.grace = 0s;
        if (!beresp.http.Cache-Control && !beresp.http.Expires) {
            set beresp.ttl = 0s;
        }
    }
}

sub vcl_deliver {
    set resp.http.Cache-Status = "varnish; detail=" + obj.hits;
}
