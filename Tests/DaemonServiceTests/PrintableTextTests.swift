import CommandSupport
import Testing

/// Text of others on a terminal.
struct PrintableTextTests {
    @Test(arguments: [
        ("EXT-X-\u{9B}2J", "EXT-X- 2J"), ("a\u{1B}[2Jb", "a [2Jb"), ("a\nb\u{7F}c", "a b c"),
        ("a\u{202E}b\u{200B}c\u{2028}d", "a b c d"), ("Löwe 獅子", "Löwe 獅子"), ("", ""),
    ])
    func `characters that a terminal acts on are blanks`(_ text: String, _ shown: String) {
        #expect(PrintableText.oneLine(text) == shown)
    }

    @Test func `the ends of lines stay where a text has several`() {
        #expect(PrintableText.lines("a\u{9B}2J\nb\r\n\u{1B}c\n") == "a 2J\nb \n c\n")
        #expect(PrintableText.lines("a\nb") == "a\nb")
    }
}
