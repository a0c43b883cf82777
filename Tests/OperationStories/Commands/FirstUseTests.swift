import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The first day with the program: misspelt, misplaced or misunderstood input.
extension Stories {
    @Suite(.tags(.timed)) struct FirstUseTests {}
}

// MARK: Settings

extension Stories.FirstUseTests {
    @Test
    func `a misspelt variable or key is an error that names the right one`() throws {
        let wrong = try sluice("check", environment: ["SLUICE_CACH_SIZE=1GB"])
        #expect(wrong.status == 78)
        #expect(wrong.stderr.contains("SLUICE_CACH_SIZE names no setting"))
        #expect(wrong.stderr.contains("did you mean SLUICE_CACHE_SIZE?"))
        let serve = try sluice("serve", "--port", "0", environment: ["SLUICE_PROT=1"])
        #expect(serve.status == 78 && serve.stderr.contains("SLUICE_PORT"))
        let good = try sluice(
            "check", environment: ["SLUICE_CACHE_SIZE=1GB", "SLUICE_DAEMON=http://h"])
        #expect(good.status == 0, "\(good.stderr)")
        // Commas separate values, and belong to some.
        let resolve = "SLUICE_RESOLVE=a:443=192.0.2.1,192.0.2.2,b:443=192.0.2.3"
        #expect(try sluice("check", environment: [resolve]).status == 0)
        let folder = try TemporaryFolder()
        try writeFile(folder.file("c.json"), #"{"cache-sise":"1GB"}"#.utf8)
        let file = try sluice("check", "--config", folder.file("c.json"))
        #expect(file.status == 78 && file.stderr.contains("did you mean 'cache-size'?"))
    }

    @Test(arguments: [
        ("{\"slots\": 8\n \"port\": 9000}", "a comma or } is missing, in line 2, column 2"),
        ("{\n // mine\n}", "in line 2, column 2"), ("{'port': 1}", "in line 1, column 2"),
        (#"{"token": 12345678901234567890123}"#, "must give 'token' a text"),
        (#"{"cache-dir": "~/sl"}"#, "cache-dir begins with ~, which only a shell replaces"),
        ("", "the text ends where a value should be, in line 1"), ("[]", "it is another value"),
    ])
    func `a mistake in the file is answered with its line, or with the setting`(
        _ text: String, _ words: String
    ) throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.file("c.json"), text.utf8)
        let result = try sluice("check", "--config", folder.file("c.json"))
        #expect(result.status == 78, "\(result.stdout)")
        #expect(result.stderr.contains(words), "\(result.stderr)")
    }

    @Test(arguments: [
        (["serve", "--cache", "/tmp/x"], "cache", "cache-dir"),
        (["check", "--cach-size", "1GB"], "cach-size", "cache-size"),
        (["tls", "init", "--fold", "tv.example"], "fold", "folder"),
        (["download", "http://h/a.m3u8", "--vari", "best"], "vari", "variant"),
    ])
    func `an unknown option is answered with the one that it begins, or that is near`(
        _ arguments: [String], _ unknown: String, _ meant: String
    ) throws {
        let result = try Tool.run([try DaemonProcess.builtBinary()] + arguments)
        #expect(result.status == 64 && result.stderr.contains("\nUsage: sluice "))
        let text = "Error: Unknown option '--\(unknown)'. Did you mean '--\(meant)'?\n"
        #expect(result.stderr.hasPrefix(text), "\(result.stderr)")
    }

    @Test(arguments: [
        (["srve"], "srve", "did you mean 'serve'?"),
        (["srve", "--port", "0"], "srve", "did you mean 'serve'?"),
        (["cluster", "ky"], "ky", "did you mean 'key'?"),
        (["play"], "play", "`sluice help` lists all"),
    ])
    func `a word that is no command is called that, and the nearest is named`(
        _ arguments: [String], _ word: String, _ advice: String
    ) throws {
        let result = try Tool.run([try DaemonProcess.builtBinary()] + arguments)
        #expect(result.status == 64 && result.stdout.isEmpty, "\(result)")
        #expect(
            result.stderr == "sluice: there is no command '\(word)'; \(advice)\n",
            "\(result.stderr)")
    }

    @Test(arguments: ["?token=correct-horse", "/?x", "/#top"])
    func `a base URL of the daemon with a query or a fragment is refused, without its value`(
        _ end: String
    ) throws {
        for command in ["stats", "ls"] {
            let result = try sluice(command, "--daemon", "http://127.0.0.1:1\(end)")
            #expect(result.status == 64)
            #expect(result.stderr.contains("--daemon is the daemon's base URL"), "\(result)")
            #expect(!result.stderr.contains("correct-horse"), "\(result.stderr)")
        }
        #expect(try sluice("ls", "--daemon", "127.0.0.1:1").status == 5)
    }

    @Test
    func `an option of record without its hyphens is no URL without a duration`() throws {
        for words in [["list"], ["stop", "4f"], ["list", "--for", "2h"]] {
            let result = try Tool.run([try DaemonProcess.builtBinary(), "record"] + words)
            #expect(result.status == 64)
            let advice = "'\(words[0])' is no URL; did you mean --\(words[0])?"
            #expect(result.stderr.contains(advice), "\(result.stderr)")
        }
    }

    @Test
    func `commands take the daemon and its token from the environment, and a 401 says so`() throws {
        let story = try Story(["--token", "correct-horse"])
        let daemon = "SLUICE_DAEMON=\(story.daemon.baseURL)"
        for command in ["stats", "ls", "df"] {
            let refused = try sluice(command, environment: [daemon])
            #expect(refused.status == 1 && refused.stderr.contains("--token or SLUICE_TOKEN"))
            let asked = try sluice(command, environment: [daemon, "SLUICE_TOKEN=correct-horse"])
            #expect(asked.status == 0, "\(asked.stderr)")
        }
        let url = try sluice(
            "url", "http://h/a.m3u8", environment: [daemon, "SLUICE_TOKEN=correct-horse"]
        ).stdout
        #expect(url.hasPrefix(story.daemon.baseURL) && url.contains("token=correct-horse"))
    }

    @Test
    func `a folder that is named is opened whatever daemon the environment names`() throws {
        let story = try Story()
        let path = segment("a", 1_000)
        _ = try story.get(path)
        let other = try Story()
        _ = try other.get(segment("b", 1_000))
        other.stop()
        let daemon = "SLUICE_DAEMON=\(story.daemon.baseURL)"
        let done = try sluice("clear", "--cache-dir", other.cacheFolder, environment: [daemon])
        #expect(done.status == 0 && done.stdout.hasPrefix("removed 1 object"), "\(done)")
        #expect(try story.get(path)["Cache-Status"]?.contains("hit") == true)
        let file = try TemporaryFolder()
        try writeFile(
            file.file("c.json"), "{\"cache-dir\":\"\(other.cacheFolder)\",\"port\":1}".utf8)
        let configured = try sluice(
            "clear", "--config", file.file("c.json"), environment: [daemon])
        #expect(configured.stdout.hasPrefix("removed 0 objects"), "\(configured)")
        #expect(try story.get(path)["Cache-Status"]?.contains("hit") == true)
    }

    @Test
    func `commands ask the daemon of the settings, whose other files may be the daemon's alone`()
        throws
    {
        let story = try Story()
        let port = story.daemon.baseURL.split(separator: ":").last.map(String.init) ?? ""
        let folder = try TemporaryFolder()
        let file = folder.file("c.json")
        // As for a user who may not write it.
        let log = folder.file("none/access.log")
        try writeFile(file, "{\"port\":\(port),\"access-log\":\"\(log)\"}".utf8)
        func run(_ arguments: [String], _ environment: [String] = []) throws -> Tool.Result {
            try Tool.run(["env"] + environment + [DaemonProcess.builtBinary()] + arguments)
        }
        for variable in ["SLUICE_CONFIG=\(file)", "SLUICE_PORT=\(port)"] {
            for command in ["ls", "stats"] {
                let asked = try run([command], [variable])
                #expect(asked.status == 0, "\(variable): \(asked)")
                // Nobody else's variables matter.
                let beside = try run([command], [variable, "SLUICE_FOO=1"])
                #expect(beside.status == 0, "\(variable): \(beside)")
            }
        }
        // No other daemon is asked instead.
        for command in ["ls", "stats"] {
            let lost = try run([command], ["SLUICE_CONFIG=\(folder.file("none.json"))"])
            #expect(lost.status == 78 && lost.stderr.contains("--daemon URL"), "\(lost)")
        }
        let named = try run(
            ["stats", "--daemon", story.daemon.baseURL],
            ["SLUICE_CONFIG=\(folder.file("none.json"))"])
        #expect(named.status == 0 && named.stderr.isEmpty, "\(named)")
        let listed = try run(["ls", "--config", file])
        #expect(listed.status == 0, "\(listed)")
        let doctor = try run(["doctor", "--config", file, "--cache-dir", story.cacheFolder])
        #expect(doctor.stdout.contains("a start by this user would fail"), "\(doctor)")
        #expect(doctor.stdout.contains("a daemon of version"), "\(doctor)")
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `root opens no store of another user, whose daemon could not start then`() throws {
        let story = try Story()
        story.stop()
        chown(story.cacheFolder + "/objects", 1_234, 1_234)
        let refused = try sluice("df", "--cache-dir", story.cacheFolder)
        #expect(refused.status == 4 && refused.stderr.contains("belongs to the user 1234"))
        #expect(refused.stderr.contains("sudo -u #1234"))
    }

    @Test
    func `a setting that a reload cannot change is named as one that needs a restart`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("c.json")
        try writeFile(file, #"{"slots":8,"policy":"media"}"#.utf8)
        let story = try Story(["--config", file])
        try writeFile(file, #"{"slots":9,"max-connections":70,"policy":"rfc"}"#.utf8)
        story.daemon.kill(SIGHUP)
        #expect(
            eventually {
                story.daemon.standardError.contains("need a restart: max-connections, slots\n")
            }, "\(story.daemon.standardError)")
    }

    @Test
    func `rules of several patterns add up for a host`() throws {
        let story = try Story(["--key-rule", "*=drop sess", "--key-rule", "127.0.0.1=drop other"])
        let path = segment("a", 1_000)
        _ = try story.get("\(path)?id=1&sess=1&other=1")
        _ = try story.get("\(path)?id=1&sess=2&other=2")
        #expect(story.cdn.requestCount() == 1)
        _ = try story.get("\(path)?id=2&sess=2&other=2")
        #expect(story.cdn.requestCount() == 2)
    }
}

// MARK: URLs

extension Stories.FirstUseTests {
    @Test
    func `a path that is nearly an entry gets a suggestion`() throws {
        let story = try Story()
        let base = story.daemon.baseURL
        let meant = [
            "/cdn.example.com/x.m3u8": "\(base)/https://cdn.example.com/x.m3u8?",
            "//http://a.example/b.m3u8?key=hidden": "\(base)/http://a.example/b.m3u8, followed",
            "/cdn.example.com:8443/v/x.m3u8": "\(base)/https://cdn.example.com:8443/v/x.m3u8?",
        ]
        for (path, text) in meant {
            let answer = try story.player().get(base + path)
            #expect(answer.status == 404 && answer.text.contains("did you mean \(text)"))
            #expect(!answer.text.contains("hidden"))
            #expect(answer["Content-Type"]?.hasPrefix("text/plain") == true)
        }
        for path in ["/favicon.ico", "/index.html", "/a/b", "/user:pw@host.example/x"] {
            #expect(try story.player().get(base + path).text.contains("see / for what is"))
        }
    }

    @Test
    func `url prints what works for a URL with blanks and other letters`() throws {
        let story = try Story()
        story.cdn.put("/a b.ts", Array("bytes".utf8))
        let printed = try sluice(
            "url", story.cdn.url("/a b.ts") + "?q=\u{e9}|", "--daemon", story.daemon.baseURL
        ).stdout
        #expect(printed.hasSuffix("/a%20b.ts?q=%C3%A9%7C\n"), "\(printed)")
        let answer = try story.player().get(String(printed.dropLast()))
        #expect(answer.text == "bytes")
        let escaped = try sluice("url", "https://h/a%20b+c.m3u8?x=[1]&y=%2F").stdout
        #expect(escaped.hasSuffix("/https://h/a%20b+c.m3u8?x=[1]&y=%2F\n"))
    }
}

// MARK: Files

extension Stories.FirstUseTests {
    @Test(arguments: [["simulate"], ["feed"], ["check", "--config"], ["check", "--ca-file"]])
    func `devices, folders and endless files are refused`(_ command: [String]) throws {
        let folder = try TemporaryFolder()
        let program =
            try command == ["simulate"]
            ? Tool.built("sluice-lab") : DaemonProcess.builtBinary()
        let huge = folder.file("huge")
        try writeFile(huge, "".utf8)
        #expect(truncate(huge, 4 << 30) == 0)
        for (path, words) in [
            ("/dev/zero", "is a device"), (folder.path, "is a folder"),
            (huge, "the limit"),
            (folder.file("none"), "cannot be read"),
        ] {
            // With a memory limit, under which reading it completely would fail.
            let result = try Tool.run(
                ["prlimit", "--as=4294967296", program] + command + [path], within: .seconds(20))
            #expect(result.status != 0 && result.status < 128, "\(result.status)")
            #expect(result.stderr.contains(words), "\(result.stderr)")
        }
    }
}

// MARK: Listings

extension Stories.FirstUseTests {
    @Test
    func `titles with the same name are distinguishable, and a listing can be shortened`() throws {
        let story = try Story()
        for path in ["/one/aes/master.m3u8", "/two/aes/master.m3u8"] {
            let last = path.dropLast(11)
            story.cdn.put("\(last)a.ts", Array("bytes".utf8))
            story.cdn.put(path, text: vod(["a.ts"]))
            _ = try story.get(path)
            _ = try story.get("\(last)a.ts")
        }
        let daemon = story.daemon.baseURL
        let all = try sluice("ls", "--daemon", daemon).stdout
        // Two lines that are equal up to the sizes would be distinguishable only by the number.
        let rows = all.split(separator: "\n").dropFirst()
        let names = rows.filter { $0.contains(" vod ") }.map {
            $0.split(separator: " ").dropFirst().joined(separator: " ").components(before: " vod")
        }
        #expect(names.count == 2 && Set(names).count == 2, "\(all)")
        let json = try sluice("ls", "--json", "--match", "ONE/", "--daemon", daemon)
        let whole = try sluice("ls", "--json", "--daemon", daemon).stdout
        #expect(json.status == 0 && json.stdout.contains("/one/") && whole.contains("/two/"))
        #expect(!json.stdout.contains("/two/") && json.stdout.hasPrefix("{\"titles\":[{"))
        let none = try sluice("ls", "--json", "--match", "nothing", "--daemon", daemon).stdout
        #expect(none == "{\"titles\":[]}\n")
        let urls = try sluice("ls", "--urls", "--match", "ONE/", "--daemon", daemon).stdout
        #expect(urls.contains(story.cdn.url("/one/aes/master.m3u8")), "\(urls)")
        #expect(!urls.contains("/two/"))
        let first = try sluice("ls", "--urls", "--limit", "1", "--daemon", daemon).stdout
        #expect(first.split(separator: "\n").count { $0.contains("http://") } == 1, "\(first)")
        #expect(try sluice("ls", "--limit", "0").status == 64)
    }

    @Test
    func `stats shows the share of requests and bytes that came from the store`() throws {
        let story = try Story()
        let path = segment("a", 10_000)
        for _ in 0..<4 { _ = try story.get(path) }
        #expect(
            try eventually {
                let lines = try sluice("stats", "--daemon", story.daemon.baseURL).stdout
                return lines.contains("\nhit_ratio 0.75\n")
                    && lines.contains("\nbyte_hit_ratio 0.75\n")
            })
    }

    @Test
    func `the help of serve shows its options in groups, with an example`() throws {
        let help = try sluice("serve", "--help").stdout
        for title in [
            "LISTENING:", "CACHE:", "ORIGINS AND MOUNTS:", "PLAYERS:", "Example: sluice serve",
        ] {
            #expect(help.contains(title), "\(title)")
        }
    }
}

extension String {
    /// The text before the first occurrence of another.
    fileprivate func components(before mark: String) -> String {
        firstRange(of: mark).map { String(self[..<$0.lowerBound]) } ?? self
    }
}
