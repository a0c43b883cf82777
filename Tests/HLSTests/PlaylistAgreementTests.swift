import FuzzSupport
import HLS
import Testing
import URISyntax

#if canImport(Glibc)
import Glibc
#endif

/// Model and rewriter find the same numbers, references and errors.
@Suite struct PlaylistAgreementTests {
    /// The results of parsing, in one form for both.
    struct Report: Equatable {
        var summary: PlaylistSummary?
        var references: [String] = []
        var variables: [String: String] = [:]
        var unusable = 0
        var refusal: PlaylistError?
    }

    static func text(_ reference: ResourceReference) -> String {
        "\(reference.line) \(reference.tag) \(reference.role) \(reference.url.text) "
            + "\(reference.mediaSequence) \(String(describing: reference.partIndex)) "
            + "\(reference.discontinuitySequence) \(String(describing: reference.duration)) "
            + "\(String(describing: reference.byteRange)) \(reference.hasRangeStart) "
            + "\(reference.isGap) \(String(describing: reference.bandwidth)) "
            + "\(reference.hasMap) \(reference.keyURL?.text ?? "-") "
            + "\(reference.mapURL?.text ?? "-") \(String(describing: reference.mapByteRange))"
    }

    static func rewriter(_ body: [UInt8]) -> Report {
        let options = PlaylistRewriter.Options(PlaylistReading(variables: ["from-parent": "x"]))
        var references: [String] = []
        do throws(PlaylistError) {
            let list = try PlaylistRewriter.rewrite(body, base: Corpus.base, options: options) {
                reference, _ in
                references.append(text(reference))
                return false
            }
            return Report(
                summary: list.summary, references: references,
                variables: list.definedVariables, unusable: list.unusable.count)
        } catch {
            return Report(refusal: error)
        }
    }

    static func model(_ body: [UInt8]) -> Report {
        do throws(PlaylistError) {
            let list = try Playlist(
                body, base: Corpus.base,
                PlaylistReading(variables: ["from-parent": "x"], keepsLines: true))
            check(list)
            return Report(
                summary: list.summary, references: list.references.map(text),
                variables: list.definedVariables, unusable: list.unusable.count)
        } catch {
            return Report(refusal: error)
        }
    }

    /// Every value has the source range in which it is found.
    private static func check(_ list: Playlist) {
        #expect(list.lines.map(\.number) == Array(0..<list.summary.lineCount).map { $0 + 1 })
        guard let media = list.media else { return }
        #expect(media.segments.count == list.summary.segmentCount)
        #expect(media.segments.count { $0.isGap } == list.summary.gapCount)
        for segment in media.segments {
            #expect(list.lines[segment.line - 1].range == segment.uri)
            #expect(segment.source.upperBound == segment.uri.upperBound)
            #expect(segment.source.lowerBound <= segment.uri.lowerBound)
        }
        for part in media.parts {
            #expect(list.lines[part.line - 1].tag == .part)
            #expect(list.text(part.source).hasPrefix("#EXT-X-PART:"))
        }
        for key in media.keys { #expect(list.lines[key.line - 1].tag == .key) }
        for map in media.maps { #expect(list.lines[map.line - 1].tag == .map) }
    }

    /// All playlists below a folder of `Fixtures`.
    static func files(_ folder: String) -> [String] {
        guard let open = opendir(folder) else { return [] }
        defer { closedir(open) }
        var found: [String] = []
        while let entry = readdir(open) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard !name.hasPrefix(".") else { continue }
            let path = "\(folder)/\(name)"
            if entry.pointee.d_type == UInt8(DT_DIR) {
                found += files(path)
            } else if name.hasSuffix(".m3u8") || folder.hasSuffix("fuzz/playlist") {
                found.append(path)
            }
        }
        return found.sorted()
    }

    private static func read(_ path: String) -> [UInt8] {
        guard let file = fopen(path, "r") else { return [] }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        while case let byte = getc(file), byte != EOF { bytes.append(UInt8(byte)) }
        return bytes
    }

    static let lists: [(path: String, body: [UInt8])] = {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return files("/\(root)/Fixtures").map { ($0, read($0)) }
    }()

    @Test func `model and rewriter agree on every playlist of the fixtures`() {
        #expect(Self.lists.count > 80)
        for list in Self.lists {
            #expect(Self.model(list.body) == Self.rewriter(list.body), "\(list.path)")
        }
    }

    @Test func `model and rewriter agree on playlists mixed with lines of others`() {
        var random = SeededNumbers(seed: 0x51_1CE)
        let lines = Self.lists.flatMap { $0.body.split(separator: 0x0A) }
        for list in Self.lists where list.body.count < 4_000 {
            for _ in 0..<8 {
                var body = list.body.split(separator: 0x0A)
                for _ in 0..<3 {
                    guard let line = lines.randomElement(using: &random) else { continue }
                    let place = Int.random(in: 0...body.count, using: &random)
                    body.insert(line, at: place)
                }
                let bytes = Array(body.joined(separator: [0x0A]))
                #expect(
                    Self.model(bytes) == Self.rewriter(bytes),
                    "\(String(decoding: bytes, as: UTF8.self))")
            }
        }
    }
}
