// Reads settings from flags, environment, file and defaults, in that order, and collects all errors
// instead of stopping at the first.
import CommandSupport
import Configuration
import FoundationEssentials
import Numbers
import Posix
import SystemPackage

/// One or more settings are wrong.
package struct ConfigurationError: Error, CustomStringConvertible {
    package let faults: [String]

    package var description: String {
        faults.map { "configuration error: \($0)" }.joined(separator: "\n")
    }
}

/// Typed access to the merged settings.
package struct SettingsReader {
    private let reader: ConfigReader
    /// One reader for each source of settings, in falling order of precedence.
    private let layers: [(source: SettingSource, reader: ConfigReader)]
    private(set) var faults: [String] = []
    /// The values of settings that are given nowhere, by name, as a user would write them.
    private(set) var defaults: [String: String] = [:]
    /// The configuration file; nil without one.
    let file: String?
    /// The settings of origins in the file.
    let origins: OriginsFile

    init(scalars: [String: String], lists: [String: [String]], file: String?) async throws {
        var given: [AbsoluteConfigKey: ConfigValue] = [:]
        for (name, value) in scalars {
            given[AbsoluteConfigKey([name])] = ConfigValue(
                .string(value), isSecret: name == "token")
        }
        for (name, values) in lists {
            given[AbsoluteConfigKey([name])] = ConfigValue(
                .stringArray(values), isSecret: ServeOptions.secretLists.contains(name))
        }
        let environment = EnvironmentVariablesProvider().prefixKeys(with: "sluice")
        var providers: [(source: SettingSource, provider: any ConfigProvider)] = [
            (.flag, InMemoryProvider(name: "flags", values: given)), (.environment, environment),
        ]
        // Like other variables of commands, an empty one counts as not set.
        let file =
            file
            ?? ProcessInfo.processInfo.environment["SLUICE_CONFIG"].flatMap {
                $0.isEmpty ? nil : $0
            }
        var origins = OriginsFile()
        if let file {
            origins = try ConfigurationFile.origins(file)
            do {
                let provider = try await FileProvider<JSONSnapshot>(filePath: FilePath(file))
                providers.append((.file, provider))
            } catch {
                throw ConfigurationError(faults: ["the file \(file) cannot be used: \(error)"])
            }
        }
        self.origins = origins
        faults = Self.unknownVariables(ProcessInfo.processInfo.environment.keys)
        self.file = file
        reader = ConfigReader(providers: providers.map(\.provider))
        layers = providers.map { ($0.source, ConfigReader(providers: [$0.provider])) }
    }

    /// Variables that commands read, and those of this project's own test rigs.
    private static let otherVariables: Set<String> = [
        "SLUICE_CONFIG", "SLUICE_DAEMON", "SLUICE_DAEMON_CA", "SLUICE_BINARY", "SLUICE_LONG_LIVE",
        "SLUICE_SEED",
    ]
    private static let rigPrefixes = ["SLUICE_CRASH_", "SLUICE_BENCH_", "SLUICE_DIFFERENTIAL_"]

    /// Returns an error for each misspelt variable, which would otherwise be ignored silently.
    private static func unknownVariables(_ names: some Sequence<String>) -> [String] {
        let known = Set(
            ServeOptions.names.union(ServeOptions.formerNames).subtracting(["origins"]).map {
                name in
                "SLUICE_" + name.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
            }
        ).union(otherVariables)
        return names.sorted().compactMap { name in
            guard name.hasPrefix("SLUICE_"), !known.contains(name),
                !rigPrefixes.contains(where: { name.hasPrefix($0) })
            else { return nil }
            let meant =
                NearestName.of(name, among: known, prefix: "SLUICE_").map {
                    "; did you mean \($0)?"
                }
                ?? ""
            return "the environment variable \(name) names no setting\(meant)"
        }
    }

    /// Adds an error, which may quote a value: user information of URLs in it is left out.
    mutating func fault(_ text: String) { faults.append(Self.withoutUserInformation(text)) }

    /// How errors that explain the syntax of a URL write user information.
    private static let syntaxOfUserInformation = "[USER:PASSWORD"

    private static func withoutUserInformation(_ text: String) -> String {
        var shown = ""
        var rest = text[...]
        while let scheme = rest.firstRange(of: "://") {
            shown += rest[..<scheme.upperBound]
            rest = rest[scheme.upperBound...]
            if let at = rest.prefix(while: { !"/?# ".contains($0) }).lastIndex(of: "@"),
                rest[..<at] != syntaxOfUserInformation
            {
                shown += "***"
                rest = rest[at...]
            }
        }
        return shown + rest
    }

    /// Returns a text; nil if it is set nowhere.
    func text(_ name: String) -> String? { Self.text(name, in: reader) }

    /// Returns a text.
    mutating func text(_ name: String, default standard: String) -> String {
        defaults[name] = standard
        return text(name) ?? standard
    }

    /// Returns one of the values of a type.
    ///
    /// - Parameters:
    ///   - name: the setting.
    ///   - standard: the value where it is set nowhere.
    ///   - ignoresCase: true if the letters may be upper case.
    ///   - words: how the error of another text begins, such as `keys are off or auto`.
    /// - Returns: the value; the default after an error.
    mutating func choice<Value: RawRepresentable<String>>(
        _ name: String, default standard: Value, ignoresCase: Bool = false, else words: String
    ) -> Value {
        let text = text(name, default: standard.rawValue)
        if let value = Value(rawValue: ignoresCase ? text.lowercased() : text) { return value }
        fault("\(words), not '\(text)'")
        return standard
    }

    private static func text(_ name: String, in reader: ConfigReader) -> String? {
        let key = ConfigKey([name])
        // Asked for a number first, `true` would be 1; asked for a switch, port 1 would be `true`.
        if ServeOptions.switchNames.contains(name), reader.string(forKey: key) == nil,
            let isOn = reader.bool(forKey: key)
        {
            return String(isOn)
        }
        return reader.string(forKey: key) ?? reader.int(forKey: key).map(String.init)
            ?? reader.double(forKey: key).map { String($0) }
            ?? reader.bool(forKey: key).map(String.init)
    }

    /// Returns a list; empty if it is set nowhere.
    ///
    /// In the environment, values are separated by commas.
    func list(_ name: String) -> [String] { Self.list(name, in: reader) }

    /// Returns a list that is not empty.
    mutating func list(_ name: String, default standard: [String]) -> [String] {
        defaults[name] = standard.joined(separator: ", ")
        let values = list(name)
        return values.isEmpty ? standard : values
    }

    private static func list(_ name: String, in reader: ConfigReader) -> [String] {
        let key = ConfigKey([name])
        let values =
            reader.stringArray(forKey: key) ?? reader.string(forKey: key).map { [$0] } ?? []
        return valuesWithCommas.contains(name) ? joined(values) : values
    }

    /// The lists whose values contain commas: NAME=A,B.
    private static let valuesWithCommas: Set = ["origin-cert", "resolve"]

    /// Puts values together again that were separated at a comma within one.
    private static func joined(_ values: [String]) -> [String] {
        var result: [String] = []
        for value in values {
            if let last = result.last, !value.contains("=") {
                result[result.count - 1] = "\(last),\(value)"
            } else {
                result.append(value)
            }
        }
        return result
    }

    /// Returns a list of hosts.
    ///
    /// - Parameters:
    ///   - name: the setting.
    ///   - read: the form that is wanted of one; nil if the text is no host.
    /// - Returns: the hosts in that form; what is none is a fault.
    mutating func hosts(_ name: String, read: (String) -> String?) -> Set<String> {
        var hosts: Set<String> = []
        for text in list(name) {
            if let host = read(text) {
                hosts.insert(host)
            } else {
                fault("\(name) is a host without scheme, port or path, not '\(text)'")
            }
        }
        return hosts
    }

    /// Returns the values of a setting as they were given; empty if it is set nowhere.
    func givenValues(_ name: String) -> [String] { Self.values(name, in: reader) }

    /// Returns the source of a setting's value.
    func source(of name: String) -> SettingSource {
        layers.first { !Self.values(name, in: $0.reader).isEmpty }?.source ?? .default
    }

    private static func values(_ name: String, in reader: ConfigReader) -> [String] {
        ServeOptions.listNames.contains(name)
            ? list(name, in: reader) : [text(name, in: reader)].compactMap { $0 }
    }

    /// Returns a switch.
    mutating func isOn(_ name: String) -> Bool {
        defaults[name] = "false"
        switch text(name)?.lowercased() {
        case nil, "false", "no", "0": return false
        case "true", "yes", "1": return true
        case let other?:
            fault("\(name) is true or false, not '\(other)'")
            return false
        }
    }

    /// Returns a whole number within a range.
    mutating func number(_ name: String, in range: ClosedRange<Int>, default standard: Int) -> Int {
        defaults[name] = String(standard)
        guard let text = text(name) else { return standard }
        guard let value = ExternalNumber.integer(text, in: range) else {
            fault("\(name) is a number in \(range.lowerBound)...\(range.upperBound), not '\(text)'")
            return standard
        }
        return value
    }

    /// Returns seconds, possibly with a fraction.
    mutating func seconds(_ name: String, in range: ClosedRange<Double>, default standard: Interval)
        -> Interval
    {
        let whole = standard.inSeconds.rounded()
        defaults[name] =
            whole == standard.inSeconds ? "\(Int64(saturating: whole))" : "\(standard.inSeconds)"
        guard let text = text(name) else { return standard }
        guard let value = ExternalNumber.decimal(text, in: range) else {
            fault(
                "\(name) is a number of seconds in \(Int(range.lowerBound))...\(Int(range.upperBound)), not '\(text)'"
            )
            return standard
        }
        return Interval(seconds: value)
    }

    /// Returns bytes: a number with KB, MB, GB or TB (powers of 1000) or KiB, MiB, GiB, TiB (of
    /// 1024).
    mutating func bytes(_ name: String, in range: ClosedRange<Int64>, default standard: Int64)
        -> Int64
    {
        let words = OutputFormat.size(standard).filter { $0 != " " }
        defaults[name] = ByteSize.bytes(words) == standard ? words : String(standard)
        guard let text = text(name) else { return standard }
        guard let value = ByteSize.bytes(text), range.contains(value) else {
            let bounds =
                "\(ByteSize.words(range.lowerBound)) to \(ByteSize.words(range.upperBound))"
            fault(
                "\(name) is a size from \(bounds), such as 500MB or 10GB, not '\(text)'; \(ByteSize.units)"
            )
            return standard
        }
        return value
    }
}
