package import URISyntax

/// The key and initialization section that EXT-X-KEY and EXT-X-MAP set for the segments that
/// follow.
///
/// Shared by all segments under the same tags. To a player, the same media URL in another context
/// is another resource.
package final class SegmentContext: Sendable {
    package let hasMap: Bool
    package let keyURL: AbsoluteURL?
    /// True if the key is for a key system, and none that anybody can fetch is in force.
    package let isKeyOfSystem: Bool
    package let mapURL: AbsoluteURL?
    package let mapByteRange: SubRange?

    init(
        hasMap: Bool, keyURL: AbsoluteURL? = nil, isKeyOfSystem: Bool = false,
        mapURL: AbsoluteURL? = nil, mapByteRange: SubRange? = nil
    ) {
        self.hasMap = hasMap
        self.keyURL = keyURL
        self.isKeyOfSystem = isKeyOfSystem
        self.mapURL = mapURL
        self.mapByteRange = mapByteRange
    }

    func with(keyURL: AbsoluteURL?, isOfSystem: Bool = false) -> SegmentContext {
        SegmentContext(
            hasMap: hasMap, keyURL: keyURL, isKeyOfSystem: isOfSystem, mapURL: mapURL,
            mapByteRange: mapByteRange)
    }

    func with(mapURL: AbsoluteURL?, byteRange: SubRange?) -> SegmentContext {
        SegmentContext(
            hasMap: true, keyURL: keyURL, isKeyOfSystem: isKeyOfSystem, mapURL: mapURL,
            mapByteRange: byteRange)
    }
}
