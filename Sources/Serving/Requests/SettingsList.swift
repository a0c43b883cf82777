// The settings in force as they were configured, for the console.
import Model
import Synchronization

/// Names and values without secrets; settings not listed have their defaults.
///
/// Any thread may use it.
package final class SettingsList: Sendable {
    private let given = Mutex<[String: [String]]>([:])

    /// Replaces the settings of these names.
    ///
    /// - Parameters:
    ///   - settings: each with its values as configured.
    ///   - names: the names to replace; nil for all.
    package func replace(_ settings: [String: [String]], of names: Set<String>? = nil) {
        given.withLock { given in
            given = given.filter { names?.contains($0.key) == false }
            for (name, values) in settings where names?.contains(name) != false {
                given[name] = values.map { Self.withoutSecrets(name, $0) }
            }
        }
    }

    /// Returns the public part of a value: no token, and of a URL neither user, password nor query.
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
