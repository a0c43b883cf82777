import HLS
import Testing

/// Detecting pages and messages in place of media.
@Suite struct PageDetectorTests {
    @Test(
        arguments: [
            ("<!DOCTYPE html>", .page), ("<HTML lang=en>", .page), ("\u{FEFF}\r\n <html>", .page),
            ("<?xml version='1.0'?>\n<!DOCTYPE HTML PUBLIC", .page),
            ("<!-- portal -->\n<!-- two --><html>", .page), ("<script>location=1</script>", .page),
            ("{\"error\":1}", .object), ("{ }", .object), ("\n{\n  \"a\": \"ä\"", .object),
            ("", .undecided), (" \n", .undecided), ("<!doct", .undecided), ("<", .undecided),
            ("<?xml version='1.0'?>", .undecided), ("<!-- never closed", .undecided),
            ("{", .undecided), ("<?xml version='1.0'?><tt xmlns=", .other), ("<svg>", .other),
            ("<secret/>", .other), ("G@", .other), ("WEBVTT\n\n<html>", .other),
            ("{\"a\u{0}", .other), ("{}\u{1}", .other), ("{1", .other), ("[1]", .other),
        ] as [(String, PageDetector.Verdict)])
    func `the first bytes show a page or a message`(text: String, verdict: PageDetector.Verdict) {
        #expect(PageDetector.inspect(Array(text.utf8)) == verdict)
    }

    @Test func `no bytes of a key or an encrypted segment are taken for a page`() {
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                let found = PageDetector.inspect([0x3C, first, second, 0x9F] + [UInt8](0..<12))
                #expect(found == .other, "\(first) \(second)")
            }
        }
    }
}
