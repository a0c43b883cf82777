import Numbers
import Testing

@Suite struct OutsideNumberTests {
    @Test(arguments: ["0", "9007199254740991", "007"])
    func `an integer within the range is parsed`(text: String) {
        #expect(ExternalNumber.integer(text, in: 0...ExternalNumber.largest) == Int(text))
    }

    @Test(arguments: [
        "", " 1", "1 ", "+1", "-1", "1e3", "0x10", "1.0", "9007199254740992",
        "99999999999999999999999999",
    ])
    func `other text and integers outside of the range are rejected`(text: String) {
        #expect(ExternalNumber.integer(text, in: 0...ExternalNumber.largest) == nil)
    }

    @Test func `hexadecimal and negative integers are parsed where they are allowed`() {
        #expect(ExternalNumber.integer("fF", in: 0...UInt32.max, radix: 16) == 255)
        #expect(ExternalNumber.integer("-5", in: -5...5) == -5)
        #expect(ExternalNumber.integer("-6", in: -5...5) == nil)
    }

    @Test func `decimal numbers are parsed within the range only`() {
        #expect(ExternalNumber.decimal("1.5", in: 0...2) == 1.5)
        for text in ["nan", "inf", "-1", "1e400", "x", ""] {
            #expect(ExternalNumber.decimal(text, in: 0...1e12) == nil)
        }
    }
}

@Suite struct SaturatingArithmeticTests {
    @Test func `sums saturate at the ends of the range`() {
        #expect(Int.max.addingSaturated(1) == .max)
        #expect(Int.min.addingSaturated(-1) == .min)
        #expect(Int.max.addingSaturated(-1) == .max - 1)
        #expect(UInt8.max.addingSaturated(1) == .max)
        #expect([Int.max, 1, -1].saturatedSum() == .max - 1)
    }

    @Test func `differences saturate at the ends of the range`() {
        #expect(Int.min.subtractingSaturated(1) == .min)
        #expect(Int.max.subtractingSaturated(-1) == .max)
        #expect(0.subtractingSaturated(Int.min) == .max)
        #expect(UInt8(1).subtractingSaturated(2) == 0)
        #expect(5.subtractingSaturated(7) == -2)
    }

    @Test func `products saturate at the ends of the range`() {
        #expect(Int.max.multipliedSaturated(by: 2) == .max)
        #expect(Int.max.multipliedSaturated(by: -2) == .min)
        #expect(Int.min.multipliedSaturated(by: -1) == .max)
        #expect((-3).multipliedSaturated(by: 4) == -12)
    }

    @Test func `conversions of fractions saturate at the ends of the range`() {
        #expect(Int64(saturating: 1e300) == .max)
        #expect(Int64(saturating: -.infinity) == .min)
        #expect(Int64(saturating: .nan) == 0)
        #expect(Int64(saturating: 9.9) == 9)
        #expect(Int64(saturating: -9.9) == -9)
        #expect(UInt8(saturating: -1) == 0)
    }
}
