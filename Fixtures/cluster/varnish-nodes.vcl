# Varnish before several daemons, which have --cluster-key: it spreads requests and stores nothing.
vcl 4.1;
import directors;

probe ready {
    .request = "GET /api/health?ready HTTP/1.1" "Host: localhost" "Connection: close";
    .interval = 1s;
    .window = 3;
    .threshold = 2;
}
backend node1 { .host = "127.0.0.1"; .port = "9001"; .probe = ready; .first_byte_timeout = 60s; }
backend node2 { .host = "127.0.0.1"; .port = "9002"; .probe = ready; .first_byte_timeout = 60s; }
backend node3 { .host = "127.0.0.1"; .port = "9003"; .probe = ready; .first_byte_timeout = 60s; }

sub vcl_init {
    new nodes = directors.shard();
    nodes.add_backend(node1);
    nodes.add_backend(node2);
    nodes.add_backend(node3);
    nodes.reconfigure();
}

sub vcl_recv {
    # The URL without the sealed session in front of a link and, unless it is the entry, its query.
    set req.http.X-Object = regsub(req.url, "^/c/[^/]+", "");
    if (req.http.X-Object !~ "^/proxy\?") {
        set req.http.X-Object = regsub(req.http.X-Object, "\?.*$", "");
    }
    return (pass);
}

sub vcl_backend_fetch {
    # The next node in the object's own order where one was not reached.
    set bereq.backend = nodes.backend(
        by=KEY, key=nodes.key(bereq.http.X-Object), alt=bereq.retries);
}

sub vcl_backend_error {
    # Only what changes nothing is asked twice.
    if (bereq.retries < 2 && (bereq.method == "GET" || bereq.method == "HEAD")) {
        return (retry);
    }
}
