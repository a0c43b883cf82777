// Checks a configuration file before its values are read.
import CommandSupport
import FoundationEssentials
import Model

/// What is wrong with a configuration file as a whole.
enum ConfigurationFile {
    /// The most bytes of a configuration file.
    private static let mostBytes = 1 << 20

    /// Checks names and kinds of values, since a misspelt name, or a value of another kind, would
    /// be ignored silently.
    ///
    /// - Parameter path: the path of the file.
    /// - Returns: the settings of origins in the file, which have a shape of their own.
    /// - Throws: `ConfigurationError`.
    static func origins(_ path: String) throws -> OriginsFile {
        let settings: FileShape
        let bytes: Data
        do throws(InputFile.Fault) {
            bytes = Data(try InputFile.read(path, atMost: mostBytes))
        } catch {
            throw ConfigurationError(faults: ["\(error)"])
        }
        do {
            settings = try JSONDecoder().decode(FileShape.self, from: bytes)
        } catch {
            let reason = Self.reason(notAnObject: Array(bytes))
            throw ConfigurationError(
                faults: ["the file \(path) is no readable JSON object: \(reason)"])
        }
        guard let origins = try? JSONDecoder().decode(OriginsFile.self, from: bytes) else {
            throw ConfigurationError(
                faults: ["the file \(path) must give 'origins' an object of objects"])
        }
        let faults = settings.kinds.sorted { $0.key < $1.key }.compactMap { name, kind -> String? in
            if name == "origins" { return nil }
            guard ServeOptions.names.contains(name) || ServeOptions.formerNames.contains(name)
            else {
                let meant = NearestName.of(name, among: ServeOptions.names)
                return "names an unknown setting '\(name)'"
                    + (meant.map { "; did you mean '\($0)'?" } ?? "")
            }
            let isList = ServeOptions.listNames.contains(name)
            let isSwitch = ServeOptions.switchNames.contains(name)
            switch kind {
            case .text: return nil
            case .texts where isList: return nil
            case .whole where !isList: return nil
            // A token of more digits than a number keeps would be another one.
            case .number where !isList && name != "token": return nil
            // Read as numbers otherwise: `true` would be port 1.
            case .truth where isSwitch: return nil
            default:
                let wanted =
                    isList
                    ? "a text or a list of texts"
                    : isSwitch ? "true or false" : name == "token" ? "a text" : "a text or number"
                return "must give '\(name)' \(wanted)"
            }
        }
        let repeated = RepeatedNames.faults(in: InputFile.withoutMark(Array(bytes)))
        guard faults.isEmpty, repeated.isEmpty else {
            throw ConfigurationError(faults: (faults + repeated).map { "the file \(path) \($0)" })
        }
        return origins
    }

    /// Why a text is no JSON object, and where; Foundation's decoder does not tell on Linux.
    private static func reason(notAnObject text: [UInt8]) -> String {
        // Foundation's decoder skips the mark.
        let text = InputFile.withoutMark(text)
        do throws(JSONFault) {
            _ = try JSONValue(parsing: text)
            return "it is another value"
        } catch {
            let before = text.prefix(error.offset)
            let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
            let line = before.count { $0 == 0x0A } + 1
            return "\(error.message), in line \(line), column \(before.count - start + 1)"
        }
    }
}
