# How `make bench` starts Varnish; words between @ are filled in. Memory, 4 GB, streaming.
vcl 4.1;
backend origin { .host = "@originhost@"; .port = "@originport@"; }
