// The settings in force, for `sluice config`.
import Serving

/// The source of a setting's value.
package enum SettingSource: String, Sendable {
    case flag, environment, file, `default`
}

/// One setting with its value, the source of that, and how a change is applied.
package struct SettingReport: Sendable, Equatable {
    package let name: String
    /// Without secrets; empty if there is neither a value nor a default.
    package let values: [String]
    package let source: SettingSource
    /// True if a reload (SIGHUP) applies a change; otherwise the daemon must be restarted.
    package let isReloaded: Bool

    /// The setting for the console.
    var shown: Setting {
        Setting(name: name, values: values, source: source.rawValue, isReloaded: isReloaded)
    }

    /// Returns every setting, ordered by name.
    static func all(_ reader: SettingsReader) -> [SettingReport] {
        ServeOptions.names.sorted().map { name in
            // An object of objects: shown as the names of its origins.
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
