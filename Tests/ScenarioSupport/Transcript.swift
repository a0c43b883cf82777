import Synchronization

/// The messages of both sides in order, for the report of a failed scenario.
package final class Transcript: Sendable, CustomStringConvertible {
    private struct Entry {
        let at: ContinuousClock.Instant
        let who: String
        let text: String
    }

    private let start = ContinuousClock.now
    private let entries = Mutex<[Entry]>([])

    package init() {}

    /// Adds a remark of `who`.
    package func note(_ who: String, _ text: String) {
        let entry = Entry(at: .now, who: who, text: text)
        entries.withLock {
            // A scenario in an endless loop must not fill the memory.
            if $0.count < 5000 { $0.append(entry) }
        }
    }

    /// Adds bytes: text as it is, binary data and everything behind the first 600 bytes only as a
    /// count.
    package func bytes(_ who: String, _ bytes: some Collection<UInt8>) {
        let shown = bytes.prefix(600)
        let isText = shown.allSatisfy { $0 >= 0x20 && $0 < 0x7F || $0 == 0x0A || $0 == 0x0D }
        guard isText else { return note(who, "<\(bytes.count) bytes>") }
        let rest = bytes.count > 600 ? "... <\(bytes.count) bytes in all>" : ""
        note(who, String(decoding: shown, as: UTF8.self) + rest)
    }

    package var description: String {
        entries.withLock {
            $0.map { entry in
                let milliseconds = (entry.at - start) / .milliseconds(1)
                let lines = entry.text.split(separator: "\n", omittingEmptySubsequences: false)
                    .map { $0.hasSuffix("\r") ? $0.dropLast() : $0 }
                return "[\(Int(milliseconds)) ms] \(entry.who): "
                    + lines.joined(separator: "\n    ")
            }.joined(separator: "\n")
        }
    }
}
