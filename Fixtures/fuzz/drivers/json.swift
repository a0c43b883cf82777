// Fuzzes steering manifests, asset lists and the like: no URI in the output bypasses the daemon.
import HLS
import URISyntax

/// Rewrites one input and parses the result (called by libFuzzer).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    guard let base = try? AbsoluteURL("http://origin.test/a/b/list.json") else { return 0 }
    if JSONRewriter.isDocumentOfHLS(input) {
        precondition(!JSONRewriter.isDocumentOfHLS([0x5B] + input + [0x5D]), "a list is no object")
    }
    _ = JSONRewriter.mayBeDocumentOfHLS(input)
    var handed = 0
    guard
        let first = try? JSONRewriter.rewrite(
            input, base: base, host: { host in ("_host", host) },
            map: { _, output in
                handed += 1
                output.append(contentsOf: "http://sluice.test/j/x/\(handed).json".utf8)
                return true
            }
        ).bytes
    else { return 0 }
    var found = 0
    let again = try? JSONRewriter.rewrite(
        first, base: base,
        host: { host in
            precondition(host.isEmpty, "a host leads past the daemon")
            return ("_again", [])
        },
        map: { reference, _ in
            found += 1
            let text = reference.url.text
            precondition(
                text.hasPrefix("http://sluice.test/j/x/"), "leads past the daemon: \(text)")
            return false
        })
    precondition(again != nil, "what was rewritten is refused")
    precondition(found == handed, "a URI was lost")
    return 0
}
