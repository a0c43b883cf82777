// Fuzzes configuration files: their shape, and the settings of origins with key rules. Every fault
// becomes words; nothing traps.
import CachePolicy
import FoundationEssentials
import Lookahead
import URISyntax

/// Reads one input as a file and as the values of options (called by libFuzzer).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: count)
    readFile(Data(bytes))
    readOptions(String(decoding: bytes, as: UTF8.self))
    return 0
}

private func readFile(_ data: Data) {
    let decoder = JSONDecoder()
    _ = try? decoder.decode(FileShape.self, from: data)
    guard let file = try? decoder.decode(OriginsFile.self, from: data) else { return }
    var reader = OriginsReader()
    reader.read(file)
    check(reader)
    // What is read twice does not come to more origins.
    let count = reader.origins.all.count
    reader.read(file)
    precondition(reader.origins.all.count == count, "origins are doubled")
}

private func readOptions(_ text: String) {
    var reader = OriginsReader()
    for line in text.split(separator: "\n").prefix(20).map(String.init) {
        for option in OriginsReader.Option.allCases { reader.read(option, [line]) }
        _ = try? KeyRule(line)
        _ = LookaheadMode(line)
        _ = NearestName.of(line, among: ["port", "cache-size", "origins"])
    }
    check(reader)
}

private func check(_ reader: OriginsReader) {
    for fault in reader.faults { precondition(!fault.isEmpty, "a fault without words") }
    for host in reader.privateHosts {
        precondition(!host.contains("*") && !host.contains("?"), "a pattern may be private")
    }
    if let url = try? AbsoluteURL("https://cdn.example.com:8080/a?token=x&b=1") {
        _ = (reader.origins.settings(of: url.origin), reader.origins.ahead(of: url.origin))
    }
}
