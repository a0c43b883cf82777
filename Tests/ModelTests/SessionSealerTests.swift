import Glibc
import HLS
import HTTP
import Posix
import Routing
import Testing
import URISyntax

@testable import Model

/// Sessions in links: sealed alike by all nodes, opened by none but them.
@Suite struct SessionSealerTests {
    private static let first = ClusterKey(secret: Array(1...32))
    private static let second = ClusterKey(secret: Array(33...64))
    private static let session = SessionID(0x1234_5678_9abc)

    private func content(_ headers: KeyValuePairs<String, String>, window: Int? = nil)
        -> SealedContent
    {
        var fields = Fields()
        for (name, value) in headers { fields.append(name, value) }
        return SealedContent(fields: fields, window: window)
    }

    private func sealer(_ keys: ClusterKey..., token: String? = nil) -> SessionSealer {
        SessionSealer(keys: keys, token: token)
    }

    @Test func `what was sealed is opened by another node`() throws {
        var sealed = content(
            ["Referer": "https://a.example/?x=1", "Cookie": "a=b; c=ü", "X-Empty": ""],
            window: 7_200)
        sealed.limit = VariantLimit(height: 720, bandwidth: 1 << 31)
        sealed.variables = ["path": "a/b", "q": ""]
        let seal = try #require(sealer(Self.first).seal(sealed, of: Self.session))
        let opened = try sealer(Self.second, Self.first).open(seal.text, of: Self.session)
        #expect(opened.content == sealed)
        #expect(opened.seal.text == seal.text)
    }

    @Test(arguments: [
        VariantLimit.none, VariantLimit(height: 1), VariantLimit(bandwidth: 2_500_000),
    ])
    func `a limit of variants is sealed with a window and without`(_ limit: VariantLimit) throws {
        for window in [nil, 60] {
            var sealed = content(["Referer": "a"], window: window)
            sealed.limit = limit
            let seal = try #require(sealer(Self.first).seal(sealed, of: Self.session))
            #expect(try sealer(Self.first).open(seal.text, of: Self.session).content == sealed)
        }
    }

    @Test func `the same session has the same text each time, and another one another text`()
        throws
    {
        let (one, other) = (content(["Referer": "a"]), content(["Referer": "b"]))
        func text(_ content: SealedContent, _ id: SessionID) throws -> String {
            try #require(sealer(Self.first).seal(content, of: id)).text
        }
        #expect(try text(one, Self.session) == text(one, Self.session))
        #expect(try text(one, Self.session) != text(other, Self.session))
        #expect(try text(one, Self.session) != text(one, SessionID(1)))
    }

    @Test func `no changed, cut or foreign text is opened`() throws {
        let sealer = sealer(Self.first)
        let seal = try #require(sealer.seal(content(["Referer": "a"]), of: Self.session))
        let text = Array(seal.text.utf8)
        for index in text.indices {
            var changed = text
            changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
            #expect(throws: SealFault.self, "byte \(index)") {
                try sealer.open(String(decoding: changed, as: UTF8.self), of: Self.session)
            }
            #expect(throws: SealFault.self, "cut at \(index)") {
                try sealer.open(
                    String(decoding: text[..<index], as: UTF8.self), of: Self.session)
            }
        }
        #expect(throws: SealFault.forged) { try sealer.open(seal.text, of: SessionID(1)) }
        #expect(throws: SealFault.malformed) {
            try sealer.open(String(repeating: "A", count: 100_000), of: Self.session)
        }
    }

    @Test func `a retired key is named, and opens nothing`() throws {
        let sealer = sealer(Self.first)
        let seal = try #require(sealer.seal(content(["Referer": "a"]), of: Self.session))
        sealer.replace(keys: [Self.second, Self.first])
        #expect(try sealer.open(seal.text, of: Self.session).seal.keyID == Self.first.id)
        sealer.replace(keys: [Self.second])
        #expect(throws: SealFault.unknownKey(Self.first.name)) {
            try sealer.open(seal.text, of: Self.session)
        }
        #expect(throws: SealFault.unknownKey(Self.first.name)) { try sealer.signer(of: seal.text) }
    }

    @Test func `links of another access token are signed otherwise`() throws {
        let text = try #require(
            sealer(Self.first).seal(content(["Referer": "a"]), of: Self.session)
        ).text
        let signatures = try [nil, "token-one", "token-two"].map {
            try sealer(Self.first, token: $0).signer(of: text).sign([1])
        }
        #expect(Set(signatures).count == 3)
    }

    @Test func `headers are sealed up to the limit, and refused in words above it`() throws {
        let fits = content(["X-Long": String(repeating: "x", count: 2_700)])
        let seal = try #require(sealer(Self.first).seal(fits, of: Self.session))
        #expect(seal.text.utf8.count <= 4_096)
        #expect(SessionSealer.fault(of: fits.fields) == nil)
        let long = content(["X-Long": String(repeating: "x", count: 8_000)])
        #expect(sealer(Self.first).seal(long, of: Self.session) == nil)
        #expect(SessionSealer.fault(of: long.fields)?.contains("8006 bytes") == true)
    }

    @Test func `a target shares its seal with relative links where these lead back to it`() throws {
        let seal = try #require(
            sealer(Self.first).seal(content(["Referer": "a"]), of: Self.session))
        #expect(seal.isShared(by: "\(seal.path)/p/AAAA/list.m3u8"))
        #expect(seal.isShared(by: "\(seal.path)/p/AAAA/list.m3u8?_HLS_msn=1/2"))
        for target in [
            "\(seal.path)/p/AAAA", "\(seal.path)/p/AAAA/", "\(seal.path)/p/AAAA/b/list.m3u8",
            "\(seal.path)x/p/AAAA/list.m3u8", "/p/AAAA/list.m3u8",
        ] { #expect(!seal.isShared(by: target), "\(target)") }
    }
}

/// Files of keys: what is wrong with one is said.
@Suite struct ClusterKeyFileTests {
    private let one = ClusterKey(secret: Array(1...32))
    private let two = ClusterKey(secret: Array(33...64))

    @Test func `keys come back in their order`() throws {
        let text = "\r\n" + ClusterKeyFile(keys: [two, one]).text
        #expect(try ClusterKeyFile(text: text, path: "f").keys == [two, one])
    }

    private func fault(_ text: String) -> String {
        do throws(ClusterKeyFile.Fault) {
            _ = try ClusterKeyFile(text: text, path: "f")
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test(
        arguments: [
            (0, 0, 0o600, true), (7, 7, 0o600, true), (7, 7, 0o640, false), (7, 7, 0o604, false),
            (0, 7, 0o640, true), (0, 7, 0o660, false), (0, 7, 0o644, false), (0, 8, 0o640, false),
            (7, 0, 0o640, true),
        ] as [(uid_t, gid_t, mode_t, Bool)])
    func `a file is for its owner, or root's for the group of the daemon`(
        owner: uid_t, group: gid_t, mode: mode_t, isSecret: Bool
    ) {
        var found = stat()
        found.st_uid = owner
        found.st_gid = group
        found.st_mode = S_IFREG | mode
        #expect(ClusterKeyFile.isSecret(found, group: 7) == isSecret)
    }

    @Test func `a fault names its line and what to do`() {
        #expect(fault("").contains("holds no key"))
        #expect(fault("# only\n").contains("holds no key"))
        #expect(fault(one.line + "\nabc\n").contains("line 2"))
        #expect(fault(one.line.dropLast() + "g\n").contains("64 hexadecimal digits"))
        #expect(fault(String(repeating: "0", count: 64)).contains("line 1"))
        #expect(fault("\(one.line)\n\(one.line)\n").contains("repeats"))
        let many = (1...5).map { ClusterKey(secret: [UInt8](repeating: 7, count: 31) + [$0]).line }
        #expect(fault(many.joined(separator: "\n")).contains("more than 4 keys"))
    }
}

/// Long URLs in handles.
@Suite struct LongURLTests {
    private static let letters = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

    /// A token without any order that a compressor finds.
    private static func token(_ count: Int) -> String {
        var state: UInt64 = 1
        return String(
            (0..<count).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return letters[Int(state >> 58)]
            })
    }

    @Test func `a URL with a long query comes back, and takes about its own length`() throws {
        let url = try AbsoluteURL("https://cdn.example/vod/seg%201.ts?token=\(Self.token(2_000))")
        let target = try #require(LongURL.target(url))
        let handle = Handle(session: SessionID(1), target: target)
        var text: [UInt8] = []
        handle.append(to: &text, for: .link(.segment))
        // The token's six bits a byte, and some 40 bytes.
        #expect(text.count < url.bytes.count + 64)
        guard case .packed(let packed) = try Handle(text: text).target else {
            return #expect(Bool(false))
        }
        #expect(packed.start == Array("cdn.example/vod/seg%201.ts".utf8))
        #expect(LongURL.url(of: packed)?.bytes == url.bytes)
    }

    @Test func `what cannot be carried is left to the table`() throws {
        let random = Self.token(9_000)
        #expect(LongURL.target(try AbsoluteURL("https://h/a?\(random)")) == nil)
        #expect(LongURL.target(try AbsoluteURL("https://h/\(random)")) == nil)
        let path = try AbsoluteURL("https://h/\(random.prefix(3_000))")
        #expect(LongURL.target(path) == .url(path))
    }

    @Test func `nothing that was not packed so is a URL, and none expands without bound`() throws {
        func url(_ query: [UInt8], _ start: String = "h/a") -> AbsoluteURL? {
            LongURL.url(of: PackedURL(scheme: .https, start: Array(start.utf8), query: query))
        }
        let bomb = try AbsoluteURL("https://h/a?\(String(repeating: "a", count: 32_000))")
        guard case .packed(let packed)? = LongURL.target(bomb) else {
            return #expect(Bool(false))
        }
        #expect(url(packed.query)?.bytes == bomb.bytes)
        #expect(url(packed.query, "h/\(String(repeating: "b", count: 1_000))") == nil)
        #expect(url(packed.query, "not a host/a") == nil)
        for index in packed.query.indices {
            #expect(url(Array(packed.query[..<index])) == nil)
        }
        #expect(url(packed.query + [0]) == nil)
        #expect(url([]) == nil)
    }
}
