import HTTP
import Posix
import Routing
import Testing
import URISyntax

@testable import Model
@testable import Upstream

/// Cookies in links, and objects that only nodes read: sealed with the keys of a cluster.
@Suite struct SealedCookiesTests {
    private static let first = ClusterKey(secret: Array(1...32))
    private static let second = ClusterKey(secret: Array(33...64))
    private static let session = SessionID(0x1234_5678_9abc)
    private let time = WallTime(seconds: 1_700_000_000)

    /// The cookies of a node, which set these lines.
    private func node(
        _ keys: ClusterKey..., setting lines: [String] = [], at time: WallTime? = nil
    ) throws -> CarriedCookies {
        let node = CarriedCookies(SessionSealer(keys: keys, token: nil))
        let url = try AbsoluteURL("https://cdn.example/a/l.m3u8")
        node.note(
            lines.map { ReceivedCookie(url: url, value: $0) }, of: Self.session,
            now: time ?? self.time)
        return node
    }

    private func text(_ node: CarriedCookies) throws -> Substring {
        Substring(try #require(node.text(of: Self.session)))
    }

    private func lines(_ node: CarriedCookies) -> [String] {
        node.takePending(of: Self.session).map(\.value)
    }

    @Test func `cookies come back at another node, once`() throws {
        let sender = try node(Self.first, setting: ["a=1; Path=/", "b=ü; Secure"])
        let receiver = try node(Self.first)
        receiver.adopt(try text(sender), of: Self.session)
        #expect(lines(receiver) == ["a=1; Path=/", "b=ü; Secure"])
        #expect(lines(receiver).isEmpty)
        receiver.adopt(try text(sender), of: Self.session)
        #expect(lines(receiver).isEmpty, "the same text brings nothing new")
    }

    @Test func `no changed, cut or foreign text brings a cookie`() throws {
        let bytes = Array(try text(node(Self.first, setting: ["a=1"])).utf8)
        for index in bytes.indices {
            var changed = bytes
            changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
            let other = try node(Self.first)
            other.adopt(Substring(decoding: changed, as: UTF8.self), of: Self.session)
            other.adopt(Substring(decoding: bytes[..<index], as: UTF8.self), of: Self.session)
            #expect(lines(other).isEmpty, "byte \(index)")
        }
        let other = try node(Self.first)
        let whole = Substring(decoding: bytes, as: UTF8.self)
        other.adopt(whole, of: SessionID(1))
        #expect(other.takePending(of: SessionID(1)).isEmpty, "another session")
        other.adopt(Substring(String(repeating: "A", count: 100_000)), of: Self.session)
        #expect(lines(other).isEmpty)
        // The text of a session's headers is none of its cookies.
        var fields = Fields()
        fields.append("X-A", "1")
        let seal = SessionSealer(keys: [Self.first], token: nil)
            .seal(SealedContent(fields: fields), of: Self.session)
        other.adopt(Substring(try #require(seal).text), of: Self.session)
        #expect(lines(other).isEmpty)
    }

    @Test func `a key that is on its way in opens, and a retired one does not`() throws {
        let sent = try text(node(Self.first, setting: ["a=1"]))
        let both = try node(Self.second, Self.first)
        both.adopt(sent, of: Self.session)
        #expect(lines(both) == ["a=1"])
        let later = try node(Self.second)
        later.adopt(sent, of: Self.session)
        #expect(lines(later).isEmpty)
    }

    @Test func `after a change of keys the same cookies are sealed with the new key`() throws {
        let sealer = SessionSealer(keys: [Self.first], token: nil)
        let sender = CarriedCookies(sealer)
        let url = try AbsoluteURL("https://cdn.example/a/l.m3u8")
        sender.note([ReceivedCookie(url: url, value: "a=1")], of: Self.session, now: time)
        let before = try text(sender)
        sealer.replace(keys: [Self.second, Self.first])
        #expect(try text(sender) != before)
        let receiver = try node(Self.second)
        receiver.adopt(try text(sender), of: Self.session)
        #expect(lines(receiver) == ["a=1"])
    }

    @Test func `an older text does not replace newer cookies`() throws {
        let old = try text(node(Self.first, setting: ["a=old"]))
        let receiver = try node(Self.first, setting: ["a=new"], at: time + .seconds(5))
        receiver.adopt(old, of: Self.session)
        #expect(lines(receiver).isEmpty)
    }

    @Test func `cookies that are too long for a link are in none, and harm no others`() throws {
        let long = "a=" + String(repeating: "x", count: 1_023)
        #expect(try node(Self.first, setting: [long]).text(of: Self.session) == nil)
        let mixed = try node(Self.first, setting: [long, "b=1"])
        let receiver = try node(Self.first)
        receiver.adopt(try text(mixed), of: Self.session)
        #expect(lines(receiver) == ["b=1"])
        // Each of them is short enough, but all of them are not.
        let many = (0..<4).map { "c\($0)=" + String(repeating: "x", count: 900) }
        #expect(try node(Self.first, setting: many).text(of: Self.session) == nil)
    }

    @Test func `of many cookies the latest are carried`() throws {
        let sender = try node(Self.first, setting: (0..<40).map { "c\($0)=1" })
        let receiver = try node(Self.first)
        receiver.adopt(try text(sender), of: Self.session)
        #expect(lines(receiver) == (24..<40).map { "c\($0)=1" })
    }

    @Test func `an object is opened under its own name and by a key in force alone`() throws {
        let sealer = SessionSealer(keys: [Self.first], token: nil)
        let box = try #require(sealer.seal(object: Array("order".utf8), named: "a"))
        #expect(sealer.open(object: box, named: "a") == Array("order".utf8))
        #expect(sealer.open(object: box, named: "b") == nil)
        for index in box.indices {
            var changed = box
            changed[index] ^= 1
            #expect(sealer.open(object: changed, named: "a") == nil, "byte \(index)")
            #expect(sealer.open(object: box[..<index], named: "a") == nil, "cut at \(index)")
        }
        sealer.replace(keys: [Self.second, Self.first])
        #expect(sealer.open(object: box, named: "a") != nil)
        sealer.replace(keys: [Self.second])
        #expect(sealer.open(object: box, named: "a") == nil)
    }
}
