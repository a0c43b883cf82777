import HLS
import Routing
import Testing
import URISyntax

/// Handles encode session and URL as one word, and cannot be forged.
@Suite struct `Handles` {
    static let session = SessionID(0x1234_5678_9abc)

    private func text(
        _ handle: Handle, for use: HandleUse = .link(.media),
        sign: (([UInt8]) -> [UInt8])? = nil
    ) -> [UInt8] {
        var output: [UInt8] = []
        handle.append(to: &output, for: use, sign: sign)
        return output
    }

    @Test(arguments: [
        "https://cdn.example.com/vod/master.m3u8", "http://[2001:db8::1]:8080/a?b=c&d=%2F%25+e;f",
        "https://user:secret@host/p%20q/[x]|y", "http://h/?", "https://h/ünï/日本.ts?x=ü",
    ])
    func `a URL is restored byte for byte`(_ url: String) throws {
        let made = text(Handle(session: Self.session, target: .url(try AbsoluteURL(url))))
        let read = try Handle(text: made)
        #expect(read.session == Self.session)
        guard case .url(let back) = read.target else { return #expect(Bool(false)) }
        #expect(back.bytes == Array(url.utf8))
    }

    @Test func `the text of a handle is safe in any URL path`() throws {
        let made = text(
            Handle(session: Self.session, target: .url(try AbsoluteURL("https://h/?a=1&b=/../"))))
        let safe = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        #expect(made.allSatisfy(safe.contains))
    }

    @Test func `a handle of a long URL's name is restored`() throws {
        let name = (0..<16).map { UInt8($0 * 3) }
        let read = try Handle(text: text(Handle(session: Self.session, target: .name(name))))
        #expect(read.target == .name(name))
    }

    @Test func `a changed byte in a signed handle is detected`() throws {
        let made = text(
            Handle(session: Self.session, target: .url(try AbsoluteURL("https://h/a"))),
            sign: Self.sign)
        #expect(throws: Never.self) { try read(made, for: .link(.media)) }
        for index in made.indices {
            var changed = made
            changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
            #expect(throws: Handle.Fault.self, "byte \(index)") {
                try read(changed, for: .link(.media))
            }
        }
    }

    private static let sign: @Sendable ([UInt8]) -> [UInt8] = { bytes in
        let sum = bytes.reduce(UInt8(7)) { $0 &* 31 &+ $1 }
        return Array(repeating: sum, count: 32)
    }

    private func read(_ text: [UInt8], for use: HandleUse) throws {
        _ = try Handle(
            text: text.span, for: use, sign: Self.sign, signForUser: { _ in nil },
            requiresSignature: true)
    }

    @Test func `a signature is valid for one role only`() throws {
        let handle = Handle(session: Self.session, target: .url(try AbsoluteURL("https://h/a")))
        let uses = ResourceRole.allCases.map { HandleUse.link($0) } + [.pathwayHost]
        for made in uses {
            let signed = text(handle, for: made, sign: Self.sign)
            for used in uses where used != made {
                #expect(throws: Handle.Fault.badSignature, "\(made) as \(used)") {
                    try read(signed, for: used)
                }
            }
        }
    }

    @Test(arguments: [Epoch.first, Epoch(number: 7)])
    func `a signature in front is skipped, checked, and holds for one role only`(
        _ epoch: Epoch
    ) throws {
        let handle = Handle(
            session: Self.session, target: .url(try AbsoluteURL("https://h/a?b")), epoch: epoch)
        var made: [UInt8] = []
        handle.append(to: &made, for: .link(.media), sign: Self.sign, isInFront: true)
        #expect(try Handle(text: made) == handle)
        #expect(throws: Never.self) { try read(made, for: .link(.media)) }
        #expect(throws: Handle.Fault.badSignature) { try read(made, for: .link(.key)) }
        for index in made.indices {
            var changed = made
            changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
            #expect(throws: Handle.Fault.self, "byte \(index)") {
                try read(changed, for: .link(.media))
            }
        }
        for count in made.indices {
            #expect(throws: Handle.Fault.self) {
                try read(Array(made[..<count]), for: .link(.media))
            }
        }
        // The balancer reads the path behind flags, signature, session and epoch.
        let bytes = try #require(Base64URL.decode(made))
        let start = 1 + Handle.signatureLength + 6 + (epoch == .first ? 0 : 4)
        #expect(bytes[start...].elementsEqual("h/a?b".utf8))
    }

    @Test func `a handle that a mount's user signs is read with that key only`() throws {
        let url = try AbsoluteURL("https://mount*x@h/a")
        var made: [UInt8] = []
        Handle(session: Self.session, target: .url(url))
            .append(to: &made, for: .link(.media), sign: Self.sign, isForUser: true)
        func read(
            _ text: [UInt8], for use: HandleUse, by sign: (([UInt8]) -> [UInt8])?
        ) throws -> Handle {
            try Handle(
                text: text.span, for: use, sign: nil,
                signForUser: { $0 == .url(url) ? sign : nil })
        }
        #expect(try Handle(text: made).target == .url(url))
        #expect(try read(made, for: .link(.media), by: Self.sign).isSignedForUser)
        #expect(throws: Handle.Fault.badSignature) {
            try read(made, for: .link(.key), by: Self.sign)
        }
        #expect(throws: Handle.Fault.badSignature) {
            try read(made, for: .link(.media), by: nil)
        }
        #expect(throws: Handle.Fault.badSignature) {
            try read(made, for: .link(.media)) { Self.sign($0 + [1]) }
        }
        let plain = text(Handle(session: Self.session, target: .url(url)))
        #expect(try !read(plain, for: .link(.media), by: Self.sign).isSignedForUser)
    }

    @Test func `a handle with a packed query comes back, and shows its path`() throws {
        let packed = PackedURL(
            scheme: .https, start: Array("h/a".utf8), query: [0x3F, 0, 0xFF, 0x2F])
        let handle = Handle(session: Self.session, target: .packed(packed))
        let made = text(handle)
        #expect(try Handle(text: made) == handle)
        #expect(try #require(Base64URL.decode(made))[7...].starts(with: "h/a?".utf8))
        var bare: [UInt8] = []
        Base64URL.append([65, 0, 0, 0, 0, 0, 1, 0x68], to: &bare)
        #expect(throws: Handle.Fault.malformed) { try Handle(text: bare) }
    }

    @Test func `an unsigned handle is rejected where signatures are required`() throws {
        let made = text(Handle(session: Self.session, target: .url(try AbsoluteURL("https://h/a"))))
        #expect(throws: Handle.Fault.badSignature) {
            try read(made, for: .link(.media))
        }
    }

    @Test(arguments: ["", "A", "AAAA", "!!!!", "AAAAAAAAAA", "_____________", "AQAAAAAAAAAgIA"])
    func `text that is not a handle is rejected`(_ text: String) {
        #expect(throws: Handle.Fault.malformed) { try Handle(text: text.utf8) }
    }
}

@Suite struct `Base64 for URLs` {
    @Test func `bytes of every length are restored`() {
        for length in 0..<70 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 73 &+ length) }
            var text: [UInt8] = []
            Base64URL.append(bytes, to: &text)
            #expect(Base64URL.decode(text) == bytes)
        }
    }

    @Test func `a value has only one valid encoding`() {
        #expect(Base64URL.decode(Array("AA".utf8)) == [0])
        #expect(Base64URL.decode(Array("AB".utf8)) == nil)
        #expect(Base64URL.decode(Array("AA==".utf8)) == nil)
        #expect(Base64URL.decode(Array("AAA".utf8)) == [0, 0])
        #expect(Base64URL.decode(Array("AAB".utf8)) == nil)
    }

    @Test func `a character outside of the alphabet at any position is rejected`() {
        for length in [2, 3, 4, 6, 7, 8, 11] {
            for place in 0..<length {
                for stranger in Array("+/=. ".utf8) + [0, 0x80, 0xFF] {
                    var text = [UInt8](repeating: 0x41, count: length)
                    text[place] = stranger
                    #expect(Base64URL.decode(text) == nil, "\(stranger) at \(place)")
                }
            }
        }
    }
}
