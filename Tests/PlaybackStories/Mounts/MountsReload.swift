import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// A configuration that changes while the daemon runs, and many mounts.
extension Stories {
    @Suite(.tags(.crowded, .threads)) struct MountsReload {}
}

extension Stories.MountsReload {
    private func write(_ file: String, _ mounts: [String]) throws {
        let list = mounts.map { "\"\($0)\"" }.joined(separator: ",\n")
        try writeFile(file, "{\"mount\": [\(list)]}".utf8)
    }

    /// Repeats a request until the status is as expected, or the deadline has passed.
    private func status(
        _ player: ScriptedPlayer, _ path: String, becomes expected: Int
    ) throws -> Bool {
        eventually { (try? player.get(path).status) == expected }
    }

    @Test
    func `mounts follow the configuration file on SIGHUP, and no response is dropped`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        cdn.put("/one/a", Array("one".utf8))
        cdn.put("/two/a", Array("two".utf8))
        cdn.setBehaviour("rate=400000", for: "/bytes/1000000/slow.ts")
        let slow = "/old/1000000/slow.ts"
        try write(file, ["/x1/=\(cdn.url("/one/"))", "/old/=\(cdn.url("/bytes/"))"])
        let daemon = try Story.serve(folder.file("cache"), ["--config", file])
        let player = ScriptedPlayer(daemon.baseURL)
        #expect(try player.get("/x1/a").text == "one" && player.get("/x2/a").status == 404)
        let stream = try ScriptedPlayer(daemon.baseURL).open(slow)
        #expect(try stream.read(1000).count == 1000)
        try write(file, ["/x1/=\(cdn.url("/two/"))", "/x2/=\(cdn.url("/one/"))"])
        daemon.kill(SIGHUP)
        #expect(try status(player, "/x2/a", becomes: 200))
        #expect(try player.get("/x1/a").text == "two")
        #expect(try status(player, slow, becomes: 404))
        #expect(try stream.readRest().count == 999_000 && stream.broken == nil)
    }

    @Test
    func `a request that runs keeps the user information of a mount that is removed`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        let path = "/bytes/1000000/cut.ts"
        cdn.setBehaviour("trunc=400000&fails=1", for: path)
        cdn.hold(path, afterBytes: 1_000)
        try write(file, ["/adm/=http://ann:1@127.0.0.1:\(cdn.port)/bytes/"])
        let daemon = try Story.serve(folder.file("cache"), ["--config", file])
        let player = ScriptedPlayer(daemon.baseURL)
        let stream = try player.open("/adm/1000000/cut.ts")
        #expect(try stream.read(1_000).count == 1_000)
        try write(file, ["/new/=\(cdn.url("/bytes/"))"])
        daemon.kill(SIGHUP)
        #expect(try status(player, "/new/10/a.ts", becomes: 200))
        cdn.release(path)
        #expect(try stream.readRest().count == 999_000 && stream.broken == nil)
        let users = cdn.requests.filter { $0.path == path }.map { $0["Authorization"] }
        // "Basic " and the Base64 of ann:1
        #expect(users.count > 1 && users.allSatisfy { $0 == "Basic YW5uOjE=" })
    }

    @Test
    func `the header fields of a mount follow the configuration file on SIGHUP`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        cdn.put("/one/a", Array("one".utf8))
        cdn.setBehaviour("needheader=X-Api-Key:new&cc=max-age=100", for: "/one/a")
        func write(_ key: String) throws {
            let header = key.isEmpty ? "" : ", \"mount-header\": \"/x1/=X-Api-Key: \(key)\""
            try writeFile(file, "{\"mount\": \"/x1/=\(cdn.url("/one/"))\"\(header)}".utf8)
        }
        try write("old")
        let daemon = try Story.serve(folder.file("cache"), ["--config", file])
        let player = ScriptedPlayer(daemon.baseURL)
        #expect(try player.get("/x1/a").status == 403)
        for (key, expected) in [("new", 200), ("old", 403), ("new", 200), ("", 403)] {
            try write(key)
            daemon.kill(SIGHUP)
            #expect(try status(player, "/x1/a", becomes: expected), "'\(key)'")
        }
    }

    @Test
    func `a faulty configuration changes nothing, and the log names the error`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        cdn.put("/one/a", Array("one".utf8))
        try write(file, ["/x1/=\(cdn.url("/one/"))"])
        let daemon = try Story.serve(folder.file("cache"), ["--config", file])
        for text in ["{", "{\"mount\": [\"nonsense\"]}", "{\"mounts\": []}"] {
            try writeFile(file, text.utf8)
            let before = daemon.standardError.count
            daemon.kill(SIGHUP)
            #expect(eventually { daemon.standardError.count > before })
            #expect(daemon.standardError.contains("configuration not changed"))
            #expect(try ScriptedPlayer(daemon.baseURL).get("/x1/a").text == "one")
        }
    }

    @Test
    func `with a thousand mounts the longest matching path wins`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        var mounts = (0..<1000).map { "/site\($0)/=\(cdn.url("/s\($0)/"))" }
        mounts += ["/site7/deep/=\(cdn.url("/deep/"))", "/=\(cdn.url("/rest/"))"]
        try write(file, mounts)
        let daemon = try Story.serve(folder.file("cache"), ["--config", file])
        let places = [
            ("/site0/a", "/s0/a"), ("/site999/b/c", "/s999/b/c"), ("/site7/a", "/s7/a"),
            ("/site7/deep/a", "/deep/a"), ("/site7/deeper/a", "/s7/deeper/a"),
            ("/site1000/a", "/rest/site1000/a"), ("/", "/rest/"), ("/site7", "/rest/site7"),
        ]
        for (path, target) in places {
            _ = try ScriptedPlayer(daemon.baseURL).get(path)
            #expect(cdn.requests.last?.target == target, "\(path)")
        }
    }
}
