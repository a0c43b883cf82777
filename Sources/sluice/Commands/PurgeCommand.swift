import ArgumentParser
import CommandSupport
import Glibc
import HTTP

/// `sluice purge` and `sluice clear`: remove stored objects.
struct PurgeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge",
        abstract: "Remove stored objects by URL, title, host, prefix or time since last use.",
        discussion: """
            Exactly one of URL, --title, --host, --prefix and --older-than selects what is removed. A URL or a \
            title is removed even if it is pinned, a title without what another pinned title shares; by host, \
            prefix or age pinned titles are spared. Pins stay: content fetched again for a pinned title is kept. \
            Active players continue. A purge that the end of the daemon interrupts is continued by the next one.
            """)

    @Argument(help: "The origin's URL, or the daemon's link for it.")
    var url: String?

    @Option(
        help: ArgumentHelp(
            "Everything fetched for a title: its number in `sluice ls`, or its entry URL.",
            valueName: "title"))
    var title: String?

    @Option(
        help: ArgumentHelp(
            "Everything from a host; with a port or a scheme (http://host:port), only from there.",
            valueName: "host[:port]")
    )
    var host: String?

    @Option(
        help: ArgumentHelp(
            "Everything at a URL, with any query, and below it: http://h/show7 also means http://h/show7/..., not http://h/show70.",
            valueName: "URL")
    )
    var prefix: String?

    @Option(
        help: ArgumentHelp(
            "Everything unused for this time: an integer with suffix s, m, h, d or w.",
            valueName: "duration"))
    var olderThan: String?

    @Flag(help: "Print the numbers of objects and bytes as JSON.")
    var json = false

    @OptionGroup var store: StoreOptions

    func validate() throws {
        guard [url, title, host, prefix, olderThan].filter({ $0 != nil }).count == 1 else {
            throw ValidationError(
                "give exactly one of URL, --title, --host, --prefix and --older-than")
        }
    }

    func run() throws {
        let given = [
            ("url", url), ("title", title), ("host", host), ("prefix", prefix),
            ("older-than", olderThan),
        ]
        let query = daemonQuery(given.compactMap { name, value in value.map { (name, $0) } })
        try store.withChannel { channel in
            var text = try channel.send(.post, "/api/purge?\(query)")
            var done: Removed = try decodeJSON(text)
            let note = done.note
            while done.state == "running" {
                show(
                    "removed \(done.removed) objects so far; the daemon continues if this command is interrupted"
                )
                usleep(200_000)
                text = try channel.progress(
                    "/api/purge",
                    lost: "it removes what was left: run the purge again to see that none is")
                done = try decodeJSON(text)
            }
            endProgress()
            print(json ? text : done.line, terminator: "")
            if let note, !json { print(note) }
        }
    }
}

struct ClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all stored objects except those of pinned titles.",
        discussion: """
            Everything is gone for players immediately; the files are deleted in the background, by the daemon if \
            one runs, and after its next start if it ends first. With --pinned the content of pinned titles is \
            removed too. Their pins stay: content fetched again for a pinned title is kept.
            """)

    @Flag(help: "Remove objects of pinned titles too.")
    var pinned = false

    @Flag(help: "Print the numbers of objects and bytes as JSON.")
    var json = false

    @OptionGroup var store: StoreOptions

    func run() throws {
        try store.withChannel { channel in
            let text = try channel.send(.post, pinned ? "/api/clear?pinned=true" : "/api/clear")
            let done: Removed = try decodeJSON(text)
            print(json ? text : done.line, terminator: "")
            try waitForFiles(channel)
            guard !pinned, !json else { return }
            let kept = done.pinnedTitlesKept ?? 0
            guard kept > 0 else { return }
            let titles = kept == 1 ? "1 pinned title is" : "\(kept) pinned titles are"
            print("\(titles) kept; remove with `sluice clear --pinned`")
        }
    }

    /// Waits until the files are deleted, if a user watches or if no daemon would delete them.
    private func waitForFiles(_ channel: AdminChannel) throws {
        guard channel.isFolderOpen || isatty(STDERR_FILENO) == 1 else { return }
        defer { endProgress() }
        while true {
            let left: Left = try decodeJSON(try channel.send(.get, "/api/clear"))
            guard left.state == "running" else { return }
            show(
                "deleting \(left.deleting) files; the daemon continues if this command is interrupted"
            )
            usleep(200_000)
        }
    }

    private struct Left: Decodable {
        let state: String
        let deleting: Int
    }
}

/// Shows what a command waits for, if on a terminal.
private func show(_ text: String) {
    guard isatty(STDERR_FILENO) == 1 else { return }
    let line = "\r\u{1B}[K\(text)"
    _ = write(STDERR_FILENO, line, line.utf8.count)
}

/// Removes that line.
private func endProgress() {
    guard isatty(STDERR_FILENO) == 1 else { return }
    let line = "\r\u{1B}[K"
    _ = write(STDERR_FILENO, line, line.utf8.count)
}

/// The response to a purge.
private struct Removed: Decodable {
    let removed: Int
    let bytes: Int64
    let state: String?
    let pinnedTitlesKept: Int?
    /// The files that the disk refused to delete; nil for a clear, and from former daemons.
    let undeleted: Int?
    /// Said if nothing of a title is kept there; not repeated with the progress.
    let note: String?

    var line: String {
        let objects = removed == 1 ? "1 object" : "\(removed) objects"
        let line = "removed \(objects), \(OutputFormat.size(bytes))\n"
        guard let left = undeleted, left > 0 else { return line }
        let files = left == 1 ? "1 file" : "\(left) files"
        return line
            + "the disk refused to delete \(files): the content is not served, and is deleted as "
            + "soon as the disk permits it; the log has the error\n"
    }
}
