import Testing

@testable import Store

/// The digits of keys in file names and in the index.
@Suite struct ObjectKeyTests {
    @Test func `a key is parsed from its digits and from nothing else`() {
        for number in 0..<200 {
            let key = ObjectKey(sha256Of: "\(number)")
            #expect(key.hex == key.bytes.map(Self.digits).joined())
            #expect(ObjectKey(hex: key.hex) == key)
        }
        let good = ObjectKey(sha256Of: "a").hex
        for byte in UInt8(0x20)...UInt8(0x7E)
        where !(0x30...0x39).contains(byte) && !(0x61...0x66).contains(byte) {
            let text = good.dropLast() + String(UnicodeScalar(byte))
            #expect(ObjectKey(hex: String(text)) == nil)
        }
        #expect(ObjectKey(hex: String(good.dropLast())) == nil)
        #expect(ObjectKey(hex: good + "0") == nil)
    }

    private static func digits(_ byte: UInt8) -> String {
        let text = String(byte, radix: 16)
        return text.count == 1 ? "0" + text : text
    }
}
