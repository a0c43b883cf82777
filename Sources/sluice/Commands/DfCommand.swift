import ArgumentParser
import CommandSupport
import HTTP

/// `sluice df`: the disk space of the store.
struct DfCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "df", abstract: "Show the disk space in use, by kind and by host.",
        discussion: """
            Used is the space of objects, including blocks reserved for unfinished ones; it is kept below the \
            budget, and free space on the file system above the minimum. Sizes are in powers of 1000. Without a \
            daemon, budget and minimum are those that `sluice serve` would have from environment and file.
            """)

    @Flag(help: "Print JSON; sizes in bytes.")
    var json = false

    @OptionGroup var store: StoreOptions

    func run() throws {
        try store.withChannel { channel in
            let text = try channel.send(.get, "/api/df")
            print(json ? text : try Self.table(decodeJSON(text)), terminator: "")
        }
    }

    private struct Use: Decodable {
        struct Share: Decodable {
            let name: String
            let objects: Int
            let bytes: Int64
        }

        let budgetBytes: Int64
        let usedBytes: Int64
        let objects: Int
        let pinnedBytes: Int64
        let reservedBytes: Int64
        let freeBytes: Int64?
        let minFreeBytes: Int64
        let kinds: [Share]
        let hosts: [Share]
    }

    private static func table(_ use: Use) -> String {
        var sums = TextTable(rightAligned: [1])
        let percent =
            use.budgetBytes > 0
            ? Int64(Double(use.usedBytes) / Double(use.budgetBytes) * 100) : 0
        sums.add(
            "used", OutputFormat.size(use.usedBytes),
            "\(percent) % of the budget, \(use.objects) objects")
        sums.add("budget", OutputFormat.size(use.budgetBytes), "")
        sums.add("pinned", OutputFormat.size(use.pinnedBytes), "")
        sums.add("reserved", OutputFormat.size(use.reservedBytes), "for what is being fetched")
        sums.add("free", use.freeBytes.map(OutputFormat.size) ?? "?", "on the file system")
        sums.add(
            "least free", OutputFormat.size(use.minFreeBytes), "below that nothing new is stored")
        var shares = TextTable(rightAligned: [1, 2])
        shares.add("kind", "size", "objects")
        for share in use.kinds {
            shares.add(share.name, OutputFormat.size(share.bytes), "\(share.objects)")
        }
        shares.add("host", "size", "objects")
        for share in use.hosts {
            shares.add(share.name, OutputFormat.size(share.bytes), "\(share.objects)")
        }
        return "\(sums.text)\n\n\(shares.text)\n"
    }
}
