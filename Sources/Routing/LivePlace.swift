// The place of a resource in a live list, as written in the path of its link.
//
//     /<role>/<handle of the list>/<place>.<ext>?u=<handle of the origin URL>
//
// A player that reloads a live list must find each segment under its former path (hls.js ends
// playback otherwise), while its origin URL may change with every reading: a new token, another
// edge. Therefore the path names the list and the place in it, and the origin URL is in the query.
// Decision 13 gives the reasons.
package import HLS
import Numbers

/// A place in a live list.
package enum LivePlace: Hashable, Sendable {
    /// A segment by its media sequence number, or its parts if they are ranges of one resource.
    case segment(Int)
    /// A part that is a resource of its own, by the number of its segment and its index in that.
    case part(Int, index: Int)
    /// A media initialization section by the name that `LiveMemory` gave it: its EXT-X-MAP moves
    /// from segment to segment as the window slides.
    case section(UInt32)

    /// The name of the query argument with the handle of the origin URL.
    package static let argument = "u"

    private static let sectionPrefix = Array("init-".utf8)

    /// Appends the text of the place, which precedes the extension.
    package func append(to output: inout [UInt8]) {
        switch self {
        case .segment(let number):
            appendDecimal(Int64(number), to: &output)
        case .part(let number, let index):
            appendDecimal(Int64(number), to: &output)
            output.append(0x2D)
            appendDecimal(Int64(index), to: &output)
        case .section(let name):
            output.append(contentsOf: Self.sectionPrefix)
            output.append(contentsOf: String(name, radix: 16, width: 8).utf8)
        }
    }

    /// Parses a file name in the path of a link; nil for any text that `append` does not write.
    package init?(fileName: some StringProtocol, role: ResourceRole) {
        let bytes = Array(fileName.utf8)
        guard let dot = bytes.lastIndex(of: 0x2E) else { return nil }
        let text = bytes[..<dot]
        if role == .initialization {
            guard text.starts(with: Self.sectionPrefix), text.count == 13,
                let name = ExternalNumber.integer(
                    String(decoding: text.dropFirst(5), as: UTF8.self), in: 0...UInt32.max,
                    radix: 16)
            else { return nil }
            self = .section(name)
        } else if let dash = text.firstIndex(of: 0x2D) {
            guard let number = Self.number(text[..<dash]),
                let index = Self.number(text[(dash + 1)...])
            else { return nil }
            self = .part(number, index: index)
        } else {
            guard let number = Self.number(text) else { return nil }
            self = .segment(number)
        }
        var written: [UInt8] = []
        append(to: &written)
        // Each place has exactly one spelling.
        guard written[...] == text else { return nil }
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        // Extended windows continue counting after the largest number of a playlist.
        DecimalDigits(digits, upTo: ExternalNumber.largest * 4).number
    }
}

extension LivePlace: CustomStringConvertible {
    package var description: String {
        switch self {
        case .segment(let number): "segment \(number)"
        case .part(let number, let index): "part \(index) of segment \(number)"
        case .section: "initialization section"
        }
    }
}
