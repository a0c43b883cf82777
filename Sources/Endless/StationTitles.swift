package import HTTP
import Numbers

/// Removes the titles that radio stations mix into a stream.
///
/// A station that announces `icy-metaint: N` sends a byte after each N bytes of audio, and as many
/// blocks of 16 bytes as it says. They belong to the connection that asked for them: between the
/// bytes of another viewer they would be noise.
package struct StationTitles: Sendable {
    private let interval: Int
    private var audioLeft: Int
    private var titleLeft = 0

    /// Returns nil if the station sends no titles.
    ///
    /// - Parameter fields: the fields of the response.
    package init?(_ fields: Fields) {
        guard let text = fields.first("icy-metaint"),
            let interval = ExternalNumber.integer(text, in: 1...(16 << 20))
        else { return nil }
        self.interval = Int(interval)
        audioLeft = self.interval
    }

    /// Returns bytes of the stream without titles.
    package mutating func strip(_ bytes: Span<UInt8>) -> [UInt8] {
        var kept: [UInt8] = []
        kept.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if titleLeft > 0 {
                let count = min(titleLeft, bytes.count - index)
                titleLeft -= count
                index += count
            } else if audioLeft == 0 {
                titleLeft = 16 * Int(bytes[index])
                audioLeft = interval
                index += 1
            } else {
                let count = min(audioLeft, bytes.count - index)
                for place in index..<index + count { kept.append(bytes[place]) }
                audioLeft -= count
                index += count
            }
        }
        return kept
    }
}
