// The settings in force, for `sluice config`.
import Serving

/// The place that the value of a setting comes from.
package enum SettingSource: String, Sendable {
    case flag, environment, file, `default`
}

/// One setting with its value, where that comes from, and how a change of it comes into force.
package struct SettingReport: Sendable, Equatable {
    package let name: String
    /// Without secrets; empty where neither a value is given nor a default holds.
    package let values: [String]
    package let source: SettingSource
    /// Whether a reload (SIGHUP) puts a change in force; else the daemon has to be restarted.
    package let isReloaded: Bool

    /// Every setting, in the order of their names.
    static func all(_ reader: SettingsReader) -> [SettingReport] {
        ServeOptions.names.sorted().map { name in
            // An object of objects: its values are told by the names of the origins.
            let origins = reader.origins.origins.keys.sorted()
            let isOrigins = name == "origins"
            let given = isOrigins ? origins : reader.givenValues(name)
            let source =
                isOrigins ? (origins.isEmpty ? .default : .file) : reader.source(of: name)
            let values = given.isEmpty ? [reader.defaults[name]].compactMap { $0 } : given
            return SettingReport(
                name: name, values: values.map { SettingsList.withoutSecrets(name, $0) },
                source: source, isReloaded: ServeOptions.reloadedNames.contains(name))
        }
    }
}
