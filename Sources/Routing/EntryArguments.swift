import HLS

/// The arguments of an entry that say what its session sees of a stream: in the query, or before
/// the URL in the path, as in `/dvr=2h/height=720/https://host/path`.
struct EntryArguments {
    private static let names = ["dvr", "height", "bandwidth"]

    /// The length of the time-shift window in seconds; nil for the origin's.
    private(set) var window: Int?
    private(set) var limit = VariantLimit.none

    static func isName(_ name: String) -> Bool { names.contains(name) }

    /// Returns the name before the `=` in an argument that a text begins with; nil for other text.
    static func name(at text: Substring) -> String? {
        let bytes = text.utf8
        return names.first { name in
            bytes.starts(with: name.utf8) && bytes.dropFirst(name.utf8.count).first == 0x3D
        }
    }

    /// Takes the value of an argument.
    ///
    /// - Parameters:
    ///   - value: its text, decoded.
    ///   - name: one for which `isName(_:)` is true.
    /// - Returns: what is wrong with the value, for the client; nil for a valid one.
    mutating func take(_ value: some StringProtocol, for name: String) -> String? {
        switch name {
        case "dvr":
            window = WindowLength.seconds(value)
            guard window == nil else { return nil }
            return "dvr= is a length of time up to 24h, such as 90m, 2h or 3600"
        case "height":
            limit.height = VariantLimit.number(value)
            guard limit.height == nil else { return nil }
            return "height= is a number of pixels from 1 to 2147483648, such as 720"
        default:
            limit.bandwidth = VariantLimit.number(value)
            guard limit.bandwidth == nil else { return nil }
            return "bandwidth= is a number of bits per second from 1 to 2147483648, such as 2500000"
        }
    }
}
