import ArgumentParser
import CommandSupport
import HTTP

/// `sluice pin` and `sluice unpin`.
struct PinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin", abstract: "Exclude a title from eviction.",
        discussion: """
            Stored objects of the title stay until it is unpinned or purged, and so do all that are fetched for it \
            later. Nothing is downloaded: the output says how much is stored. A title that was not played yet is \
            named by the URL that a player will start from.
            """)

    @Argument(
        help:
            "Entry URL of the title, the origin's or the daemon's, or its number in `sluice ls`."
    )
    var title: String

    @Flag(help: "Print the pinned titles as JSON.")
    var json = false

    @OptionGroup var store: StoreOptions

    func run() throws {
        try store.withChannel { channel in
            let text = try channel.send(.post, "/api/pin?\(titleArgument(title))")
            if json { return print(text, terminator: "") }
            for line in try (decodeJSON(text) as TitlePage).titles {
                print("pinned \(line.id) \(line.name): \(line.percent) % is kept")
                if line.percent < 100, line.kind != "live" {
                    print("the rest is not downloaded; it is kept once it was played")
                }
            }
        }
    }
}

struct UnpinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin", abstract: "Allow eviction of a pinned title again.",
        discussion: "Its stored objects stay until their room is needed.")

    @Argument(help: "Entry URL of the title, or its number in `sluice ls`.")
    var title: String

    @Flag(help: "Print the number of titles as JSON.")
    var json = false

    @OptionGroup var store: StoreOptions

    func run() throws {
        try store.withChannel { channel in
            let text = try channel.send(.post, "/api/unpin?\(titleArgument(title))")
            if json { return print(text, terminator: "") }
            let done: Unpinned = try decodeJSON(text)
            print(done.note ?? (done.unpinned == 0 ? "it was not pinned" : "unpinned"))
        }
    }

    private struct Unpinned: Decodable {
        let unpinned: Int
        /// Said if nothing of the title is kept there.
        let note: String?
    }
}

/// Returns the query argument that names a title, by number or by URL.
func titleArgument(_ text: String) -> String {
    daemonQuery([(text.contains("://") ? "url" : "title", text)])
}
