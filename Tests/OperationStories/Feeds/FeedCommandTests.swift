import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// `sluice feed`: feeds from a file, with the viewer's position from standard input.
extension Stories {
    @Suite(.tags(.timed)) struct FeedCommandTests {
        /// Runs the command on a list of URLs with these lines as input.
        private func run(
            _ feed: ShownFeed, _ arguments: [String] = [], input: [String], list: String? = nil
        ) throws -> Tool.Result {
            let folder = try TemporaryFolder()
            let urls = (0..<feed.items).map { feed.story.cdn.url(feed.entry($0)) }
            let file = folder.file("f.txt")
            try writeFile(file, Array((list ?? urls.joined(separator: "\n")).utf8))
            let lines = folder.file("input")
            try writeFile(lines, Array(input.map { $0 + "\n" }.joined().utf8))
            let command = [try DaemonProcess.builtBinary(), "feed", file] + arguments
            let all = command + ["--daemon", feed.story.daemon.baseURL]
            return try Tool.run(["sh", "-c", "exec \"$@\" < \"$0\"", lines] + all)
        }

        @Test func `positions from standard input move the feed`() throws {
            let feed = try ShownFeed(items: 8)
            let result = try run(feed, ["--stay"], input: ["next", "5", "back", "state"])
            #expect(result.status == 0)
            #expect(result.stdout.contains("feed f: 8 entries, at 0\nat 1\nat 5\nat 4\n"))
            #expect(try feed.settles(4, "whole"))
        }

        @Test(arguments: ["\r\n", "\r", "\n"])
        func `a list has the line ends of any system, and may begin with a byte order mark`(
            _ lineEnd: String
        ) throws {
            let feed = try ShownFeed(items: 3)
            let urls = (0..<3).map { feed.story.cdn.url(feed.entry($0)) + lineEnd }
            let list = "\u{FEFF}# items\(lineEnd)" + urls.joined()
            let result = try run(feed, ["--stay"], input: ["1"], list: list)
            #expect(result.stdout.contains("feed f: 3 entries, at 0\nat 1\n"), "\(result)")
            #expect(result.stderr == "")
            #expect(try feed.settles(1, "whole"))
        }

        @Test func `an order in JSON may begin with a byte order mark`() throws {
            let feed = try ShownFeed(items: 1)
            let order = #"{"entries":["\#(feed.story.cdn.url(feed.entry(0)))"]}"#
            let result = try run(feed, input: [], list: "\u{FEFF}" + order)
            #expect(result.stdout.contains("feed f: 1 entries"), "\(result)")
        }

        @Test func `a state is a table for people, and JSON for machines`() throws {
            let feed = try ShownFeed(items: 3)
            let table = try run(feed, input: ["1", "state"]).stdout
            #expect(table.contains("item") && table.contains("the viewer is here"))
            #expect(table.contains("at 1 of 3, going forward") && !table.contains("{"))
            let json = try run(feed, ["--json"], input: ["1", "state"]).stdout
            #expect(json.contains("\"entries\":3"))
        }

        @Test func `the feed ends with its input`() throws {
            let feed = try ShownFeed(items: 3)
            #expect(try run(feed, input: ["next"]).status == 0)
            #expect(try feed.send("GET", "").status == 404)
        }

        @Test func `feeds that stay are listed, and end by name`() throws {
            let feed = try ShownFeed(items: 3)
            func command(_ arguments: String...) throws -> Tool.Result {
                let program = [try DaemonProcess.builtBinary(), "feed"] + arguments
                return try Tool.run(program + ["--daemon", feed.story.daemon.baseURL])
            }
            #expect(try run(feed, ["--stay", "--name", "kept"], input: ["1"]).status == 0)
            let listed = try command("--list").stdout
            #expect(listed.contains("kept: at 1 of 3, going forward"), "\(listed)")
            #expect(try command("--list", "--json").stdout.contains("\"name\":\"kept\""))
            #expect(try command("--end", "kept").stdout == "ended kept\n")
            let again = try command("--end", "kept")
            #expect(again.status == 1 && again.stderr.contains("there is no feed kept"))
            #expect(try !command("--list").stdout.contains("kept"))
            for wrong in [["--list", "--end", "kept"], ["f.txt", "--list"], []] {
                let program = [try DaemonProcess.builtBinary(), "feed"] + wrong
                #expect(try Tool.run(program).status == 64, "\(wrong)")
            }
        }

        @Test(arguments: [SIGINT, SIGTERM])
        func `a signal that ends the command ends the feed`(_ number: CInt) throws {
            let feed = try ShownFeed(items: 3)
            let folder = try TemporaryFolder()
            let urls = (0..<feed.items).map { feed.story.cdn.url(feed.entry($0)) }
            try writeFile(folder.file("f.txt"), urls.joined(separator: "\n").utf8)
            // An input that does not end.
            let input = folder.file("input")
            #expect(mkfifo(input, 0o600) == 0)
            let writer = open(input, O_RDWR | O_CLOEXEC)
            defer { close(writer) }
            let command = try ChildProcess([
                "sh", "-c", "exec \"$@\" < \"$0\"", input, DaemonProcess.builtBinary(), "feed",
                folder.file("f.txt"), "--daemon", feed.story.daemon.baseURL,
            ])
            #expect(try eventually { try feed.send("GET", "").status == 200 })
            command.kill(number)
            #expect(command.waitForExit() == .signal(number))
            #expect(try feed.send("GET", "").status == 404)
        }

        @Test func `invalid lines are reported and change nothing`() throws {
            let feed = try ShownFeed(items: 3)
            let result = try run(feed, input: ["up", "99", "back", "2"])
            #expect(result.status == 0)
            #expect(result.stdout.hasSuffix("at 2\n"))
            #expect(result.stderr.contains("'up'") && result.stderr.contains("0...2"))
        }

        @Test func `a file that is not a list ends the command`() throws {
            let feed = try ShownFeed(items: 1)
            #expect(try run(feed, input: [], list: "{").status == 1)
            #expect(try run(feed, input: [], list: "").status == 1)
            #expect(try run(feed, ["--index", "7"], input: []).stderr.contains("index"))
        }
    }
}
