@testable import HLS
import Testing

@Suite struct ShortTextTests {
    private static func text(_ range: Range<Int>, of bytes: [UInt8]) -> ShortText? {
        ShortText(range, of: bytes.span)
    }

    private static func stands(_ text: ShortText, at offset: Int, in bytes: [UInt8]) -> Bool {
        text.stands(at: offset, in: bytes.span)
    }

    @Test(arguments: 1...24)
    func `a short text matches if each of its bytes does`(_ count: Int) throws {
        let text = (0..<count).map { UInt8($0 + 65) }
        let padding = [UInt8](repeating: 0x2E, count: 24)
        let made = padding + text + padding
        let short = try #require(Self.text(24..<24 + count, of: made))
        #expect(short.count == count && Self.stands(short, at: 24, in: made))
        for place in 0..<count {
            var other = made
            other[24 + place] ^= 0x80
            #expect(!Self.stands(short, at: 24, in: other), "byte \(place)")
        }
        // The following bytes are not part of it.
        let followed = padding + text + [UInt8](repeating: 0x41, count: 24)
        #expect(Self.stands(short, at: 24, in: followed))
        #expect(!Self.stands(short, at: 25, in: made))
    }

    @Test func `a text that is too long or at the end does not match`() {
        let bytes = [UInt8](repeating: 0x41, count: 48)
        #expect(Self.text(0..<25, of: bytes) == nil)
        #expect(Self.text(25..<30, of: bytes) == nil)
        #expect(Self.text(4..<4, of: bytes) == nil)
    }
}
