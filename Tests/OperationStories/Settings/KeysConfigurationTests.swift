import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The settings of origins: the object in the file, the flags, and errors in them.
extension Stories {
    @Suite(.tags(.crowded)) struct KeysConfigurationTests {}
}

extension Stories.KeysConfigurationTests {
    /// The output of `sluice check` for a configuration file.
    private func check(_ json: String, _ arguments: [String] = []) throws -> (Int32, String) {
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        try writeFile(file, Array(json.utf8))
        let run = try Tool.run(
            [try DaemonProcess.builtBinary(), "check", "--config", file] + arguments)
        return (run.status, String(decoding: run.output + run.errors, as: UTF8.self))
    }

    @Test func `origins of the file have policy, mode and rules`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        let story = try Story()
        let json = """
            {"origins": {"127.0.0.1": {"rules": ["drop s", "sort"], "policy": "media"},
             "*.example.com": {"keys": "off", "policy": "rfc", "allow-private": false}}}
            """
        try writeFile(file, Array(json.utf8))
        let daemon = try story.succeed(["--config", file])
        let path = segment("a", 20_000)
        for number in 1...3 {
            let url = story.cdn.url("\(path)?s=\(number)")
            #expect(try ScriptedPlayer(daemon.baseURL).get("/" + url).status == 200)
        }
        #expect(story.cdn.requestCount(path) == 1)
        let keys = try ScriptedPlayer(daemon.baseURL).get("/api/keys").text
        #expect(keys.contains("\"pattern\":\"127.0.0.1\"") && keys.contains("\"drop s\""))
        daemon.kill(SIGTERM)
        _ = try daemon.waitForExit()
    }

    @Test func `rules are read again on SIGHUP, and requests keep their answers`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        let story = try Story()
        try writeFile(file, Array("{}".utf8))
        let daemon = try story.succeed(["--config", file])
        let player = ScriptedPlayer(daemon.baseURL)
        let path = segment("a", 20_000)
        func play(_ number: Int) throws {
            #expect(try player.get("/" + story.cdn.url("\(path)?s=\(number)")).status == 200)
        }
        for number in 1...2 { try play(number) }
        #expect(story.cdn.requestCount(path) == 2)
        try writeFile(file, Array(#"{"origins": {"127.0.0.1": {"rules": ["drop s"]}}}"#.utf8))
        daemon.kill(SIGHUP)
        // The rule's text alone also occurs in the findings.
        let isRead = try eventually {
            try player.get("/api/keys").text.contains("\"pattern\":\"127.0.0.1\"")
        }
        #expect(isRead)
        for number in 1...4 { try play(number) }
        #expect(story.cdn.requestCount(path) == 3)
        daemon.kill(SIGTERM)
        _ = try daemon.waitForExit()
    }

    @Test(arguments: [
        (#"{"origins": {"a": {"policy": "fast"}}}"#, "policy of the origin a"),
        (#"{"origins": {"a": {"keys": "all"}}}"#, "keys of the origin a"),
        (#"{"origins": {"a": {"rules": ["shuffle"]}}}"#, "'shuffle' is no key rule"),
        (#"{"origins": {"a": {"colour": "red"}}}"#, "'colour' is wrong"),
        (#"{"origins": {"a*": {"allow-private": true}}}"#, "full name of a host"),
        (#"{"origins": {"a": {"limit": 0}}}"#, "limit of the origin a is a number of transfers"),
        (#"{"origins": {"a/b": {"policy": "rfc"}}}"#, "an origin is a host"),
        (#"{"origins": ["a"]}"#, "must give 'origins' an object of objects"),
        (#"{"keys": "all"}"#, "keys are off, standard or auto"),
    ])
    func `an error in an origin's settings is named`(json: String, message: String) throws {
        let (status, text) = try check(json)
        #expect(status == 78)
        #expect(text.contains(message))
    }

    @Test(arguments: [
        (["--key-rule", "a"], "written HOST=RULE"), (["--key-rule", "a=drop"], "drop NAME..."),
        (["--origin-policy", "a"], "written HOST=POLICY"),
    ])
    func `an invalid flag is reported with its valid form`(flags: [String], message: String)
        throws
    {
        let (status, text) = try check("{}", flags)
        #expect(status == 78)
        #expect(text.contains(message))
    }

    @Test func `an origin that is allowed by name may have a private address`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        let story = try Story()
        let json = #"{"origins": {"127.0.0.1": {"allow-private": true}}}"#
        try writeFile(file, Array(json.utf8))
        story.stop()
        let daemon = try DaemonProcess([
            "serve", "--port", "0", "--cache-dir", story.cacheFolder, "--config", file,
        ])
        let answer = try ScriptedPlayer(daemon.baseURL).get(
            "/" + story.cdn.url(segment("a", 1_000)))
        #expect(answer.status == 200)
        daemon.kill(SIGTERM)
        _ = try daemon.waitForExit()
    }
}
