import FuzzSupport
import Glibc
import Logging
import Posix
import Testing

@testable import DurableState

/// Text files of versions up to 0.4.0.
@Suite struct FormerFilesTests {
    private static let key = String(repeating: "0a", count: 32)
    static let pins = "SLUICE PINS 1\nff\t7\thttp://h/%09\t\(key),\(key)\n1\t8\tu\t\nEND 2\n"
    static let download = """
        SLUICE DOWNLOAD 1
        url http://h/a.m3u8
        header Cookie:a: b
        variant 720
        from 1.5
        rate 2000
        name Some film
        state paused
        reason no room
        pieces 9
        done 8
        bytes 700
        seconds 0.5
        label 720p
        END

        """
    static let recording = """
        SLUICE RECORDING 1
        id 00aa11bb
        url http://h/live.m3u8
        header X: y
        set variant best
        started 5
        until 9
        state running
        multivariant 1
        list 0 http://h/v.m3u8 720p 2 Mbit/s
        bytes 70
        milliseconds 1500
        segments 3
        lost 1
        END

        """

    private func folder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        for name in ["downloads", "recordings", "recordings/windows"] {
            try makeFolder("\(folder.path)/\(name)")
        }
        for (name, text) in [
            ("pins", Self.pins), ("downloads/00000000000a", Self.download),
            ("downloads/day", "2026-11-23 55\n"), ("recordings/00aa11bb", Self.recording),
        ] {
            try writeFile("\(folder.path)/\(name)", Array(text.utf8))
        }
        return folder
    }

    private func move(_ folder: TemporaryFolder) throws -> StateDatabase {
        let state = try folder.open()
        try state.importFormer(FormerFiles(folder: folder.path, log: state.log).places)
        return state
    }

    private func expectAll(in state: StateDatabase) {
        let pins = state.records(PinRecord.self)
        #expect(pins.map(\.title) == [1, 255] && pins.last?.keys.count == 64)
        let downloads = state.records(DownloadRecord.self)
        #expect(downloads.count == 1)
        #expect(downloads.first?.order.headers == "Cookie:a: b\n")
        #expect(downloads.first?.order.variant == "720" && downloads.first?.order.from == 1.5)
        #expect(downloads.first?.reason == "no room" && downloads.first?.labels == ["720p"])
        #expect(
            state.records(DownloadDayRecord.self) == [.init(day: "2026-11-23", bytes: 55)])
        let recordings = state.records(RecordingRecord.self)
        #expect(recordings.count == 1 && recordings.first?.seconds == 1.5)
        #expect(
            recordings.first?.lists == [.init(url: "http://h/v.m3u8", label: "720p 2 Mbit/s")])
        #expect(recordings.first?.order.headers == "X:y\n")
    }

    @Test func `all former files are migrated and removed`() throws {
        let folder = try folder()
        let state = try move(folder)
        defer { state.close() }
        expectAll(in: state)
        #expect(try listFolder(folder.path + "/downloads").isEmpty)
        #expect(try listFolder(folder.path + "/recordings").map(\.name) == ["windows"])
        #expect(!folder.names.contains("pins"))
    }

    /// A folder in each state that a killed run may leave: files without a commit, and any of the
    /// files that still exist after it.
    @Test func `a kill at any point of the migration loses and duplicates nothing`() throws {
        let whole = try folder()
        // Killed before the commit.
        try whole.open().close()
        let state = try move(try whole.copy())
        expectAll(in: state)
        state.close()
        // Killed after the commit, with some of the files removed.
        let files = ["pins", "downloads/00000000000a", "downloads/day", "recordings/00aa11bb"]
        for count in 0...files.count {
            let folder = try whole.copy()
            let moved = try move(folder)
            moved.remove(PinRecord.self, key: [.integer(255)])
            try moved.commit()
            moved.close()
            for name in files.dropFirst(count) {
                try writeFile(
                    "\(folder.path)/\(name)", try readWhole("\(whole.path)/\(name)", atMost: .max))
            }
            let next = try move(folder)
            defer { next.close() }
            #expect(next.records(PinRecord.self).map(\.title) == [1], "\(count)")
            #expect(next.records(DownloadRecord.self).count == 1)
            for name in files { #expect(access("\(folder.path)/\(name)", F_OK) != 0, "\(name)") }
        }
    }

    @Test func `readable entries of damaged pins are migrated`() throws {
        let folder = try folder()
        try writeFile(folder.path + "/pins", Array(Self.pins.utf8.dropLast(9)))
        let state = try move(folder)
        defer { state.close() }
        #expect(state.records(PinRecord.self).map(\.title) == [255])
        #expect(folder.names.contains { $0.hasPrefix("pins.damaged-") })
    }

    @Test(arguments: ["", "x", "SLUICE DOWNLOAD 1\nEND\n", "SLUICE DOWNLOAD 1\nurl a\n"])
    func `a damaged file is left in place, and the others are migrated`(text: String) throws {
        let folder = try folder()
        try writeFile(folder.path + "/downloads/00000000000b", Array(text.utf8))
        let state = try move(folder)
        defer { state.close() }
        expectAll(in: state)
        #expect(try listFolder(folder.path + "/downloads").map(\.name) == ["00000000000b"])
    }

    @Test func `malformed texts never trap`() {
        var random = SeededNumbers(seed: 1)
        for text in [Self.pins, Self.download, Self.recording] {
            for _ in 0..<300 {
                var bytes = Array(text.utf8)
                for _ in 0..<3 {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255)
                }
                let damaged = String(decoding: bytes, as: UTF8.self)
                _ = FormerPins.parse(damaged)
                _ = FormerDownload.record("00000000000a", damaged)
                _ = FormerDownload.day(damaged)
                _ = FormerRecording.record(damaged)
            }
        }
    }
}

extension FormerFilesTests {
    @Test func `orders of purges are parsed, and incomplete ones are dropped`() {
        let text = """
            SLUICE PURGE 1
            given 5
            url http://a/x y
            url http://a/z
            given 6
            title 7
            given 7
            host a:80
            given 8
            unused-since 9
            END

            """
        let found = FormerPurge.records(text) ?? []
        #expect(found.map(\.kind) == [.url, .title, .host, .unusedSince])
        #expect(found.first?.items == ["http://a/x y", "http://a/z"])
        #expect(found.map(\.given) == [5, 6, 7, 8] && found.map(\.number) == [0, 1, 2, 3])
        #expect(FormerPurge.records("SLUICE PURGE 1\nEND\n") == [])
        for text in [
            "", "\n", "SLUICE PURGE 1\n", "SLUICE PURGE 2\nEND\n", "SLUICE PURGE 1\nhost a\nEND\n",
            "SLUICE PURGE 1\ngiven 1\nEND\n", "SLUICE PURGE 1\ngiven -1\nhost a\nEND\n",
            "SLUICE PURGE 1\ngiven 99999999999999999999\nhost a\nEND\n",
            "SLUICE PURGE 1\ngiven 1\ntitle 18446744073709551616\nEND\n",
            "SLUICE PURGE 1\ngiven 1\nhost a\nhost b\nEND\n", "SLUICE PURGE 1\ngiven 1\nhost a\n",
            "SLUICE PURGE 1\ngiven 1\nall\nEND\n",
        ] {
            #expect(FormerPurge.records(text) == nil, "\(text)")
        }
    }

    @Test func `crashes and networks are parsed line by line`() {
        let crashes = FormerProbation.records(
            "SLUICE PROBATION 1\nfeed:a 1 running\nb 2 waiting\nc -1 running\nd\nEND\n")
        #expect(
            crashes == [
                CrashRecord(item: "feed:a", crashes: 1, isRunning: true),
                CrashRecord(item: "b", crashes: 2, isRunning: false),
            ])
        #expect(FormerProbation.records("x\nEND\n") == nil)
        let networks = FormerNetworks.records("eth0 4 9000\nbad 0 1\nwlan0 2 5\n")
        #expect(networks.map(\.name) == ["eth0", "wlan0"])
        #expect(networks.map(\.noted) == [3, 1])
    }

    @Test func `small records are parsed as they were written`() {
        RecordTests().expectSame(CrashRecord(item: "feed:a", crashes: 2, isRunning: true))
        RecordTests().expectSame(
            NetworkRecord(name: "eth0", transfers: 4, goodput: 9_000, noted: 1))
        for kind in [PurgeRecord.Kind.url, .title, .host, .prefix, .unusedSince] {
            RecordTests().expectSame(
                PurgeRecord(number: 3, given: 4, kind: kind, items: ["a b", "c"]))
        }
    }
}
