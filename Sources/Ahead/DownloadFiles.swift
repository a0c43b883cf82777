// What is remembered of downloads from run to run: a small file each, replaced as a whole.
//
// Beside the store's own folders, `downloads/<title>`: lines of a name and a value, the first
// `SLUICE DOWNLOAD 1`, the last `END`. Which parts have come is not in it: the store knows that.
import Library
import Glibc
import HTTP
import Logging
import Numbers
import Posix
import Routing
import URISyntax

/// One download as its file says it.
struct SavedDownload {
    package var order: DownloadOrder
    package var state: Download.State
    var pauseReason: String?
    package var name: String
    package var summary: Download.Summary

    init(_ download: Download) {
        order = download.order
        state = download.state
        pauseReason = download.pauseReason
        name = download.name
        summary = download.kept
    }

    private static let firstLine = "SLUICE DOWNLOAD 1"

    /// Reads `text`; nil for what is damaged.
    init?(_ text: String) {
        let lines = text.split(separator: "\n")
        guard lines.first.map(String.init) == Self.firstLine, lines.last == "END" else {
            return nil
        }
        var pairs: [(name: Substring, value: String)] = []
        for line in lines.dropFirst().dropLast() {
            guard let space = line.firstIndex(of: " ") else { return nil }
            pairs.append((line[..<space], String(line[line.index(after: space)...])))
        }
        guard let url = pairs.first(where: { $0.name == "url" }),
            let parsed = try? AbsoluteURL(url.value)
        else { return nil }
        order = DownloadOrder(url: parsed)
        state = .queued
        name = ""
        summary = Download.Summary()
        for (name, value) in pairs { take(name, value) }
    }

    private mutating func take(_ name: Substring, _ value: String) {
        switch name {
        case "url": break
        case "header":
            guard let colon = value.firstIndex(of: ":") else { return }
            order.headers.append(
                Entry.Header(
                    name: String(value[..<colon]),
                    value: String(value[value.index(after: colon)...])))
        case "name": self.name = value
        case "state": state = Self.state(value)
        case "reason":
            if case .failed = state { state = .failed(value) }
            if state == .paused { pauseReason = value }
        case "pieces": summary.pieces = Int(Self.number(value))
        case "done": summary.done = Int(Self.number(value))
        case "bytes": summary.bytes = Self.number(value)
        case "seconds": summary.seconds = OutsideNumber.decimal(value, in: 0...1e15) ?? 0
        case "label": summary.labels.append(value)
        default: _ = order.set(String(name), value)
        }
    }

    private static func number(_ text: String) -> Int64 {
        OutsideNumber.integer(text, in: 0...Int64(OutsideNumber.largest)) ?? 0
    }

    private static func state(_ word: String) -> Download.State {
        switch word {
        case "paused": .paused
        case "complete": .complete
        case "failed": .failed("")
        // Whatever it was doing, it begins with a look at what is there.
        default: .queued
        }
    }

    package var text: String {
        var lines = [Self.firstLine, "url \(order.url.text)"]
        lines += order.headers.map { "header \($0.name):\($0.value)" }
        lines += order.settings.map { "\($0.name) \($0.value)" }
        lines.append("name \(Self.oneLine(name))")
        switch state {
        case .paused:
            lines.append("state paused")
            if let pauseReason { lines.append("reason \(Self.oneLine(pauseReason))") }
        case .complete: lines.append("state complete")
        case .failed(let reason): lines += ["state failed", "reason \(Self.oneLine(reason))"]
        default: lines.append("state running")
        }
        lines += ["pieces \(summary.pieces)", "done \(summary.done)", "bytes \(summary.bytes)"]
        lines.append("seconds \(summary.seconds)")
        lines += summary.labels.map { "label \(Self.oneLine($0))" }
        return (lines + ["END"]).joined(separator: "\n") + "\n"
    }

    private static func oneLine(_ text: String) -> String {
        String(text.map { $0.isNewline ? " " : $0 })
    }
}

/// The files; every method blocks on the disk.
struct DownloadFiles {
    /// Bytes that were downloaded on a day.
    struct Day: Equatable {
        package var day: String
        package var bytes: Int64

        /// Begins at nothing on another day.
        package mutating func turn(to today: String) {
            if day != today { self = Day(day: today, bytes: 0) }
        }
    }

    package let folder: String
    package let log: Logger

    /// Those that can be read, the oldest order first.
    package func readAll() -> [SavedDownload] {
        let names = ((try? listFolder(folder)) ?? []).map(\.name)
        let files = names.filter { SessionID(text: $0) != nil }.map { folder + "/" + $0 }
        return files.compactMap { path -> (Int64, SavedDownload)? in
            guard let bytes = StateFile.read(path, atMost: 4 << 20, log),
                let saved = SavedDownload(String(decoding: bytes, as: UTF8.self))
            else { return nil }
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            return (Int64(status.st_mtim.tv_sec), saved)
        }.sorted { $0.0 < $1.0 }.map(\.1)
    }

    /// Replaces a download's file; after a crash the former or the new one is found.
    package func write(_ saved: SavedDownload, of id: SessionID) throws(SystemError) {
        try makeFolder(folder)
        try replaceFile(folder + "/" + id.text, with: Array(saved.text.utf8), in: folder)
    }

    package func remove(_ id: SessionID) {
        try? removeFile(folder + "/" + id.text)
    }

    func readDay() -> Day {
        let text = StateFile.read(folder + "/day", atMost: 4_096, log).map {
            String(decoding: $0, as: UTF8.self)
        }
        let words = (text ?? "").split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard words.count == 2,
            let bytes = OutsideNumber.integer(words[1], in: 0...Int64(OutsideNumber.largest))
        else { return Day(day: "", bytes: 0) }
        return Day(day: String(words[0]), bytes: bytes)
    }

    /// A day's figure that cannot be written is one that is counted again after a crash.
    package func write(_ day: Day) {
        try? makeFolder(folder)
        try? replaceFile(
            folder + "/day", with: Array("\(day.day) \(day.bytes)\n".utf8), in: folder)
    }
}
