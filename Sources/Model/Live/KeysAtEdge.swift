// Which keys the EXT-X-KEY lines of a live list put in force, from one window to the next. Pure.
import Store

/// The keys of the last EXT-X-KEY lines: those in force at the end of the window.
///
/// A key that follows another one is a new one, even if the list has named it before. Delta updates
/// do not repeat the line of the key in force, so that it is remembered between readings.
struct KeysAtEdge: Sendable, Equatable {
    /// The most keys of one segment that are remembered; a further one counts as not in force, and
    /// costs a revalidation.
    private static let mostKept = 4

    /// Those of the last lines; several for a segment with several KEYFORMATs.
    private var keys: [ObjectKey] = []
    /// Those of the lines before.
    private var former: [ObjectKey] = []
    /// The number of the first segment after the last lines; nil as long as the text has none.
    private var number: Int?

    /// Begins the next text, at whose first line the same keys are in force.
    mutating func beginText() {
        former = []
        number = nil
    }

    /// Notes the next line of the text.
    ///
    /// - Parameters:
    ///   - key: the key that it names.
    ///   - line: the number of the first segment after it.
    /// - Returns: true if other keys were in force before it.
    mutating func take(_ key: ObjectKey, at line: Int) -> Bool {
        if number != line {
            (former, keys) = (keys, [])
            number = line
        }
        if keys.count < Self.mostKept, !keys.contains(key) { keys.append(key) }
        return !former.isEmpty && !former.contains(key)
    }

    /// Ends a text; one without any line is not encrypted, unless it skips segments.
    mutating func endText(skipsSegments: Bool) {
        if number == nil, !skipsSegments { keys = [] }
    }
}
