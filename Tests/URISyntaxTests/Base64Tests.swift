import Testing
import URISyntax

@Suite struct Base64Tests {
    /// The examples of RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func `text is encoded and decoded as in RFC 4648`(_ text: String, _ encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded.utf8) == Array(text.utf8))
        #expect(Base64.decode(encoded.utf8.filter { $0 != 0x3D }) == Array(text.utf8))
    }

    @Test func `every byte is restored at every position`() {
        for count in 250...255 {
            let bytes = (0...UInt8(count)).reversed() + [0, 255, 254]
            #expect(Base64.decode(Base64.encode(bytes).utf8) == bytes)
        }
    }

    @Test(arguments: ["Zm9v Yg==", "Zm9v-_", "Zm\u{E9}v", "*"])
    func `characters outside the alphabet are rejected`(_ text: String) {
        #expect(Base64.decode(text.utf8) == nil)
    }
}
