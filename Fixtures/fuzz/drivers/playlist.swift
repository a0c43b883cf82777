/// Fuzzes the playlist rewriter: whatever comes in, no URI goes out that leads past the daemon.
import HLS
import URISyntax

/// Rewrites one input and reads the result again (libFuzzer calls it).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    guard let base = try? AbsoluteURL("http://origin.test/a/b/index.m3u8?q=1") else { return 0 }
    var handed = 0
    guard
        let first = try? PlaylistRewriter.rewrite(
            input, base: base,
            map: { _, output in
                handed += 1
                output.append(contentsOf: "http://sluice.test/s/x/\(handed).ts".utf8)
                return true
            })
    else { return 0 }
    // Read again, everything that is a reference has to be one of ours.
    var options = PlaylistRewriter.Options()
    options.collectsReferences = true
    do throws(PlaylistError) {
        let second = try PlaylistRewriter.rewrite(
            first.bytes, base: base, options: options, map: { _, _ in false })
        for reference in second.references {
            precondition(
                reference.url.text.hasPrefix("http://sluice.test/s/x/"),
                "leads past the daemon: \(reference.url.text)")
        }
    } catch {
        preconditionFailure("what was rewritten is refused: \(error)")
    }
    return 0
}
