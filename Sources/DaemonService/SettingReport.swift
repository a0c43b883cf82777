// The settings in force, for `sluice config` and the console.
import Serving

/// The source of a setting's value.
enum SettingSource: String, Sendable {
    case flag, environment, file, `default`
}

extension SettingsReader {
    /// Every setting with its value and the source of that, ordered by name; secrets are masked.
    var report: [Setting] {
        ServeOptions.names.sorted().map { name in
            // An object of objects: shown as the names of its origins.
            let origins = self.origins.origins.keys.sorted()
            let isOrigins = name == "origins"
            let given = isOrigins ? origins : givenValues(name)
            let source: SettingSource =
                isOrigins ? (origins.isEmpty ? .default : .file) : self.source(of: name)
            let values = given.isEmpty ? [defaults[name]].compactMap { $0 } : given
            return Setting(
                name: name, values: values.map { SettingsList.withoutSecrets(name, $0) },
                source: source.rawValue, isReloaded: ServeOptions.reloadedNames.contains(name))
        }
    }
}
