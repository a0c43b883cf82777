import URISyntax

/// The attributes of one tag that the pass itself needs.
///
/// The values of the model read other attributes on access.
struct TagFacts {
    let list: AttributeList
    /// DURATION of a part.
    private(set) var duration: Duration?
    /// The value of BYTERANGE, well-formed or not.
    private(set) var byteRangeText: Range<Int>?
    private(set) var byteRange: WrittenSubRange?
    /// GAP=YES.
    private(set) var isGap = false
    /// TYPE of a hint.
    private(set) var type: Range<Int>?
    /// Whether a hint has BYTERANGE-START.
    private(set) var hasRangeStart = false
    /// BYTERANGE-START of a hint.
    private(set) var rangeStart: Int?
    /// BYTERANGE-LENGTH of a hint.
    private(set) var rangeLength: Int?
    private(set) var bandwidth: Int?
    /// METHOD of a key.
    private(set) var method: Range<Int>?
    /// FORMAT of session data.
    private(set) var format: Range<Int>?
    /// CLASS of a date range.
    private(set) var dateRangeClass: Range<Int>?

    /// Reads the attributes of a tag; the first of several with the same name counts.
    init(_ line: TagLine, _ list: AttributeList) {
        self.list = list
        switch line.name {
        case .part: readPart()
        case .preloadHint:
            type = list.first("TYPE")?.value
            hasRangeStart = list.has("BYTERANGE-START")
            rangeStart = list.integer(of: "BYTERANGE-START")
            rangeLength = list.integer(of: "BYTERANGE-LENGTH")
        case .map:
            byteRangeText = list.first("BYTERANGE")?.value
            byteRange = byteRangeText.flatMap { WrittenSubRange(list.bytes[$0]) }
        case .key: method = list.first("METHOD")?.value
        case .sessionData: format = list.first("FORMAT")?.value
        case .dateRange: dateRangeClass = list.first("CLASS")?.value
        case .streamInf, .iFrameStreamInf, .imageStreamInf:
            bandwidth = list.integer(of: "BANDWIDTH")
        default: break
        }
    }

    /// Reads a part in one scan: a list of low latency has many.
    private mutating func readPart() {
        var known: (duration: Bool, gap: Bool) = (false, false)
        for attribute in list {
            if !known.duration, isNamed("DURATION", attribute) {
                known.duration = true
                duration = DecimalNumber.seconds(list.bytes[attribute.value])
            } else if byteRangeText == nil, isNamed("BYTERANGE", attribute) {
                byteRangeText = attribute.value
                byteRange = WrittenSubRange(list.bytes[attribute.value])
            } else if !known.gap, isNamed("GAP", attribute) {
                known.gap = true
                isGap = isValue("YES", of: attribute.value)
            }
        }
    }

    private func isNamed(_ name: String, _ attribute: AttributeList.Attribute) -> Bool {
        list.bytes[attribute.name].elementsEqual(name.utf8)
    }

    /// Whether a value is this text.
    func isValue(_ text: String, of value: Range<Int>?) -> Bool {
        value.map { list.bytes[$0].elementsEqual(text.utf8) } ?? false
    }
}
