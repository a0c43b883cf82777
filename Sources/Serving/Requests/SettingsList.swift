// The settings in force and where they come from, for the console.
import Model
import Synchronization

/// A setting as it is in force.
package struct Setting: Sendable {
    package let name: String
    /// Empty without a value and a default.
    package let values: [String]
    /// Where the value comes from: `flag`, `environment`, `file` or `default`.
    package let source: String
    /// True if a reload (SIGHUP) applies a change.
    package let isReloaded: Bool

    package init(name: String, values: [String], source: String, isReloaded: Bool) {
        self.name = name
        self.values = values
        self.source = source
        self.isReloaded = isReloaded
    }
}

/// All settings in force, without secrets.
///
/// Any thread may use it.
package final class SettingsList: Sendable {
    private let settings = Mutex<[String: Setting]>([:])

    /// Replaces all settings, or only those that a reload applies.
    ///
    /// - Parameters:
    ///   - replacement: all settings, as they were read.
    ///   - isReload: true to leave what needs a restart as it is.
    package func replace(_ replacement: [Setting], isReload: Bool = false) {
        settings.withLock { settings in
            for setting in replacement where !isReload || setting.isReloaded {
                settings[setting.name] = setting
            }
        }
    }

    /// Returns the public part of a value: no token, of a mount's header no value, and of a URL
    /// neither user, password nor query.
    package static func withoutSecrets(_ name: String, _ value: String) -> String {
        if name == "token" { return "***" }
        if name == "mount-header" {
            guard let equals = value.firstIndex(of: "="),
                let colon = value[equals...].firstIndex(of: ":")
            else { return "***" }
            return "\(value[...colon]) ***"
        }
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
        let rows = settings.withLock { $0 }.values.sorted { $0.name < $1.name }.map { setting in
            let values = setting.values.map { Self.withoutSecrets(setting.name, $0) }
            return JSONValue.object([
                .init("name", .text(setting.name)),
                .init("values", .list(values.map(JSONValue.text))),
                .init("source", .text(setting.source)),
                .init("reload", .truth(setting.isReloaded)),
            ])
        }
        return .object([.init("settings", .list(rows))])
    }
}
