// Names that an object of the configuration file has more than once.
import Model

/// Finds settings that the file gives twice: one value would count, and the others be ignored
/// silently.
enum RepeatedNames {
    /// Looks through a configuration file.
    ///
    /// - Parameter text: the file, without a byte order mark; nothing is found in what is no JSON.
    /// - Returns: one error for each repeated name.
    static func faults(in text: [UInt8]) -> [String] {
        guard let file = try? JSONValue(parsing: text), case .object(let settings) = file else {
            return []
        }
        var faults = repeated(in: settings).map { name in
            let isList = ServeOptions.listNames.contains(name)
            return "names '\(name)' twice; "
                + (isList ? "write a list: \"\(name)\": [\"A\", \"B\"]" : "keep one of them")
        }
        for setting in settings { collect(setting, &faults) }
        return faults
    }

    /// Adds the errors in the objects below a setting: `origins` and each origin.
    ///
    /// The parser limits their depth.
    private static func collect(_ setting: JSONValue.Member, _ faults: inout [String]) {
        guard case .object(let members) = setting.value else { return }
        faults += repeated(in: members).map {
            "names '\($0)' twice in '\(setting.name)'; keep one of them"
        }
        for member in members { collect(member, &faults) }
    }

    /// Returns the names that are repeated, each once, in the order of the file.
    private static func repeated(in members: [JSONValue.Member]) -> [String] {
        var counts: [String: Int] = [:]
        return members.compactMap { member in
            counts[member.name, default: 0] += 1
            return counts[member.name] == 2 ? member.name : nil
        }
    }
}
