import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The program's commands, exit codes and settings.
extension Stories {
    @Suite(.tags(.crowded)) struct CommandLineTests {}
}

// MARK: Commands

extension Stories.CommandLineTests {
    @Test
    func `url prints an entry, and decode turns every form back`() throws {
        let origin = "https://cdn.example.com/v/a.m3u8?x=1&y=%2F"
        let raw = try sluice("url", origin).stdout
        #expect(raw == "http://127.0.0.1:9000/\(origin)\n")
        let full = try sluice(
            "url", origin, "--header", "Referer: https://a.b/", "--daemon", "http://tv:1/"
        ).stdout
        #expect(
            full
                == "http://tv:1/proxy?url=\(percentEncoded(origin))&h_Referer=\(percentEncoded("https://a.b/"))\n"
        )
        #expect(
            try sluice("decode", String(raw.dropLast()), String(full.dropLast())).stdout
                == "\(origin)\n\(origin)\n")
    }

    @Test(arguments: [
        [], ["--dvr", "2h"], ["--header", "Referer: https://a.b/"],
        ["--dvr", "2h", "--header", "Referer: https://a.b/"], ["--token", "s3cret-token"],
        ["--height", "720"], ["--dvr", "2h", "--bandwidth", "2500000", "--height", "720"],
        ["--bandwidth", "2500000", "--header", "Referer: https://a.b/"],
    ])
    func `a URL that url has printed is not put behind the daemon twice`(_ options: [String])
        throws
    {
        func url(_ arguments: [String]) throws -> String {
            let program = try DaemonProcess.builtBinary()
            return String(try Tool.run([program, "url"] + arguments).stdout.dropLast())
        }
        let origin = "https://cdn.example.com/v/a.m3u8?x=1&y=%2F"
        let once = try url([origin] + options)
        let token = options.first == "--token" ? options : []
        #expect(try url([once] + token) == once)
        // Options of the second time replace what the URL has.
        let other = [
            "--dvr", "1h", "--header", "referer: https://c.d/", "--height", "480", "--bandwidth",
            "9",
        ]
        #expect(try url([once] + token + other) == url([origin] + token + other))
    }

    @Test func `a limit of variants is written in front of the URL or behind it`() throws {
        let origin = "https://cdn.example.com/v/a.m3u8"
        let options = ["--daemon", "http://tv:1", "--height", "720", "--bandwidth", "2500000"]
        let program = try DaemonProcess.builtBinary()
        #expect(
            try Tool.run([program, "url", origin] + options).stdout
                == "http://tv:1/height=720/bandwidth=2500000/\(origin)\n")
        #expect(
            try Tool.run([program, "url", "\(origin)|X-A=b"] + options).stdout
                == "http://tv:1/proxy?url=\(percentEncoded(origin))&h_X-A=b&height=720&bandwidth=2500000\n"
        )
        for value in ["0", "720p", "2147483649"] {
            #expect(try Tool.run([program, "url", origin, "--height", value]).status == 64)
        }
    }

    @Test(arguments: [[], ["--header", "Referer: https://a.b/"]])
    func `a fragment is no part of what is printed`(_ options: [String]) throws {
        func url(_ text: String) throws -> String {
            try Tool.run([try DaemonProcess.builtBinary(), "url", text] + options).stdout
        }
        let origin = "https://cdn.example.com/v/a.m3u8?x=1"
        #expect(try url(origin + "#t=9") == url(origin))
    }

    @Test func `a link of a mount with user information is not tried without it`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        cdn.put("/a.ts", Array("bytes".utf8))
        let handle = handMadeHandle(of: "http://mount*%2Fadm%2F@127.0.0.1:\(cdn.port)/a.ts")
        let link = "http://127.0.0.1:1/s/\(handle)/a.ts"
        let printed = try sluice("url", link)
        #expect(printed.status != 0 && printed.stderr.contains("path of the mount"))
        let tested = try sluice("doctor", "--port", "0", "--allow-private", link)
        #expect(tested.status != 0 && tested.stdout.contains("path of the mount"))
        #expect(cdn.requests.isEmpty)
    }

    @Test func `a link whose URL only its daemon knows is not taken for an origin's`() throws {
        let story = try Story()
        let long = "a.ts?token=" + String(repeating: "0123456789", count: 200)
        story.cdn.put("/l.m3u8", text: vod([long]))
        story.cdn.put(
            "/live.m3u8", text: vod(["b.ts"]).replacing("#EXT-X-ENDLIST\n", with: ""))
        let short = try story.links(in: "/l.m3u8")[0]
        // Some players drop the query.
        let place = try story.links(in: "/live.m3u8")[0].prefix { $0 != "?" }
        for link in [short, String(place)] {
            let printed = try sluice("url", story.daemon.baseURL + link)
            #expect(printed.status == 64 && printed.stderr.contains("only its daemon knows"))
        }
        let tested = try sluice("doctor", "--port", "0", story.daemon.baseURL + short)
        #expect(tested.status != 0 && tested.stdout.contains("only its daemon knows"))
    }

    @Test func `url prints a host beyond ASCII in its ASCII form`() throws {
        let given = try sluice("url", "http://me@b\u{FC}cher.example:81/\u{FC}.ts").stdout
        #expect(
            given == "http://127.0.0.1:9000/http://me@xn--bcher-kva.example:81/%C3%BC.ts\n")
        let encoded = try sluice("url", "http://b%C3%BCcher.example/a.ts").stdout
        #expect(encoded == "http://127.0.0.1:9000/http://xn--bcher-kva.example/a.ts\n")
    }

    @Test
    func `decode reads links and reports which are invalid`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts?b=1"]))
        let link = try story.links(in: "/l.m3u8")[0]
        let good = try sluice("decode", link, story.daemon.baseURL + link)
        #expect(good.status == 0)
        #expect(
            good.stdout == story.cdn.url("/a.ts?b=1") + "\n" + story.cdn.url("/a.ts?b=1") + "\n")
        let bad = try sluice("decode", "/s/AAAA/x.ts", link)
        #expect(bad.status == 1)
        #expect(
            bad.stderr.contains("not a link of this daemon") && bad.stdout.hasSuffix("/a.ts?b=1\n"))
    }

    @Test func `links and entries behind a base path are decoded`() throws {
        let story = try Story(["--base-path", "/tv/hls"])
        story.cdn.put("/l.m3u8", text: vod(["a.ts?b=1"]))
        let link = try story.links(in: "/l.m3u8")[0]
        #expect(link.hasPrefix("/tv/hls/s/"))
        let origin = story.cdn.url("/a.ts?b=1")
        let good = try sluice(
            "decode", link, "https://tv.example" + link, "https://tv.example/tv/hls/" + origin,
            "https://tv.example/tv/hls/proxy?url=" + percentEncoded(origin))
        #expect(good.stdout == String(repeating: origin + "\n", count: 4), "\(good.stderr)")
        let entry = try sluice(
            "url", "https://tv.example/hls/\(origin)", "--daemon", "https://tv.example/hls")
        #expect(entry.stdout == "https://tv.example/hls/\(origin)\n")
        // The daemon knows its own URLs as players have them.
        let url = percentEncoded(story.daemon.baseURL + link)
        #expect(try story.api("why?url=\(url)").contains("a.ts?b="))
    }

    @Test
    func `decode reads a list of URLs from standard input`() throws {
        let program = try DaemonProcess.builtBinary()
        let script = "printf '/http://h/a\\n\\n/http://h/b\\n' | \(program) decode"
        #expect(try Tool.run(["sh", "-c", script]).stdout == "http://h/a\nhttp://h/b\n")
    }

    @Test
    func `stats prints texts with commas, quotes and braces as they are`() throws {
        let story = try Story()
        let figures =
            #"{"version":"1","reason":"slow, then \"calm\" {2}","p":{"a":1.5},"none":null}"#
        story.cdn.put("/api/stats", Array(figures.utf8))
        let lines = try sluice("stats", "--daemon", story.cdn.url("/")).stdout
        #expect(lines == "version 1\nreason slow, then \"calm\" {2}\np.a 1.5\nnone null\n")
    }

    @Test
    func `stats, purge and clear ask the daemon`() throws {
        let story = try Story()
        let daemon = story.daemon.baseURL
        for name in ["/a.ts", "/b.ts"] {
            story.cdn.put(name, Array("bytes".utf8))
            _ = try story.get(name)
        }
        #expect(try sluice("stats", "--daemon", daemon).stdout.contains("misses_total 2\n"))
        #expect(try sluice("stats", "--json", "--daemon", daemon).stdout.hasPrefix("{\"version\""))
        #expect(
            try sluice("purge", story.cdn.url("/a.ts"), "--daemon", daemon).stdout
                .hasPrefix("removed 1 object, "))
        #expect(
            try sluice("purge", story.url("/b.ts"), "--daemon", daemon).stdout
                .hasPrefix("removed 1 object, "))
        _ = try story.get("/a.ts")
        let all = try sluice("clear", "--json", "--daemon", daemon).stdout
        #expect(all.hasPrefix("{\"removed\":1,\"bytes\":"), "\(all)")
        _ = try story.get("/a.ts")
        #expect(story.cdn.requestCount("/a.ts") == 3)
    }

    @Test
    func `without a daemon its commands end with 5`() throws {
        for command in ["stats", "clear"] {
            let result = try sluice(command, "--daemon", "http://127.0.0.1:1")
            #expect(result.status == 5 && result.stderr.contains("no daemon answers"))
            #expect(result.stderr.contains("--daemon"), "\(result.stderr)")
        }
        #expect(try sluice("purge", "http://h/x", "--daemon", "http://127.0.0.1:1").status == 5)
    }

    @Test
    func `version, help and completion scripts are there`() throws {
        #expect(try sluice("--version").stdout.hasPrefix("sluice "))
        #expect(try sluice("serve", "--help").stdout.contains("--cache-size"))
        for shell in ["bash", "zsh", "fish"] {
            let script = try sluice("--generate-completion-script", shell)
            #expect(script.status == 0 && script.stdout.contains("sluice"))
            #expect(script.stdout.contains("origins"))
        }
        #expect(try sluice("help", "tls", "init").stdout.contains("USAGE: sluice tls init"))
        #expect(try sluice("help", "help").status == 0)
        #expect(try sluice("help").stdout.contains("SUBCOMMANDS"))
        for words in [["serv"], ["tls", "serv"], ["url", "serv"]] {
            let unknown = try Tool.run([DaemonProcess.builtBinary(), "help"] + words)
            #expect(unknown.status == 64 && unknown.stdout.isEmpty, "\(unknown)")
            #expect(unknown.stderr.contains("no command 'serv'"), "\(unknown.stderr)")
        }
        #expect(try sluice("help", "serv").stderr.contains("did you mean 'serve'?"))
        let bare = try sluice()
        #expect(bare.status == 64 && bare.stdout.isEmpty, "\(bare)")
        #expect(bare.stderr.contains("SUBCOMMANDS"), "\(bare.stderr)")
        #expect(try sluice("serve", "--no-such-flag").status == 64)
        #expect(try sluice("url", "no-url").status == 64)
    }
}

// MARK: Completions

extension Stories.CommandLineTests {
    @Test func `bash completes files, folders and values of options`() throws {
        let folder = try TemporaryFolder()
        let script = folder.file("completions")
        try writeFile(script, sluice("--generate-completion-script", "bash").stdout.utf8)
        try writeFile(folder.file("settings.json"), "{}".utf8)
        _ = folder.makeFolder("store")
        // As bash calls the function for the last of the words.
        let complete = """
            source "$1"; shift
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
            _sluice sluice "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let path = folder.path + "/"
        let cases: [(words: [String], completions: [String])] = [
            (["serve", "--policy", ""], ["media", "rfc", "offline", "refresh"]),
            (["serve", "--log-level", "no"], ["notice"]),
            (["check", "--config", path + "se"], [path + "settings.json"]),
            (["ls", "--cache-dir", path], [path + "store"]),
            (["export", "0123456789ab", path + "st"], [path + "store"]),
            (["feed", path + "se"], [path + "settings.json"]),
        ]
        for (words, completions) in cases {
            let result = try Tool.run(["bash", "-c", complete, "bash", script, "sluice"] + words)
            let found = result.stdout.split(separator: "\n").map(String.init)
            #expect(found == completions, "\(words) \(result.stderr)")
        }
    }
}

// MARK: Arguments

extension Stories.CommandLineTests {
    /// Runs a command line of the shell, in which `sluice` is the program.
    private func shell(_ line: String) throws -> Tool.Result {
        try Tool.run(["sh", "-c", "sluice() { \(DaemonProcess.builtBinary()) \"$@\"; }; \(line)"])
    }

    @Test func `an argument that is not UTF-8 is refused instead of changed`() throws {
        let url = try shell(#"sluice url "$(printf 'http://h/\377')""#)
        #expect(url.status == 64 && url.stdout.isEmpty, "\(url)")
        #expect(url.stderr.contains("argument 2 is not UTF-8"))
        let folder = try TemporaryFolder()
        let key = try shell(#"sluice cluster key "$(printf '\#(folder.path)/\377')""#)
        #expect(key.status == 64, "\(key)")
        #expect(listFolder(folder.path).isEmpty)
        #expect(try shell("sluice url 'http://h/\u{FC}'").status == 0)
    }

    @Test func `a variable that is not UTF-8 is a wrong setting`() throws {
        let line = #"export SLUICE_CACHE_DIR="$(printf '/a/\377')"; sluice config"#
        let config = try shell(line)
        #expect(config.status == 78 && config.stdout.isEmpty, "\(config)")
        #expect(config.stderr.contains("the variable SLUICE_CACHE_DIR is not UTF-8"))
        // Other variables are not the daemon's.
        let other = try shell(#"export NAME="$(printf '\377')"; sluice url http://h/"#)
        #expect(other.status == 0, "\(other)")
    }
}

// MARK: Output

extension Stories.CommandLineTests {
    @Test(arguments: ["config --json", "url http://h/", "--help", "url --help"])
    func `output that cannot be written is a failure`(_ command: String) throws {
        let line = "\(try DaemonProcess.builtBinary()) \(command)"
        let full = try Tool.run(["sh", "-c", "\(line) > /dev/full"])
        #expect(full.status == 1, "\(full)")
        #expect(full.stderr.contains("standard output cannot be written: No space left"))
        let closed = try Tool.run(["sh", "-c", "\(line) >&-"])
        #expect(closed.status == 1, "\(closed)")
        #expect(closed.stderr.contains("standard output cannot be written: Bad file descriptor"))
    }
}

// MARK: Settings

extension Stories.CommandLineTests {
    @Test
    func `check reports every error and ends with 78`() throws {
        let bad = try sluice(
            "check", "--port", "70000", "--policy", "often", "--cache-size", "much", "--mount",
            "/api/=http://h/")
        #expect(bad.status == 78)
        for name in ["port", "policy", "cache-size", "mount"] {
            #expect(bad.stderr.contains(name), "\(bad.stderr)")
        }
        let folder = "/tmp/sluice-check-\(getpid())"
        let good = try sluice(
            "check", "--cache-dir", folder, "--cache-size", "5GB", "--policy", "rfc")
        #expect(good.status == 0 && good.stdout.contains("5000000000 bytes, policy rfc"))
        #expect(access(folder, F_OK) != 0)
    }

    @Test
    func `config prints each value, its source and what a change needs, without secrets`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        try writeFile(
            file,
            #"{"policy":"refresh","port":1234,"slots":7,"allow-private":true,"origins":{"cdn.example":{"policy":"rfc"}}}"#
                .utf8)
        let result = try sluice(
            "config", "--config", file, "--policy", "rfc", "--mount",
            "/demo/=http://user:hidden@h/", "--doh-url", "https://d.example/q?key=hidden",
            environment: ["SLUICE_PORT=2345", "SLUICE_TOKEN=hidden-token"])
        #expect(result.status == 0, "\(result.stderr)")
        #expect(result.stdout.hasPrefix("file: \(file)\n"))
        #expect(!result.stdout.contains("hidden"), "\(result.stdout)")
        let rows = result.stdout.split(separator: "\n").map { line in
            line.split(separator: " ").joined(separator: " ")
        }
        for row in [
            "allow-private file restart true", "policy flag reload rfc",
            "port environment restart 2345", "slots file restart 7",
            "origins file reload cdn.example", "token environment restart ***",
            "cache-size default reload 10GB",
        ] {
            #expect(rows.contains(row), "\(row) is not in\n\(result.stdout)")
        }
        let json = try sluice("config", "--json", "--config", file).stdout
        #expect(json.contains("\"from\" : \"file\""))
        let bad = try sluice("config", "--port", "70000")
        #expect(bad.status == 78 && bad.stderr.contains("port is a number in 0...65535"))
    }

    @Test
    func `a flag wins over the environment, that over the file, that over the default`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        try writeFile(
            file,
            #"{"policy":"refresh","port":1234,"cache-dir":"/f","mount":["/demo/=http://h/"]}"#.utf8)
        let all = try sluice(
            "check", "--config", file, "--policy", "rfc",
            environment: ["SLUICE_POLICY=offline", "SLUICE_PORT=2345"])
        #expect(all.stdout.contains("127.0.0.1:2345, cache in /f,"), "\(all.stdout)\(all.stderr)")
        #expect(all.stdout.contains("policy rfc, 1 mounts"))
        let some = try sluice(
            "check", environment: ["SLUICE_CONFIG=\(file)", "SLUICE_CACHE_DIR=/e"])
        #expect(some.stdout.contains("127.0.0.1:1234, cache in /e,"))
        #expect(some.stdout.contains("policy refresh"))
        let none = try sluice("check", environment: ["XDG_CACHE_HOME=/x", "SLUICE_CONFIG="])
        #expect(none.stdout.contains("127.0.0.1:9000, cache in /x/sluice,"))
    }

    @Test func `the unit of make install leaves the cache folder to variables and file`() throws {
        let lines = try Fixture.text("sluice.service").split(separator: "\n")
        #expect(lines.contains("ExecStart=@PREFIX@/bin/sluice serve"))
        let start = "Environment="
        let given = lines.filter { $0.hasPrefix(start) }.map { String($0.dropFirst(start.count)) }
        let own = try sluice("check", environment: given)
        #expect(own.stdout.contains("cache in /var/cache/sluice,"), "\(own)")
        let folder = try TemporaryFolder()
        try writeFile(folder.file("sluice.json"), #"{"cache-dir":"/f"}"#.utf8)
        let file = "SLUICE_CONFIG=\(folder.file("sluice.json"))"
        let named = try sluice("check", environment: given + [file])
        #expect(named.stdout.contains("cache in /f,"), "\(named)")
    }

    @Test func `a daemon may be named without http`() throws {
        let result = try sluice("url", "--daemon", "127.0.0.1:9001", "http://h.example/a.m3u8")
        #expect(result.stdout == "http://127.0.0.1:9001/http://h.example/a.m3u8\n", "\(result)")
    }

    @Test(arguments: ["Host: b", "Content-Length: 3"])
    func `a header that the daemon refuses is refused`(line: String) throws {
        let result = try sluice("url", "--header", line, "http://h.example/a.m3u8")
        #expect(result.status == 64 && result.stdout.isEmpty, "\(result)")
    }

    @Test(arguments: [#"{"prot":1}"#, "[1]", "{", ""])
    func `an unusable configuration file ends with 78`(_ text: String) throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.file("c.json"), text.utf8)
        let result = try sluice("check", "--config", folder.file("c.json"))
        #expect(result.status == 78)
        #expect(result.stderr.contains(text.contains("prot") ? "unknown setting 'prot'" : "c.json"))
    }

    @Test func `a setting of an earlier version is ignored with a warning`() throws {
        let story = try Story(["--retention", "lru"])
        story.cdn.put("/a.ts", Array("bytes".utf8))
        #expect(try story.get("/a.ts").text == "bytes")
        #expect(story.daemon.standardError.contains("retention is no longer a setting, and 'lru'"))
    }

    @Test
    func `a file's values may be numbers, truth values and lists, each where it fits`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("c.json")
        try writeFile(
            file,
            #"{"allow-private":true,"slots":8,"connect-timeout":1.5,"bind":["127.0.0.1","::1"],"port":0}"#
                .utf8)
        let good = try sluice("check", "--config", file)
        #expect(good.status == 0 && good.stdout.contains("127.0.0.1:0, [::1]:0,"), "\(good.stderr)")
        try writeFile(file, #"{"port":{},"slots":[1],"bind":4,"policy":null}"#.utf8)
        let bad = try sluice("check", "--config", file)
        #expect(bad.status == 78)
        for name in ["port", "slots", "bind", "policy"] {
            #expect(bad.stderr.contains("'\(name)'"))
        }
        try writeFile(file, #"{"port":true,"early-connect":false,"dscp":"on"}"#.utf8)
        let truths = try sluice("check", "--config", file)
        #expect(truths.stderr.contains("must give 'port' a text or number"), "\(truths.stderr)")
        #expect(truths.stderr.contains("must give 'early-connect' a text or number"))
        let list = try sluice("check", environment: ["SLUICE_MOUNT=/aa/=http://x/,/bb/=http://y/"])
        #expect(list.stdout.contains("2 mounts"))
    }

    @Test
    func `hosts and web origins that no request can have are wrong settings`() throws {
        for (option, value) in [
            ("--allow-host", "http://127.0.0.1"), ("--host-name", "a b"), ("--cors-origin", "foo"),
            ("--only-origin", "http://127.0.0.1"),
        ] {
            let run = try sluice("check", option, value)
            #expect(run.status == 78 && run.stderr.contains("not '\(value)'"), "\(run.stderr)")
        }
        #expect(try sluice("check", "--cors-origin", "https://app.example/").status == 0)
    }

    @Test func `an access log that is a folder is a wrong setting`() throws {
        let folder = try TemporaryFolder()
        for command in ["check", "serve"] {
            let run = try sluice(
                command, "--port", "0", "--cache-dir", folder.file("cache"), "--access-log",
                folder.path)
            #expect(run.status == 78, "\(run)")
            #expect(run.stderr.contains("access-log \(folder.path) is a folder"), "\(run.stderr)")
        }
    }

    @Test
    func `a wrong switch in the environment is an error too`() throws {
        #expect(try sluice("check", environment: ["SLUICE_ALLOW_PRIVATE=perhaps"]).status == 78)
        let unlike = try sluice("check", environment: ["SLUICE_FOO=1"])
        #expect(unlike.stderr.contains("SLUICE_FOO names no setting\n"), "\(unlike.stderr)")
        #expect(try sluice("check", "--config", "/nowhere/at/all.json").status == 78)
    }
}
