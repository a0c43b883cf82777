import HLS
import HTTP
import Testing
import URISyntax

@testable import Diagnosis

/// How the state of a machine and the responses of an origin are judged.
@Suite struct FindingTests {
    private func size(_ count: Int64) -> String { "\(count)" }

    // MARK: The machine

    @Test(arguments: [
        (100, 0, 50, 100, Finding.Verdict.problem), (100, 0, 90, 20, .warning),
        (100, 0, 50, 20, .ok), (30, 90, 90, 20, .ok), (30, 95, 90, 20, .ok),
    ])
    func `room is free space beyond the reserve, compared with what the cache may still use`(
        free: Int64, kept: Int64, budget: Int64, reserve: Int64, verdict: Finding.Verdict
    ) {
        let finding = MachineFindings.room(
            free: free, kept: kept, budget: budget, reserve: reserve, size: size)
        #expect(finding.verdict == verdict)
        #expect((finding.advice == nil) == (verdict == .ok))
    }

    @Test func `a folder on a file system without inodes does not need another owner`() {
        func advice(isFull: Bool, files: Int64?) -> String {
            MachineFindings.unwritable("/c", because: "no", isFull: isFull, freeFiles: files)
                .advice ?? ""
        }
        #expect(advice(isFull: true, files: 0).contains("inodes"))
        #expect(advice(isFull: true, files: 9).contains("quota"))
        #expect(advice(isFull: true, files: nil).contains("quota"))
        #expect(advice(isFull: false, files: 0).contains("chown"))
        let readOnly = MachineFindings.unwritable(
            "/c", because: "no", isFull: false, isReadOnly: true, freeFiles: 9)
        #expect(readOnly.advice?.contains("ReadWritePaths=") == true)
    }

    @Test(arguments: [(0, false), (1, true), (999, true), (1_000, false)] as [(Int64, Bool)])
    func `few files left are a warning; 0 means nothing where files can be created`(
        free: Int64, isTold: Bool
    ) {
        #expect((MachineFindings.files(free: free)?.verdict == .warning) == isTold)
    }

    @Test func `the longest mount point above a path determines its file system`() {
        let mounts = """
            1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
            2 1 0:5 / /var/cache rw - overlay overlay rw
            3 1 0:6 / /var/cache/my\\040disk rw shared:9 - nfs4 server:/x rw
            4 1 0:7 / /var/cache rw - tmpfs tmpfs rw
            bad line
            """
        func kind(_ path: String) -> String? {
            MachineFindings.fileSystem(of: path, mounts: mounts)
        }
        #expect(kind("/home") == "ext4")
        #expect(kind("/var/cache/sluice") == "tmpfs")
        #expect(kind("/var/cachet") == "ext4")
        #expect(kind("/var/cache/my disk/a") == "nfs4")
        #expect(MachineFindings.fileSystem(of: "/", mounts: "") == nil)
    }

    @Test(arguments: [
        ("ext4", Finding.Verdict.ok), ("nfs4", .warning), ("overlay", .warning),
        ("tmpfs", .warning), ("fuse.sshfs", .warning),
    ])
    func `file systems that lose or share stored files cause a warning`(
        kind: String, verdict: Finding.Verdict
    ) {
        #expect(MachineFindings.fileSystem(kind).verdict == verdict)
    }

    @Test(arguments: [(0, false), (1_735_689_599, false), (1_800_000_000, true), (.max, false)])
    func `the clock must show a plausible year`(now: Int64, isGood: Bool) {
        #expect((MachineFindings.clock(now).verdict == .ok) == isGood)
    }

    @Test func `the clock is compared with the origin's, including the age of a stored response`() {
        let date = HTTPDate.format(1_800_000_000)
        func verdict(_ now: Int64, age: Int64 = 0) -> Finding.Verdict? {
            MachineFindings.clock(now, date: date, age: age)?.verdict
        }
        #expect(verdict(1_800_000_010) == .ok)
        #expect(verdict(1_800_000_100) == .warning)
        #expect(verdict(1_799_999_000) == .warning)
        #expect(verdict(1_800_000_100, age: 100) == .ok)
        #expect(verdict(1_800_000_000, age: .max) == .warning)
        #expect(MachineFindings.clock(0, date: "yesterday", age: 0) == nil)
    }

    @Test func `available memory is limited by the control group`() {
        let text = "MemTotal: 8000000 kB\nMemAvailable:     500000 kB\n"
        #expect(MachineFindings.memory(text, limit: nil, size: size).verdict == .ok)
        #expect(MachineFindings.memory(text, limit: 64_000_000, size: size).verdict == .warning)
        #expect(MachineFindings.memory("", limit: nil, size: size).verdict == .warning)
    }

    // MARK: The origin

    @Test(arguments: [
        (206, "bytes 0-99/500", 100, Finding.Verdict.ok), (206, "bytes 0-49/50", 50, .ok),
        (206, "bytes 0-99/*", 100, .ok), (206, "bytes 1-100/500", 100, .problem),
        (206, "bytes 0-99/500", 90, .problem), (206, "0-99", 100, .problem),
        (200, "", 500, .warning), (416, "bytes */5", 0, .warning), (500, "", 0, .problem),
    ])
    func `a range must be answered with exactly its bytes`(
        status: Int, range: String, count: Int, verdict: Finding.Verdict
    ) {
        var fields = Fields()
        if !range.isEmpty { fields.append(.contentRange, range) }
        let finding = OriginFindings.range(status, fields, count: count, asked: 0...99, "ranges")
        #expect(finding.verdict == verdict)
    }

    @Test func `fields that prevent storing a segment cause a warning`() {
        #expect(OriginFindings.caching(["Cache-Control": "no-store"]).verdict == .warning)
        #expect(OriginFindings.caching(["Vary": "Origin, *"]).verdict == .warning)
        let good: Fields = ["Cache-Control": "max-age=5", "Vary": "Origin"]
        #expect(OriginFindings.caching(good).verdict == .ok)
        #expect(OriginFindings.validators([:]).verdict == .warning)
        #expect(OriginFindings.validators(["ETag": "W/\"a\""]).verdict == .warning)
        #expect(OriginFindings.validators(["ETag": "\"a\""]).verdict == .ok)
        #expect(OriginFindings.conditionalRange(206).verdict == .warning)
        #expect(OriginFindings.conditionalRange(200).verdict == .ok)
    }

    @Test func `phases are computed from times since the start`() {
        let phases = RequestPhases(
            name: 10_000, connect: 30_000, secure: 90_000, firstByte: 190_000)
        #expect(phases.text == "name 10 ms, connect 20 ms, TLS 60 ms, first byte 100 ms")
        #expect(RequestPhases(firstByte: 4_000).text.contains("TLS") == false)
        #expect(OriginFindings.times(phases, "origin").verdict == .ok)
        #expect(OriginFindings.times(.init(firstByte: 4_000_000), "origin").verdict == .warning)
    }

    @Test func `a difference is reported by its offset`() {
        #expect(OriginFindings.comparison([1, 2], [1, 2]).verdict == .ok)
        #expect(OriginFindings.comparison([1, 2], [1, 3]).text.contains("from byte 1 on"))
        #expect(OriginFindings.comparison([1, 2], [1]).text.contains("in length"))
    }

    // MARK: Players

    private func findings(_ text: String, at base: String = "https://h/l.m3u8") throws -> [String] {
        let url = try AbsoluteURL(base)
        let body = Array(text.utf8)
        let outline = try PlaylistOutline(body, base: url)
        return PlayerFindings.of(body, outline, at: url).map(\.text)
    }

    private static let start = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n"

    @Test(arguments: [
        ("\u{FEFF}" + start + "a.ts\n", "a byte order mark before #EXTM3U"),
        (start + "a.ts \n", "blanks after a URI"), (start + "a.ts\t\r\n", "blanks after a URI"),
        (start + "a\n", "URIs without a file extension"),
        (start + "http://h/a.ts\n", "an https playlist names http URLs"),
        (start + "https://other/a.ts\n", "it names several hosts"),
        (
            "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"b\"\n"
                + "#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n", "EXT-X-DEFINE"
        ),
        (
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k.key\"\n"
                + "#EXTINF:4,\na.ts\n", "SAMPLE-AES encryption"
        ),
    ])
    func `each feature that breaks some players is reported`(text: String, expected: String) throws
    {
        #expect(try findings(text) == [expected])
    }

    @Test func `a plain playlist has no such feature`() throws {
        #expect(try findings(Self.start + "a.ts\n") == [])
    }
}
