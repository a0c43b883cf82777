/// How the sample CDN answers one path: its delays, faults, framing, conditions and extra fields.
///
/// One grammar serves tests (`cdn.setBehaviour("fb=300&fails=1", for: "/a.ts")`) and other programs
/// (`GET /a.ts?fb=300&fails=1`): arguments of the request win over what is set for its path.
///
/// | argument | effect |
/// |---|---|
/// | `fb=MS` | waits before the first byte of the response head |
/// | `delaybody=MS` | sends the head at once, waits before the body |
/// | `rate=BPS` | paces the body, bytes per second |
/// | `reset=N` | TCP reset after N body bytes |
/// | `trunc=N` | orderly end of the connection after N body bytes |
/// | `stall=N` | sends N body bytes, then nothing until the peer leaves |
/// | `wronglength=D` | `Content-Length` is D too large (or, negative, too small) |
/// | `status=C` | answers C; from 400 on with a short text body |
/// | `fails=T` | reset, trunc, stall, wronglength and status hold for the first T requests only |
/// | `chunked=1`, `eof=1` | chunked coding; body ended by closing, without a length |
/// | `norange=1` | ignores `Range` and does not offer ranges |
/// | `nototal=1` | states no length in `Content-Range` (`bytes 0-9/*`) |
/// | `as=PATH` | serves what is under another path: an object that has changed |
/// | `etag=X`, `noetag=1` | another validator (`"X"`; `W/X` gives a weak one); none at all |
/// | `lastmod=DATE` | another `Last-Modified`; empty: none |
/// | `gzip=1`, `gzip=always` | gzip if the request accepts it; always |
/// | `type=T` | another `Content-Type`; empty: none |
/// | `location=URL` | redirect, 302 unless `status` says which |
/// | `cookie=SET` | adds `Set-Cookie: SET` |
/// | `cc=V` | adds `Cache-Control: V` |
/// | `header=N:V` | adds any field; may be repeated |
/// | `rotate=query`, `rotate=path` | another token in every URI of a playlist each time it is given |
/// | `edges=URL,URL` | redirects to each of these servers in turn |
/// | `needcookie=N=V`, `needheader=N:V`, `needtoken=T` | 403 without that cookie, field, `token=T` |
package struct Behaviour: Sendable, ExpressibleByStringLiteral {
    /// Milliseconds before the first byte of the head.
    package var firstByteDelay: Int?
    /// Milliseconds between head and body.
    package var bodyDelay: Int?
    /// Body bytes per second.
    package var rate: Int?
    /// Body bytes before a TCP reset.
    package var resetAfter: Int?
    /// Body bytes before the connection is closed in good order, too early.
    package var truncateAfter: Int?
    /// Body bytes before silence.
    package var stallAfter: Int?
    /// What is added to the true length in `Content-Length`.
    package var lengthError: Int?
    /// The status to answer with.
    package var status: Int?
    /// How many requests see the faults; nil: all.
    package var fails: Int?
    package var chunked = false
    package var endByClosing = false
    package var ignoresRange = false
    /// True if `Content-Range` of a part leaves the length of the body open.
    package var hidesTotal = false
    /// The path whose resource is served instead.
    package var alias: String?
    /// Replaces the entity tag (without quotes); empty: no tag.
    package var entityTag: String?
    /// Replaces `Last-Modified`; empty: none.
    package var lastModified: String?
    package var gzip = Gzip.never
    package var contentType: String?
    package var location: String?
    /// Where the URIs of a playlist carry a token that changes with every response.
    package var rotation: Rotation?
    /// Base URLs of servers with the same content; requests are redirected to each in turn.
    package var edges: [String] = []
    /// How often the path was requested before; counted only for rotating responses.
    var turn = 0
    package var requiredCookie: String?
    package var requiredField: String?
    package var requiredToken: String?
    /// Fields added to the response, in order.
    package var extraFields: [(name: String, value: String)] = []

    /// When a body is sent with the gzip content coding.
    package enum Gzip: Sendable { case never, ifAccepted, always }

    /// The position of a rotating token in a URI.
    package enum Rotation: String, Sendable { case query, path }

    package init() {}

    /// The behaviour described by an argument list in the grammar above.
    package init(stringLiteral value: String) {
        self.init(query: value)
    }

    /// The behaviour described by an argument list; unknown arguments are ignored.
    package init(query: String) {
        self.init()
        apply(QueryArguments(query))
    }

    /// Overrides this behaviour with the arguments of a request.
    mutating func apply(_ arguments: QueryArguments) {
        for (name, value) in arguments.pairs {
            applyTiming(name, value)
            applyFraming(name, value)
            applyFields(name, value)
        }
    }

    private mutating func applyTiming(_ name: String, _ value: String) {
        switch name {
        case "fb", "delayhead": firstByteDelay = Int(value)
        case "delaybody": bodyDelay = Int(value)
        case "rate": rate = Int(value).flatMap { $0 > 0 ? $0 : nil }
        case "reset": resetAfter = Int(value)
        case "trunc": truncateAfter = Int(value)
        case "stall": stallAfter = Int(value)
        case "wronglength": lengthError = Int(value)
        case "status": status = Int(value).flatMap { (200...599).contains($0) ? $0 : nil }
        case "fails": fails = Int(value)
        default: break
        }
    }

    private mutating func applyFraming(_ name: String, _ value: String) {
        switch name {
        case "chunked": chunked = value == "1"
        case "eof": endByClosing = value == "1"
        case "norange": ignoresRange = value == "1"
        case "nototal": hidesTotal = value == "1"
        case "gzip": gzip = value == "always" ? .always : value == "1" ? .ifAccepted : .never
        case "as": alias = value
        case "etag": entityTag = value
        case "noetag": entityTag = value == "1" ? "" : entityTag
        case "lastmod": lastModified = value
        case "type": contentType = value
        default: break
        }
    }

    private mutating func applyFields(_ name: String, _ value: String) {
        switch name {
        case "location": location = value
        case "cookie": extraFields.append(("Set-Cookie", value))
        case "cc": extraFields.append(("Cache-Control", value))
        case "header":
            if let colon = value.firstIndex(of: ":") {
                let text = value[value.index(after: colon)...].drop { $0 == " " }
                extraFields.append((String(value[..<colon]), String(text)))
            }
        case "rotate": rotation = Rotation(rawValue: value)
        case "edges": edges = value.split(separator: ",").map(String.init)
        case "needcookie": requiredCookie = value
        case "needheader": requiredField = value
        case "needtoken": requiredToken = value
        default: break
        }
    }

    /// The same behaviour after its faults have run out.
    var withoutFaults: Self {
        var copy = self
        copy.resetAfter = nil
        copy.truncateAfter = nil
        copy.stallAfter = nil
        copy.lengthError = nil
        copy.status = location == nil ? nil : status
        return copy
    }
}
