// The settings in force as they were given, for the console.
import Model
import Synchronization

/// Names and values without secrets; the rest has its default.
///
/// Any thread may use it.
package final class SettingsList: Sendable {
    private let given = Mutex<[String: [String]]>([:])

    /// Puts other settings in the place of those of these names.
    ///
    /// - Parameters:
    ///   - settings: each with its values as they were given.
    ///   - names: what is replaced; nil for everything.
    package func replace(_ settings: [String: [String]], of names: Set<String>? = nil) {
        given.withLock { given in
            given = given.filter { names?.contains($0.key) == false }
            for (name, values) in settings where names?.contains(name) != false {
                given[name] = values.map { Self.withoutSecrets(name, $0) }
            }
        }
    }

    /// What may be shown of a value: no token, and of a URL neither user, password nor query.
    package static func withoutSecrets(_ name: String, _ value: String) -> String {
        if name == "token" { return "***" }
        var shown = ""
        var rest = value[...]
        while let scheme = rest.firstRange(of: "://") {
            shown += rest[..<scheme.upperBound]
            rest = rest[scheme.upperBound...]
            let authority = rest.prefix { !"/?# ".contains($0) }
            if let at = authority.lastIndex(of: "@") {
                shown += "***@"
                rest = rest[rest.index(after: at)...]
            }
            if let query = rest.firstIndex(of: "?") { return shown + rest[..<query] + "?***" }
        }
        return shown + rest
    }

    var json: JSONValue {
        let rows = given.withLock { $0 }.sorted { $0.key < $1.key }.map { name, values in
            JSONValue.object([
                .init("name", .text(name)), .init("values", .list(values.map(JSONValue.text))),
            ])
        }
        return .object([.init("settings", .list(rows))])
    }
}
