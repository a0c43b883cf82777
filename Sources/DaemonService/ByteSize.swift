import Numbers

/// Sizes in bytes as settings and options give them.
package enum ByteSize {
    /// Returns the shortest text that `bytes` reads as a size.
    static func words(_ bytes: Int64) -> String {
        let units: [(String, Int64)] = [
            ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000),
        ]
        let unit = units.first { bytes >= $0.1 && bytes % $0.1 == 0 }
        return unit.map { "\(bytes / $0.1)\($0.0)" } ?? String(bytes)
    }

    /// The units that `bytes` reads, for error messages.
    package static let units =
        "units are KB, MB, GB, TB, KiB, MiB, GiB and TiB, and a lower-case b would be bits"

    /// Parses a size; nil if it is malformed.
    ///
    /// A lower-case `b` is refused: `5Mb` is five megabits, an eighth of what would be set.
    package static func bytes(_ text: String) -> Int64? {
        guard text.utf8.last != UInt8(ascii: "b") else { return nil }
        let units: [(String, Double)] = [
            ("kib", 1024), ("mib", 1_048_576), ("gib", 1_073_741_824), ("tib", 1_099_511_627_776),
            ("kb", 1e3), ("mb", 1e6), ("gb", 1e9), ("tb", 1e12), ("k", 1e3), ("m", 1e6), ("g", 1e9),
            ("t", 1e12), ("b", 1), ("", 1),
        ]
        let lower = text.lowercased()
        for (suffix, factor) in units where lower.hasSuffix(suffix) {
            let digits = lower.dropLast(suffix.count).filter { $0 != " " && $0 != "_" }
            return ExternalNumber.decimal(digits, in: 0...9e18 / factor)
                .map { Int64(saturating: $0 * factor) }
        }
        return nil
    }
}
