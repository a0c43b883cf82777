/// Where the byte range of a segment ends, for the next segment, whose range may omit its offset.
package struct RangeEnd: Sendable {
    /// The media sequence number of the segment.
    package let number: Int
    package let place: ResourceReference.Place
    /// The offset after its last byte.
    package let end: Int

    package init(number: Int, place: ResourceReference.Place, end: Int) {
        self.number = number
        self.place = place
        self.end = end
    }
}
