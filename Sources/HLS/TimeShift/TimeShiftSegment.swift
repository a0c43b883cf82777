package import URISyntax

/// A segment of a live stream, remembered for time shift.
package struct TimeShiftSegment: Sendable {
    /// The media sequence number in the shifted list; rises by one from segment to segment.
    package let number: Int
    /// The media sequence number that the origin gave it.
    package let originNumber: Int
    /// The number of times that the origin had restarted its numbering before.
    package let epoch: Int
    /// The number of other segments that its URL named before; part of the identity of its bytes.
    package let generation: Int
    /// The discontinuity sequence number in the shifted list.
    package let discontinuity: Int
    /// Nil for a placeholder of a segment that was never seen, and for opaque URIs.
    package let url: AbsoluteURL?
    package let byteRange: SubRange?
    package let duration: Duration
    /// The date at which it begins; nil if unknown.
    package let date: DateTime?
    /// True if the origin marked it as missing, or it was never seen.
    package let isGap: Bool
    /// True for a placeholder of a segment that was never seen.
    package let isPlaceholder: Bool

    /// Tells apart the resources that its URLs have named over time; set by the caller.
    package internal(set) var marks = Marks()

    /// A number for each URL needed for playback; 0 unless the URL was reused for another resource.
    package struct Marks: Hashable, Sendable {
        package var segment: UInt32 = 0
        package var map: UInt32 = 0
        package var key: UInt32 = 0

        package init(segment: UInt32 = 0, map: UInt32 = 0, key: UInt32 = 0) {
            self.segment = segment
            self.map = map
            self.key = key
        }
    }

    /// The absolute URI as written.
    let uri: [UInt8]
    /// Its own tags and comments with LF, except those that are regenerated.
    let lines: [UInt8]
    /// True if the origin wrote the date.
    let hasOwnDate: Bool
    var context: TimeShiftContext

    /// The key and initialization section that its playback needs as well.
    package var keyURL: AbsoluteURL? { context.keyURL }
    package var mapURL: AbsoluteURL? { context.mapURL }
    /// The bytes of the initialization section; nil for the whole resource.
    package var mapRange: SubRange? { context.mapRange }
}

/// The key and map lines that apply to a segment; shared by segments under the same tags.
final class TimeShiftContext: Sendable, Equatable {
    /// The keys in force at the map, which encrypt it (8216bis, 4.4.4.5).
    let mapKeys: KeysInForce
    let map: [UInt8]?
    let keys: KeysInForce
    let keyURL: AbsoluteURL?
    let mapURL: AbsoluteURL?
    let mapRange: SubRange?

    init(
        mapKeys: KeysInForce = KeysInForce(), map: [UInt8]? = nil,
        keys: KeysInForce = KeysInForce(),
        urls: (key: AbsoluteURL?, map: AbsoluteURL?) = (nil, nil), mapRange: SubRange? = nil
    ) {
        self.mapKeys = mapKeys
        self.map = map
        self.keys = keys
        keyURL = urls.key
        mapURL = urls.map
        self.mapRange = mapRange
    }

    static let none = TimeShiftContext()

    static func == (left: TimeShiftContext, right: TimeShiftContext) -> Bool {
        left === right
            || (left.map == right.map && left.mapKeys == right.mapKeys && left.keys == right.keys)
    }

    /// Appends the lines that change from `previous`, nil at the start of a list, to this context.
    func append(after previous: TimeShiftContext?, to output: inout [UInt8]) {
        guard previous !== self else { return }
        var inForce = previous?.keys ?? KeysInForce()
        if let map, map != previous?.map || previous.map({ $0.mapKeys == mapKeys }) != true {
            for line in mapKeys.lines(replacing: inForce) + [map] {
                output.append(contentsOf: line)
                output.append(0x0A)
            }
            inForce = mapKeys
        }
        for line in keys.lines(replacing: inForce) {
            output.append(contentsOf: line)
            output.append(0x0A)
        }
    }
}
