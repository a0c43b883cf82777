import CachePolicy
import HTTP
import Library
import Model
import Serving
import Routing
import URISyntax

extension CostCase {
    private static func list(_ start: String, _ item: String, _ size: Int) -> String {
        start + (0..<size).map { item.replacing("%", with: String($0)) }.joined(separator: ",")
    }

    /// Fields whose value is a list: field name, item, parser.
    private static let fields: [(name: String, item: String, read: @Sendable (Fields) -> Void)] = [
        ("Range", "%-%", { _ = ByteRangeSpec.parse($0) }),
        ("Cache-Control", "x%=\"%\"", { _ = RequestDirectives($0) }),
        ("Cache-Control", "private=\"x%\"", { _ = CacheControl($0) }),
        ("CDN-Cache-Control", "x%=1", { _ = TargetedDirectives.parse($0) }),
        ("Vary", "X-%", { _ = SelectingFields($0).text(of: $0) }),
        (
            "If-None-Match", "\"%\"",
            { fields in
                let validators = Validators(etag: EntityTag("\"z\""))
                _ = Preconditions.evaluate(fields, method: .get, validators: validators)
            }
        ),
        ("Accept-Encoding", "x%;q=0.1", { _ = ContentCoding.acceptsGzip($0) }),
        ("Accept-Language", "x%;q=0.1", { _ = SelectingFields.preferredLanguage($0) }),
        ("Content-Type", "a/b;x%=1;", { _ = MediaType.parse($0) }),
        ("Connection", "x%", { _ = StoredHead.keptFields(of: $0) }),
        ("Link", "<x%>;rel=y", { _ = StoredHead.keptFields(of: $0, for: .shared) }),
    ]

    static var requests: [CostCase] {
        fields.map { field in
            CostCase(name: "field \(field.name) of \(field.item)") { size in
                var fields = Fields()
                fields.append(
                    field.name, list(field.name == "Range" ? "bytes=" : "", field.item, size))
                return { field.read(fields) }
            }
        }
            + fields.map { field in
                CostCase(name: "lines of \(field.name) of \(field.item)") { size in
                    var fields = Fields()
                    for number in 0..<size {
                        fields.append(field.name, field.item.replacing("%", with: String(number)))
                    }
                    return { field.read(fields) }
                }
            }
            + [
                CostCase(name: "request head byte by byte") { size in
                    let lines = String(repeating: "X: y\r\n", count: size / 6)
                    let text = Array("GET / HTTP/1.1\r\nHost: h\r\n\(lines)\r\n".utf8)
                    return {
                        let limits = RequestLimits(head: 4 << 20, fieldCount: 10_000)
                        var parser = RequestParser(limits: limits)
                        for end in text.indices {
                            if (try? parser.parse(text.span.extracting(0..<end))) == nil { return }
                        }
                    }
                },
                CostCase(name: "query arguments of a route") { size in
                    let query = (0..<size).map { "&h_X-\($0)=\($0)" }.joined()
                    return { route("/proxy?url=http%3A%2F%2Fh%2Fa\(query)") }
                },
                CostCase(name: "escaped URL of a route") { size in
                    let path = String(repeating: "%2F", count: size)
                    return { route("/proxy?url=http%3A%2F%2Fh\(path)") }
                },
                CostCase(name: "dots of a route") { size in
                    let path = String(repeating: "../", count: size)
                    return { route("/http://h/\(path)") }
                },
                CostCase(name: "query arguments of a key") { size in
                    let query = (0..<size).map { "a\($0)=\($0)" }.joined(separator: "&")
                    let url = try? AbsoluteURL("http://h/a?\(query)")
                    return { if let url { _ = KeyMaker.key(of: url, rules: []) } }
                },
                CostCase(name: "steps of the readers of one body") { size in
                    let readers = Readers()
                    let ids = (0..<size).map { readers.enter(1, from: Int64($0), to: nil) }
                    return {
                        // The one furthest behind goes first.
                        for (index, id) in ids.enumerated() {
                            readers.move(id, of: 1, to: Int64(size + index))
                            _ = readers.least(1)
                        }
                    }
                },
                CostCase(name: "order of JSON") { size in
                    let items = (0..<size).map { "{\"a\":\"\\u0041\",\"b\":[\($0)]}" }
                    let text = Array("{\"items\":[\(items.joined(separator: ","))]}".utf8)
                    return { _ = try? JSONValue(parsing: text) }
                },
                CostCase(name: "members of JSON") { size in
                    let items = (0..<size).map { "\"m\($0)\":\($0)" }
                    let text = Array("{\(items.joined(separator: ","))}".utf8)
                    return { _ = try? JSONValue(parsing: text) }
                },
            ]
    }

    private static func route(_ target: String) {
        let text = Array("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
        var parser = RequestParser(
            limits: RequestLimits(requestLine: 1 << 20, head: 2 << 20))
        guard case .head(let head, _)? = try? parser.parse(text.span) else { return }
        _ = Router(mounts: []).route(head)
    }
}
