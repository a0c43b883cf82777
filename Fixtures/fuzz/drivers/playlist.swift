// Fuzzes the playlist rewriter: no URI in its output bypasses the daemon.
import HLS
import URISyntax

private let withLines = PlaylistReading(keepsLines: true)

/// Passes one input through everything that parses or rebuilds whole playlists.
private func judge(_ input: [UInt8], _ base: AbsoluteURL) {
    guard let text = try? Playlist(input, base: nil, withLines) else { return }
    check(text)
    _ = PlaylistRule.violations(in: text)
    _ = try? PlaylistOutline(input, base: base)
    guard let list = try? Playlist(input, base: base, withLines) else { return }
    check(list)
    var turn = 0
    let isEven = { (_: ResourceReference) -> Bool in
        turn += 1
        return turn % 2 == 0
    }
    guard let media = list.media else {
        let made = MultivariantFilter.filter(list, canPlay: isEven)
        precondition(
            (try? Playlist(made.bytes, base: nil)) != nil, "what was filtered is no playlist")
        let limit = VariantLimit(height: 720, bandwidth: 2_500_000)
        let lower = (try? limit.applied(to: input, base: base, withLines)) ?? []
        precondition((try? Playlist(lower, base: nil)) != nil, "what was limited is no playlist")
        return
    }
    _ = ContentProtection.read(media)
    let stored = OfflineList(list, isPresent: isEven)
    let made = OfflinePlaylist.cut(list, missing: stored.missing)
    precondition((try? Playlist(made.bytes, base: nil)) != nil, "what was cut is no playlist")
    var shift = TimeShift()
    guard (try? shift.merge(input, base: base)) != nil else { return }
    _ = try? shift.merge(input.reversed(), base: base)
    let again = try? shift.merge(input, base: base)
    precondition(again?.relation != .newEpoch || shift.segments.isEmpty, "a list is not itself")
    let numbers = shift.segments.map(\.number)
    precondition(zip(numbers, numbers.dropFirst()).allSatisfy { $0 + 1 == $1 }, "numbers jump")
    let bytes = shift.playlist { $0.number % 2 == 0 }
    precondition(
        bytes.isEmpty || (try? Playlist(bytes, base: nil)) != nil, "the shifted list is none")
    let restored = try? TimeShift(snapshot: shift.snapshot())
    precondition(restored?.segments.count == shift.segments.count, "the snapshot lost segments")
}

/// Checks that every value has the right position, and that every property can be read.
private func check(_ list: Playlist) {
    precondition(list.lines.map(\.number) == Array(1..<list.summary.lineCount + 1), "lines jump")
    for segment in list.media?.segments ?? [] {
        precondition(list.lines[segment.line - 1].range == segment.uri, "a URI is elsewhere")
        precondition(segment.source.upperBound == segment.uri.upperBound, "a segment has no end")
    }
    for range in list.media?.dateRanges ?? [] { _ = (range.start, range.end, range.duration) }
    for variant in list.multivariant?.variants ?? [] { _ = variant.height }
    _ = list.writtenVariables
}

/// Rewrites one input and parses the result (called by libFuzzer).
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
    do throws(PlaylistError) {
        let second = try Playlist(first.bytes, base: base)
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
