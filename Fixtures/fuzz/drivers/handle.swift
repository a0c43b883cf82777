// Fuzzes what is read out of URLs and tag lines: handles, URLs and attribute lists.
import HLS
import Routing
import URISyntax

/// Runs every check on one input (libFuzzer calls it).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    checkHandle(input)
    checkURL(input)
    checkAttributes(input)
    return 0
}

/// A handle that can be read is written back as one that reads the same.
private func checkHandle(_ input: [UInt8]) {
    guard let handle = try? Handle(text: input) else { return }
    var text: [UInt8] = []
    handle.append(to: &text, for: .link(.segment))
    precondition((try? Handle(text: text)) == handle, "reads differently when written back")
}

/// A URL reads the same from its own text.
private func checkURL(_ input: [UInt8]) {
    guard let url = try? AbsoluteURL(bytes: input) else { return }
    precondition((try? AbsoluteURL(bytes: url.bytes)) == url, "\(url.text) does not read as itself")
    _ = (url.pathAndQuery, url.normalisedForKey, url.redacted, url.origin)
}

/// Attributes lie in the line, in order, and end.
private func checkAttributes(_ input: [UInt8]) {
    var end = 0
    for attribute in AttributeList(input, in: 0..<input.count) {
        precondition(attribute.name.lowerBound >= end, "an attribute begins before the last ends")
        precondition(attribute.value.upperBound <= input.count, "an attribute ends past the line")
        end = attribute.value.upperBound
    }
}
