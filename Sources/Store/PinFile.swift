// The pins of a store, in a file of their own: they outlive the index.
//
// Text, one pin a line, fields separated by tabs: title (hex), seconds since 1970, entry URL
// (percent-encoded where it has tabs or line breaks), keys (hex, separated by commas; may be
// empty). The first line is `SLUICE PINS 1`, the last `END <number of pins>`. The file is replaced
// as a whole and synced before `pin` returns.
import Glibc
import Logging
import Numbers
import Posix
import Synchronization

/// The pins in memory and on disk.
///
/// Any thread may use it.
final class PinFile: Sendable {
    private static let firstLine = "SLUICE PINS 1"
    /// What is behind these bytes of the file is not read: it is damaged then.
    private static let mostBytes = 16 << 20
    private let folder: StoreFolder
    private let pins: Mutex<[UInt64: Pin]>
    /// Held over a replacement of the file, so that two do not cross.
    private let writing = Mutex<Void>(())

    /// Reads the pins of a folder; a missing file has none.
    ///
    /// One that cannot be believed is set aside: what can be read of it counts.
    init(folder: StoreFolder, log: Logger) throws(SystemError) {
        self.folder = folder
        var text = ""
        do throws(SystemError) {
            let bytes = try readStart(folder.pinsPath, atMost: Self.mostBytes)
            text = String(decoding: bytes, as: UTF8.self)
        } catch {
            guard error.code == ENOENT else { throw error }
            pins = Mutex([:])
            return
        }
        let (found, isWhole) = Self.parse(text)
        pins = Mutex(found)
        guard !isWhole else { return }
        let aside = "\(folder.path)/pins.damaged-\(WallTime.now().seconds)"
        try renameFile(folder.pinsPath, to: aside)
        try write(found)
        log.error(
            "the file of pins was damaged; what could be read of it counts",
            metadata: ["kept": "\(found.count)", "aside": "\(aside)"])
    }

    var all: [Pin] { pins.withLock { $0.values.sorted { $0.since < $1.since } } }

    var count: Int { pins.withLock { $0.count } }

    /// Adds or replaces a pin; blocks until it is on the disk.
    func add(_ pin: Pin) throws(SystemError) {
        try change { $0[pin.title] = pin }
    }

    /// Takes a pin out; blocks until it is on the disk.
    ///
    /// - Returns: false when there was none.
    func remove(_ title: UInt64) throws(SystemError) -> Bool {
        guard pins.withLock({ $0[title] != nil }) else { return false }
        try change { $0[title] = nil }
        return true
    }

    /// Writes the file again, after the folder was made anew.
    func writeAgain() throws(SystemError) {
        guard count > 0 else { return }
        try change { _ in }
    }

    private func change(_ body: (inout [UInt64: Pin]) -> Void) throws(SystemError) {
        try writing.withLock { _ throws(SystemError) in
            var changed = pins.withLock { $0 }
            body(&changed)
            try write(changed)
            pins.withLock { $0 = changed }
        }
    }

    private func write(_ pins: [UInt64: Pin]) throws(SystemError) {
        var text = Self.firstLine + "\n"
        for pin in pins.values.sorted(by: { $0.since < $1.since }) {
            let keys = pin.keys.map(\.hex).joined(separator: ",")
            text += String(pin.title, radix: 16) + "\t\(pin.since.seconds)\t"
            text += Self.escaped(pin.url) + "\t" + keys + "\n"
        }
        text += "END \(pins.count)\n"
        try replaceFile(folder.pinsPath, with: Array(text.utf8), in: folder.path)
    }

    private static func escaped(_ url: String) -> String {
        var out = ""
        for scalar in url.unicodeScalars {
            if scalar.value < 0x20 || scalar.value == 0x7F {
                let digits = String(scalar.value, radix: 16, uppercase: true)
                out += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
            } else {
                out.unicodeScalars.append(scalar)
            }
        }
        return out
    }

    private static func parse(_ text: String) -> (pins: [UInt64: Pin], isWhole: Bool) {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
        guard lines.popFirst().map(String.init) == firstLine else { return ([:], false) }
        var pins: [UInt64: Pin] = [:]
        for line in lines {
            if line.hasPrefix("END ") {
                let count = OutsideNumber.integer(line.dropFirst(4), in: 0...OutsideNumber.largest)
                return (pins, count == pins.count)
            }
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            let largest = Int64(OutsideNumber.largest)
            guard fields.count == 4,
                let title = OutsideNumber.integer(fields[0], in: 0...UInt64.max, radix: 16),
                let since = OutsideNumber.integer(fields[1], in: -largest...largest)
            else { return (pins, false) }
            let keys = fields[3].split(separator: ",").map { ObjectKey(hex: String($0)) }
            guard keys.allSatisfy({ $0 != nil }) else { return (pins, false) }
            pins[title] = Pin(
                title: title, url: String(fields[2]), since: WallTime(seconds: since),
                keys: keys.compactMap { $0 })
        }
        return (pins, false)
    }
}
