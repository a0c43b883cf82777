import ArgumentParser
import CommandSupport
import FoundationEssentials
import Glibc
import HTTP
import Numbers
import Posix
import Synchronization
import URISyntax

/// `sluice feed`: sends the daemon a list, and reports the viewer's position; lists and ends feeds.
struct FeedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed",
        abstract: "Prefetch the items of a feed before the viewer reaches them.",
        discussion: """
            FILE is a JSON order as PUT /api/feeds/<name> takes it, or a list of URLs, one a line. The viewer's \
            position is read from standard input, one line each: a position in the list (0 is the first), next, back, \
            state, or quit. `state` prints a table of the items being fetched, with --json the daemon's \
            answer. The feed ends with the input, or with a signal that ends the command, unless --stay is \
            given; end such a feed with --end. Invalid lines are reported on standard error and change nothing.
            """)

    @Argument(
        help: "The file with the list.",
        completion: .file())
    var file: String?

    @Option(help: "The feed's name at the daemon: letters, digits and -._~; default the file's.")
    var name: String?

    @Option(help: "Where the viewer starts: a place in a list of URLs; default 0.")
    var index: Int?

    @Option(help: "Maximum height of the picture, in lines; default as a player would choose.")
    var height: Int?

    @Option(
        help: "Which items of a list of URLs are prefetched: default, published or none.",
        completion: .list(["default", "published", "none"]))
    var scheme: String?

    @Flag(help: "Keep the feed at the daemon after the end of the input.")
    var stay = false

    @Flag(help: "List the feeds of the daemon.")
    var list = false

    @Option(
        name: .customLong("end"),
        help: ArgumentHelp("End a feed of the daemon.", valueName: "name"))
    var ended: String?

    @Flag(help: "Print the daemon's JSON for each state, or of --list and --end.")
    var json = false

    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard [file != nil, list, ended != nil].filter({ $0 }).count == 1 else {
            throw ValidationError("give a file with a list, or one of --list and --end")
        }
        if ended == "" { throw ValidationError("a feed is named as in --list") }
    }

    func run() throws {
        if list { return try printList() }
        if let ended { return try end(ended) }
        if let file { try prefetch(file) }
    }

    private func printList() throws {
        let text = try daemon.client().send("GET", Self.page)
        if json { return print(text, terminator: "") }
        let feeds: [FeedState] = try decodeJSON(text)
        if feeds.isEmpty { return print("no feeds") }
        for feed in feeds { print("\(feed.name): \(feed.summary)") }
    }

    private func end(_ name: String) throws {
        let text = try daemon.client().send("DELETE", Self.path(of: name))
        print(json ? text : "ended \(name)\n", terminator: "")
    }

    private static let page = "/api/feeds"

    private static func path(of name: String) -> String {
        "\(page)/\(PercentCoding.queryComponent(name))"
    }

    /// Orders a feed, and moves it as the input says until that ends.
    private func prefetch(_ file: String) throws {
        let order = try readOrder(file)
        let client = daemon.client()
        let feedName = self.feedName(of: file)
        let path = Self.path(of: feedName)
        let feed = OrderedFeed(client, path, stays: stay)
        Interruption.watch { feed.endSoon() }
        let state: FeedState = try decodeJSON(try feed.begin(order))
        print("feed \(feedName): \(state.entries) entries, at \(state.index)")
        for fault in state.faults {
            printError("sluice: entry \(fault.index) is left out: \(fault.reason)")
        }
        var place = state.index
        while let line = readLine() {
            let word = line.trimmed
            if word == "quit" { break }
            if word.isEmpty { continue }
            if word == "state" {
                let text = try client.send("GET", path)
                if json {
                    print(text, terminator: "")
                } else {
                    print(try (decodeJSON(text) as FeedState).table)
                }
                fflush(nil)
                continue
            }
            guard let wanted = Self.place(word, from: place) else {
                printError("sluice: '\(word)' is not a position, next, back, state or quit")
                continue
            }
            switch client.ask("POST", "\(path)/position?index=\(wanted)") {
            case .answered:
                place = wanted
                print("at \(place)")
            case .refused(let failure):
                printError(failure.message)
                throw failure.code
            case .failed(let failure): printError(failure.message)
            }
            fflush(nil)
        }
        try feed.end()
    }

    /// A feed of the daemon that ends with this command, unless it stays.
    private final class OrderedFeed: Sendable {
        private let client: AdminClient
        private let path: String
        private let stays: Bool
        /// True while the daemon has a feed that is to be ended; held during requests, so that a
        /// signal ends what was just ordered, once.
        private let isToEnd = Mutex(false)

        init(_ client: AdminClient, _ path: String, stays: Bool) {
            self.client = client
            self.path = path
            self.stays = stays
        }

        /// Orders the feed and returns the daemon's answer; blocks.
        func begin(_ order: [UInt8]) throws -> String {
            try isToEnd.withLock { isToEnd in
                let answer = try client.send("PUT", path, sending: order)
                isToEnd = !stays
                return answer
            }
        }

        /// Ends the feed before a signal ends the command.
        ///
        /// Blocks until a request that is in flight, which may be the order, is answered, and until
        /// the daemon has ended the feed; for some seconds each at most.
        func endSoon() {
            var client = client
            client.patience = Self.patience
            let deadline = Monotonic.now() + .seconds(Int64(Self.patience))
            while !endUnlessBusy(client), Monotonic.now() < deadline { usleep(10_000) }
        }

        /// In seconds; supervisors kill what has not ended ten seconds after a signal.
        private static let patience = 4

        /// Returns false, and has no effect, during a request.
        private func endUnlessBusy(_ client: AdminClient) -> Bool {
            let wasFree: Bool? = isToEnd.withLockIfAvailable { isToEnd in
                if isToEnd { _ = client.ask("DELETE", path) }
                isToEnd = false
                return true
            }
            return wasFree ?? false
        }

        /// Ends the feed; blocks.
        func end() throws {
            try isToEnd.withLock { isToEnd in
                guard isToEnd else { return }
                isToEnd = false
                _ = try client.send("DELETE", path)
            }
        }
    }

    private static func place(_ word: String, from place: Int) -> Int? {
        switch word {
        case "next": place + 1
        case "back": place - 1
        default: ExternalNumber.integer(word, in: 0...ExternalNumber.largest)
        }
    }

    private func feedName(of file: String) -> String {
        if let name { return name }
        let last = file.split(separator: "/").last.map(String.init) ?? file
        let allowed = last.prefix { $0 != "." }.utf8.filter {
            PercentCoding.Allowed.unreserved.contains($0)
        }
        let made = String(decoding: allowed.prefix(64), as: UTF8.self)
        return made.isEmpty ? "feed" : made
    }

    // MARK: The list

    private func readOrder(_ file: String) throws -> [UInt8] {
        let read: [UInt8]
        do throws(InputFile.Fault) {
            read = try InputFile.read(file, atMost: 16 << 20, isPipeAllowed: true)
        } catch {
            printError("sluice: \(error)")
            throw ExitCode.failure
        }
        let bytes = InputFile.withoutMark(read)
        let first = bytes.first { !$0.isBlank }
        if first == 0x7B {
            guard index == nil, height == nil, scheme == nil else {
                throw ValidationError("--index, --height and --scheme are for lists of URLs")
            }
            return bytes
        }
        // By bytes: to a String, CR LF is one character, which is not a line feed.
        let lines = bytes.split { $0 == 0x0A || $0 == 0x0D }
            .map { String(decoding: $0, as: UTF8.self).trimmed }
            .filter { !$0.isEmpty && !$0.hasPrefix("#") }
        let order = Order(entries: lines, index: index, height: height, scheme: scheme)
        return [UInt8](try JSONEncoder().encode(order))
    }

    private struct Order: Encodable {
        let entries: [String]
        let index: Int?
        let height: Int?
        let scheme: String?
    }

    // MARK: The daemon

    private struct FeedState: Decodable {
        struct Fault: Decodable {
            let index: Int
            let reason: String
        }

        struct Item: Decodable {
            let index: Int
            let rank: Int
            let state: String
            let bytes: Int64
            let seconds: Double
            let height: Int?
            let reason: String?
        }

        let name: String
        let entries: Int
        let index: Int
        let direction: String
        let window: [Item]
        let fetches: Int
        let bytesFetched: Int64
        let bytesWasted: Int64
        let faults: [Fault]
        let paused: String?

        /// The state as text: a line for each item in the window, and one for the feed.
        var table: String {
            var table = TextTable(rightAligned: [0, 2, 3, 4])
            table.add("item", "state", "fetched", "plays", "height", "")
            for item in window {
                let here = item.rank == 0 ? "the viewer is here" : nil
                table.add(
                    "\(item.index)", item.state, OutputFormat.size(item.bytes),
                    item.seconds > 0 ? OutputFormat.length(item.seconds) : "",
                    item.height.map { "\($0)" } ?? "",
                    [here, item.reason].compactMap { $0 }.joined(separator: "; "))
            }
            return [table.text, figures, pause].compactMap { $0 }.joined(separator: "\n")
        }

        /// The feed in one line.
        var summary: String { [figures, pause].compactMap { $0 }.joined(separator: "; ") }

        private var figures: String {
            "at \(index) of \(entries), going \(direction); \(fetches) fetches, "
                + "\(OutputFormat.size(bytesFetched)) fetched, \(OutputFormat.size(bytesWasted)) of it wasted"
        }

        private var pause: String? { paused.map { "paused: \($0)" } }
    }
}

extension String {
    /// The text without surrounding blanks.
    fileprivate var trimmed: String {
        let utf8 = Array(utf8)
        guard let first = utf8.firstIndex(where: { !$0.isBlank }),
            let last = utf8.lastIndex(where: { !$0.isBlank })
        else { return "" }
        return String(decoding: utf8[first...last], as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self <= 0x20 }
}
