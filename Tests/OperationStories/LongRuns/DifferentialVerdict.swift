import ScenarioSupport

/// Whether HTTP allows a response, given the origin's content.
struct DifferentialVerdict {
    let ask: DifferentialAsk
    let answer: PlayerResponse
    let traits: OriginTraits
    /// Every version that the origin had until the end of the response.
    let bodies: [[UInt8]]
    /// The version that the origin had when the request was sent.
    let oldest: Int
    /// True while the origin has neither changed the resource nor failed.
    let isSteady: Bool
    let tags: [(tag: String?, date: String?)]

    /// What is wrong; nil if nothing is.
    var complaint: String? {
        let what = answer.complete ? "whole" : "broken off (\(answer.broken ?? ""))"
        let described = "\(answer.status) with \(answer.body.count) bytes, \(what)"
        return judged.map { "\($0): \(described)\(contentRange.map { ", \($0)" } ?? "")" }
    }

    private var contentRange: String? { answer["Content-Range"] }

    private var judged: String? {
        switch answer.status {
        case 200: return ask.method == "HEAD" ? judgeHead : judgeWhole
        case 206: return ask.method == "HEAD" ? "a part to HEAD" : judgePart
        case 304: return judgeNotModified
        case 416: return judgeUnsatisfiable
        case 404 where !isSteady: return nil
        case 500..<600:
            return isSteady ? "an error although the origin works: \(answer.text.prefix(200))" : nil
        default: return "an unexpected status"
        }
    }

    /// The allowed versions: if the response must not be stored, only those during the request.
    private var eligible: ArraySlice<[UInt8]> {
        ask.isMounted && traits.cacheControl == "no-store" ? bodies[oldest...] : bodies[...]
    }

    private var judgeWhole: String? {
        guard answer.complete else {
            if isSteady { return "broken although the origin works" }
            return bodies.contains { $0.starts(with: answer.body) } ? nil : "wrong bytes"
        }
        // A body that ends with its connection may have been cut unnoticed.
        if traits.framing == .close, !isSteady,
            bodies.contains(where: { $0.starts(with: answer.body) })
        {
            return nil
        }
        return eligible.contains { $0 == answer.body }
            ? nil : "the bytes of no version\(firstDifference(from: 0))"
    }

    /// The offset at which the body differs from the version that it begins like.
    private func firstDifference(from start: Int) -> String {
        let ends = bodies.map { body in
            zip(body.dropFirst(start), answer.body).prefix { $0 == $1 }.count
        }
        guard let longest = ends.max() else { return "" }
        let rest = answer.body.dropFirst(longest).prefix(1 << 12)
        let zeros = !rest.isEmpty && rest.allSatisfy { $0 == 0 } ? ", then zeros" : ""
        return ", \(longest) bytes are right\(zeros)"
    }

    private var judgeHead: String? {
        guard let length = answer["Content-Length"] else { return nil }
        return bodies.contains { "\($0.count)" == length }
            ? nil : "a length of no version, \(length)"
    }

    private var judgePart: String? {
        guard let asked = ask.range else { return "a part that nobody asked for" }
        // A mount passes on the origin's statements about its parts, also that there are none.
        if contentRange == nil, ask.isMounted, !isSteady { return nil }
        guard let text = contentRange, text.hasPrefix("bytes ") else { return "no Content-Range" }
        let parts = text.dropFirst(6).split { $0 == "-" || $0 == "/" }
        guard parts.count == 3, let first = Int(parts[0]), let last = Int(parts[1]), first <= last
        else { return "a malformed Content-Range" }
        let fits = eligible.contains { body in
            guard last < body.count, parts[2] == "*" || Int(parts[2]) == body.count else {
                return false
            }
            let slice = body[first...last]
            guard answer.complete ? slice.count == answer.body.count : !isSteady else {
                return false
            }
            return slice.starts(with: answer.body) && isAsked(first...last, asked, body.count)
        }
        if fits { return nil }
        // For a body of unknown length a range beyond its end may be promised.
        if !answer.complete, parts[2] == "*", traits.framing != .length,
            bodies.contains(where: { first < $0.count && $0[first...].starts(with: answer.body) })
        {
            return nil
        }
        // Under a mount the origin's own statements are passed on.
        if ask.isMounted, !isSteady,
            bodies.contains(where: {
                last < $0.count && $0[first...last].starts(with: answer.body)
                    && (!answer.complete || last - first + 1 == answer.body.count)
            })
        {
            return nil
        }
        return answer.complete
            ? "a part of no version\(firstDifference(from: first))"
            : "a part broken although the origin works"
    }

    private func isAsked(_ got: ClosedRange<Int>, _ asked: String, _ length: Int) -> Bool {
        guard case .part(let part) = WireRange.parse(asked, length: length) else { return false }
        return got.lowerBound == part.lowerBound && got.upperBound < part.upperBound
            && (got.upperBound == part.upperBound - 1 || !isSteady)
    }

    private var judgeNotModified: String? {
        switch ask.condition {
        case .unlessTag(let version):
            return tags[version].tag == nil ? "a 304 to a tag that the origin never gave" : nil
        case .unlessSince(let version):
            return tags[version].date == nil ? "an unasked 304" : nil
        case .none, .range: return "an unasked 304"
        }
    }

    private var judgeUnsatisfiable: String? {
        guard ask.method == "GET", let asked = ask.range else { return "an unasked 416" }
        let isRight = bodies.contains { body in
            let told = contentRange ?? "bytes */\(body.count)"
            return WireRange.parse(asked, length: body.count) == .unsatisfiable
                && told == "bytes */\(body.count)"
        }
        if isRight { return nil }
        // A body that ends with its connection may have been cut unnoticed: its end then counts as
        // the end of all bytes (RFC 9112 section 8).
        if traits.framing == .close, !isSteady, ask.isMounted, let contentRange,
            let length = Int(contentRange.dropFirst("bytes */".count)),
            bodies.contains(where: { length < $0.count }),
            WireRange.parse(asked, length: length) == .unsatisfiable
        {
            return nil
        }
        return "a 416 to a range that can be satisfied"
    }
}
