// What a purge was asked to remove, in memory and in a file: an order that was accepted is carried out,
// also by the next run of the daemon.
import CachePolicy
import Glibc
import Numbers
package import Posix
package import Store

/// One order.
package struct PurgeOrder: Equatable, Sendable {
    package enum Subject: Equatable, Sendable {
        /// Key texts of one URL; pinned objects go too.
        case texts(Set<String>)
        /// Numbers of titles; pinned ones go too.
        case titles(Set<UInt64>)
        /// A host, with or without its port; in lower case.
        case host(String)
        case unusedSince(WallTime)
    }

    package let subject: Subject
    /// What is stored later does not concern it.
    package let given: WallTime

    package init(_ subject: Subject, given: WallTime = .now()) {
        self.subject = subject
        self.given = given
    }

    /// Whether an object is to go; `isPinned` is asked only where it matters.
    package func fits(_ entry: StoreEntry, isPinned: (StoreEntry) -> Bool) -> Bool {
        switch subject {
        case .texts(let texts): texts.contains(CacheKey.url(ofText: entry.url))
        case .titles(let numbers): numbers.contains(entry.title)
        case .host(let host): StoreAdministration.isHost(host, of: entry.url) && !isPinned(entry)
        case .unusedSince(let time): entry.lastUsed < time && !isPinned(entry)
        }
    }

    // MARK: The file

    private static let firstLine = "SLUICE PURGE 1"
    private static let lastLine = "END"

    package static func text(of orders: [PurgeOrder]) -> String {
        ([firstLine] + orders.flatMap(\.lines) + [lastLine]).joined(separator: "\n") + "\n"
    }

    private var lines: [String] {
        var lines = ["given \(given.nanoseconds)"]
        switch subject {
        case .texts(let texts): lines += texts.sorted().map { "url \($0)" }
        case .titles(let numbers): lines += numbers.sorted().map { "title \($0)" }
        case .host(let host): lines.append("host \(host)")
        case .unusedSince(let time): lines.append("unused-since \(time.nanoseconds)")
        }
        return lines
    }

    /// Nil for a text that is not whole.
    package static func orders(in text: String) -> [PurgeOrder]? {
        let lines = text.split(separator: "\n")
        guard lines.count >= 2, lines[0] == firstLine, lines[lines.count - 1] == lastLine else {
            return nil
        }
        var orders: [PurgeOrder] = []
        var given: WallTime?
        var subject: Subject?
        func finish() -> Bool {
            guard let given else { return subject == nil }
            guard let made = subject else { return false }
            orders.append(PurgeOrder(made, given: given))
            return true
        }
        for line in lines[1..<(lines.count - 1)] {
            let name = line.prefix { $0 != " " }
            let value = line.dropFirst(name.count + 1)
            switch (name, subject) {
            case ("given", _):
                guard finish(), let time = time(value) else { return nil }
                (given, subject) = (time, nil)
            case ("url", nil): subject = .texts([String(value)])
            case ("url", .texts(let texts)): subject = .texts(texts.union([String(value)]))
            case ("title", nil), ("title", .titles):
                guard let number = OutsideNumber.integer(value, in: 0...UInt64.max) else {
                    return nil
                }
                var numbers: Set<UInt64> = [number]
                if case .titles(let known)? = subject { numbers.formUnion(known) }
                subject = .titles(numbers)
            case ("host", nil): subject = .host(String(value))
            case ("unused-since", nil):
                guard let time = time(value) else { return nil }
                subject = .unusedSince(time)
            default: return nil
            }
        }
        return finish() ? orders : nil
    }

    private static func time(_ text: Substring) -> WallTime? {
        OutsideNumber.integer(text, in: 0...Int64.max).map { WallTime(nanoseconds: $0) }
    }
}

/// The file of orders that are not carried out yet; every method blocks on the disk.
struct PurgeFile: Sendable {
    /// More orders than one purge of every title needs.
    private static let mostBytes = 16 << 20
    private let folder: String
    private var path: String { folder + "/purge" }

    init(folder: String) { self.folder = folder }

    /// The orders; nil where the file is damaged.
    package func read() -> [PurgeOrder]? {
        do throws(SystemError) {
            let bytes = try readWhole(path, atMost: Self.mostBytes)
            return PurgeOrder.orders(in: String(decoding: bytes, as: UTF8.self))
        } catch {
            return error.code == ENOENT ? [] : nil
        }
    }

    package func write(_ orders: [PurgeOrder]) throws(SystemError) {
        try replaceFile(path, with: Array(PurgeOrder.text(of: orders).utf8), in: folder)
    }

    package func remove() { try? removeFile(path) }
}
