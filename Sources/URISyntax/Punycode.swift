/// Punycode (RFC 3492): writes a host label beyond ASCII in ASCII.
enum Punycode {
    private static let base = 36
    private static let tMin = 1
    private static let tMax = 26

    /// The encoding of `label` without the `xn--` prefix; nil where the arithmetic would overflow.
    static func encode(_ label: [Unicode.Scalar]) -> String? {
        let input = label.map { Int($0.value) }
        var output = input.filter { $0 < 0x80 }.map { UInt8($0) }
        let basicCount = output.count
        if basicCount > 0 { output.append(0x2D) }

        var threshold = 0x80
        var delta = 0
        var bias = 72
        var handled = basicCount
        while handled < input.count {
            guard let next = input.filter({ $0 >= threshold }).min() else { return nil }
            let (step, tooFar) = (next - threshold).multipliedReportingOverflow(by: handled + 1)
            guard !tooFar, delta <= Int(Int32.max) - min(step, Int(Int32.max)) else { return nil }
            delta += step
            threshold = next
            for code in input {
                if code < threshold { delta += 1 }
                guard code == threshold else { continue }
                appendVariableLength(delta, bias: bias, to: &output)
                bias = adapt(delta, count: handled + 1, isFirst: handled == basicCount)
                delta = 0
                handled += 1
            }
            delta += 1
            threshold += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func appendVariableLength(
        _ delta: Int, bias: Int, to output: inout [UInt8]
    ) {
        var rest = delta
        var k = base
        while true {
            let t = min(max(k - bias, tMin), tMax)
            if rest < t { break }
            output.append(digit(t + (rest - t) % (base - t)))
            rest = (rest - t) / (base - t)
            k += base
        }
        output.append(digit(rest))
    }

    private static func digit(_ value: Int) -> UInt8 {
        UInt8(value < 26 ? 0x61 + value : 0x16 + value)
    }

    /// The new bias (RFC 3492, 6.1; damp 700, skew 38).
    private static func adapt(_ delta: Int, count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / 700 : delta / 2
        delta += delta / count
        var k = 0
        while delta > ((base - tMin) * tMax) / 2 {
            delta /= base - tMin
            k += base
        }
        return k + (base - tMin + 1) * delta / (delta + 38)
    }
}
