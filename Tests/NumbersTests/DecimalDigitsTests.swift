import Numbers
import Testing

@Suite struct DecimalDigitsTests {
    @Test(
        arguments: [("0", 0), ("007", 7), ("255", 255), ("000000000000255", 255)]
            as [(String, UInt8)])
    func `digits up to the limit are a number`(text: String, number: UInt8) {
        #expect(DecimalDigits<UInt8>(text.utf8, upTo: .max) == .value(number))
    }

    @Test(arguments: ["256", "999", "2560", "51200000000000000000000000000000000000000000"])
    func `a number above the limit differs from text that is not a number`(text: String) {
        #expect(DecimalDigits<UInt8>(text.utf8, upTo: .max) == .overflow(.max))
        #expect(DecimalDigits<UInt8>(text.utf8, upTo: 200).saturated == 200)
        #expect(DecimalDigits<UInt8>(text.utf8, upTo: 200).number == nil)
    }

    @Test(arguments: ["", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "99999999999999999999x"])
    func `text with any other byte is not a number`(text: String) {
        #expect(DecimalDigits(text.utf8) == .malformed)
        #expect(DecimalDigits(text.utf8).saturated == nil)
    }

    @Test func `the default limit is the largest exact integer of JavaScript`() {
        #expect(DecimalDigits("9007199254740991".utf8).number == 9_007_199_254_740_991)
        #expect(DecimalDigits("9007199254740992".utf8).saturated == 9_007_199_254_740_991)
        #expect(
            DecimalDigits("18446744073709551615".utf8, upTo: UInt64.max).number == .max)
    }

    @Test(arguments: [Int64.min, -10, -1, 0, 9, 10, 99, 100, .max])
    func `a number is written in decimal digits`(number: Int64) {
        var bytes: [UInt8] = []
        appendDecimal(number, to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == "\(number)")
    }

    @Test func `numbers are padded with leading zeros`() {
        var bytes: [UInt8] = []
        appendDecimal(7, width: 3, to: &bytes)
        appendDecimal(2031, width: 4, to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == "0072031")
        #expect(String(UInt8(10), radix: 16, width: 2) == "0a")
        #expect(String(12_345, width: 3) == "12345")
    }
}
