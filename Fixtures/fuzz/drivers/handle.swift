// Fuzzes what is parsed from URLs and tag lines: handles, URLs and attribute lists.
import HLS
import Routing
import URISyntax

/// Runs every check on one input (called by libFuzzer).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    checkHandle(input)
    checkURL(input)
    checkAttributes(input)
    return 0
}

/// Checks that a parsed handle is serialized to one that names the same target.
///
/// Whether it was signed is not compared: it is serialized without a signature.
private func checkHandle(_ input: [UInt8]) {
    guard let handle = try? Handle(text: input) else { return }
    var text: [UInt8] = []
    handle.append(to: &text, for: .link(.segment))
    guard let again = try? Handle(text: text) else {
        preconditionFailure("a serialized handle cannot be parsed")
    }
    precondition(
        (again.session, again.epoch, again.target)
            == (handle.session, handle.epoch, handle.target), "reads differently when written back")
}

/// Checks that the serialization of a URL parses to the same URL.
private func checkURL(_ input: [UInt8]) {
    guard let url = try? AbsoluteURL(bytes: input) else { return }
    precondition((try? AbsoluteURL(bytes: url.bytes)) == url, "\(url.text) does not read as itself")
    _ = (url.pathAndQuery, url.normalisedForKey, url.redacted, url.origin)
}

/// Checks that attributes lie within the line, in order, and are finite in number.
private func checkAttributes(_ input: [UInt8]) {
    var end = 0
    for attribute in AttributeList(input, in: 0..<input.count) {
        precondition(attribute.name.lowerBound >= end, "an attribute begins before the last ends")
        precondition(attribute.value.upperBound <= input.count, "an attribute ends past the line")
        end = attribute.value.upperBound
    }
}
