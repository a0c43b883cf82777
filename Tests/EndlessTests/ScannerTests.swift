import Endless
import Posix
import Testing

/// What a late viewer needs is found in real media, and in nothing else.
@Suite struct ScannerTests {
    @Test(arguments: [1, 7, 188, 1_000, 65_536])
    func `key frames are found however the bytes are cut`(piece: Int) {
        let (scanner, points) = StreamScanner.scan(Media.video, as: .transport, piece: piece)
        #expect(points.count == 6 && scanner.isRecognised)
        for point in points {
            let flags = Media.video[Int(point) + 5]
            #expect(point % 188 == 0 && flags & 0x40 != 0)
        }
        #expect(abs(scanner.clock.elapsed.inSeconds - 12) < 0.5)
    }

    @Test func `the tables are the program association and the program map`() {
        let tables = StreamScanner.scan(Media.video, as: .transport).scanner.tables
        #expect(tables.count == 2 * 188 && Media.pid(tables, at: 0) == 0)
        let program = Int(tables[4 + 1 + 10] & 0x1F) << 8 | Int(tables[4 + 1 + 11])
        #expect(Media.pid(tables, at: 188) == program)
    }

    @Test func `key frames are found without the flag of random access`() {
        var bytes = Media.video
        for start in stride(from: 0, to: bytes.count, by: 188)
        where bytes[start + 3] & 0x20 != 0 && bytes[start + 4] > 0 {
            bytes[start + 5] &= ~0x40
        }
        let marked = StreamScanner.scan(Media.video, as: .transport).points
        #expect(StreamScanner.scan(bytes, as: .transport).points == marked)
    }

    @Test func `radio in a transport stream can be entered at each unit`() {
        let (scanner, points) = StreamScanner.scan(Media.sound, as: .transport)
        #expect(points.count > 10 && scanner.isRecognised)
    }

    @Test func `packets are found behind other bytes and after lost ones`() {
        var noise = Noise(3)
        let ahead = noise.bytes(1_000)
        let broken = ahead + Media.video[..<100_000] + Media.video[100_050...]
        let points = StreamScanner.scan(broken, as: .transport, piece: 777).points
        #expect(points.count >= 5)
        #expect(points.allSatisfy { broken[Int($0)] == 0x47 && broken[Int($0) + 5] & 0x40 != 0 })
    }

    @Test func `a table with a wrong checksum changes nothing`() {
        var bytes = Media.video
        for start in stride(from: 0, to: bytes.count, by: 188)
        where Media.pid(bytes, at: start) == 0 {
            bytes[start + 4 + 1 + 11] ^= 0x55
        }
        let (scanner, points) = StreamScanner.scan(bytes, as: .transport)
        #expect(points.isEmpty && !scanner.isRecognised && scanner.tables.isEmpty)
    }

    @Test(arguments: [1, 100, 5_000])
    func `frames of audio are found however the bytes are cut`(piece: Int) {
        let (scanner, points) = StreamScanner.scan(Media.audio, as: .audio, piece: piece)
        #expect(scanner.isRecognised && points.count > 400)
        #expect(
            points.allSatisfy {
                Media.audio[Int($0)] == 0xFF && Media.audio[Int($0) + 1] & 0xF6 == 0xF0
            })
        #expect(abs(scanner.clock.elapsed.inSeconds - 12) < 1)
    }

    /// Headers of MPEG 1 layer III, 128 kbit/s at 44.1 kHz, have 417 bytes a frame.
    @Test func `frames of MPEG audio are found`() {
        let frame: [UInt8] = [0xFF, 0xFB, 0x90, 0x00] + [UInt8](repeating: 0x11, count: 413)
        let bytes = [1, 2, 3] + [[UInt8]](repeating: frame, count: 10).joined()
        let points = StreamScanner.scan(bytes, as: .audio, piece: 50).points
        let expected = (2..<10).map { (number: Int) -> Int64 in Int64(3 + number * 417) }
        #expect(points == expected)
    }

    @Test(arguments: 1...40)
    func `whatever bytes come, nothing is kept of them`(seed: Int) {
        var noise = Noise(UInt64(seed))
        for format in StreamFormat.allCases {
            var scanner = StreamScanner(format)
            for round in 0..<60 {
                var bytes = noise.bytes(Int(noise.next()) * 8 + 1)
                // Bytes that look like packets, tables and frames.
                switch (seed + round) % 4 {
                case 0:
                    for index in stride(from: 0, to: bytes.count, by: 188) { bytes[index] = 0x47 }
                case 1:
                    for index in stride(from: 0, to: bytes.count - 2, by: 188) {
                        bytes[index] = 0x47
                        bytes[index + 1] = 0x40
                        bytes[index + 2] = 0
                    }
                case 2: for index in stride(from: 0, to: bytes.count, by: 3) { bytes[index] = 0xFF }
                default: break
                }
                scanner.take(bytes.span)
                for point in scanner.takeAccessPoints() { #expect(point >= 0) }
                #expect(scanner.tables.count <= 16 * 188)
            }
        }
    }

    @Test func `real media with random damage never misleads`() {
        for seed in 1...20 {
            var noise = Noise(UInt64(seed))
            var bytes = Media.video
            for _ in 0..<200 {
                let place = (Int(noise.next()) << 16 | Int(noise.next()) << 8 | Int(noise.next()))
                bytes[place % bytes.count] = noise.next()
            }
            let points = StreamScanner.scan(bytes, as: .transport, piece: 4_000 + seed).points
            #expect(points.allSatisfy { bytes[Int($0)] == 0x47 })
        }
    }
}
