// Fuzzes the playlist rewriter: whatever comes in, no URI goes out that leads past the daemon.
import HLS
import URISyntax

/// Puts one input through everything that reads or rebuilds whole lists.
private func judge(_ input: [UInt8], _ base: AbsoluteURL) {
    guard let text = try? PlaylistText(input) else { return }
    _ = PlaylistRule.violations(in: text)
    _ = try? PlaylistOutline(input, base: base)
    var turn = 0
    let isEven = { (_: ResourceReference) -> Bool in
        turn += 1
        return turn % 2 == 0
    }
    if text.kind == .multivariant {
        guard let made = try? MultivariantFilter.filter(input, base: base, canPlay: isEven) else {
            return
        }
        precondition((try? PlaylistText(made.bytes)) != nil, "what was filtered is no playlist")
        return
    }
    if let made = try? OfflinePlaylist.make(input, base: base, isPresent: isEven) {
        precondition((try? PlaylistText(made.bytes)) != nil, "what was cut is no playlist")
    }
    var shift = TimeShift()
    guard (try? shift.merge(input, base: base)) != nil else { return }
    _ = try? shift.merge(input.reversed(), base: base)
    let again = try? shift.merge(input, base: base)
    precondition(again?.relation != .newEpoch || shift.segments.isEmpty, "a list is not itself")
    let numbers = shift.segments.map(\.number)
    precondition(zip(numbers, numbers.dropFirst()).allSatisfy { $0 + 1 == $1 }, "numbers jump")
    let bytes = shift.playlist { $0.number % 2 == 0 }
    precondition(bytes.isEmpty || (try? PlaylistText(bytes)) != nil, "the shifted list is none")
    let restored = TimeShift(snapshot: shift.snapshot())
    precondition(restored.segments.count == shift.segments.count, "the snapshot lost segments")
}

/// Rewrites one input and reads the result again (libFuzzer calls it).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    guard let base = try? AbsoluteURL("http://origin.test/a/b/index.m3u8?q=1") else { return 0 }
    judge(input, base)
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
