/// The parts of a response head that a load needs, parsed without creating strings.
struct AnswerHead: Equatable {
    let status: Int
    /// The Content-Length; nil without one.
    let length: Int?
    /// Bytes of the head, its empty line included.
    let count: Int

    /// Parses a head; nil until its empty line has arrived.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var lineStart = 0
        var status = 0
        var length: Int?
        for index in 0..<bytes.count where bytes[index] == 0x0A {
            let line = UnsafeRawBufferPointer(rebasing: bytes[lineStart..<index])
            if lineStart == 0 {
                // "HTTP/1.1 200"
                if line.count >= 12 { status = Self.number(line, from: 9) ?? 0 }
            } else if line.isEmpty || line.count == 1 && line[0] == 0x0D {
                self.status = status
                self.length = length
                count = index + 1
                return
            } else if Self.hasName(line) {
                length = Self.number(line, from: Self.name.utf8CodeUnitCount)
            }
            lineStart = index + 1
        }
        return nil
    }

    private static let name: StaticString = "content-length:"

    private static func hasName(_ line: UnsafeRawBufferPointer) -> Bool {
        guard line.count > name.utf8CodeUnitCount else { return false }
        for index in 0..<name.utf8CodeUnitCount
        where line[index] | 0x20 != name.utf8Start[index] | 0x20 {
            return false
        }
        return true
    }

    /// The number after blanks; nil without digits.
    private static func number(_ line: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        while index < line.count, line[index] == 0x20 { index += 1 }
        var value: Int?
        while index < line.count, (0x30...0x39).contains(line[index]), value ?? 0 < 1 << 50 {
            value = (value ?? 0) * 10 + Int(line[index] - 0x30)
            index += 1
        }
        return value
    }
}
