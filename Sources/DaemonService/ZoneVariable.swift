// The time zone of quiet hours and of the day of a download budget.
import Glibc

/// The variable TZ: the C library takes a zone that it does not know for UTC, and says nothing
/// (tzset(3)).
enum ZoneVariable {
    /// Names of UTC itself, which need no file.
    private static let universal: Set = ["UTC", "UCT", "GMT", "Etc/UTC", "Etc/UCT", "Etc/GMT"]

    /// What is wrong with the time zone of this process; nil if nothing is known against it.
    static var fault: String? {
        guard let zone = getenv("TZ") else { return nil }
        let folder = getenv("TZDIR").map { String(cString: $0) } ?? "/usr/share/zoneinfo"
        return fault(in: String(cString: zone), folder: folder) { access($0, R_OK) == 0 }
    }

    /// Checks a value of TZ.
    ///
    /// - Parameters:
    ///   - value: a name, a path, or a rule such as `CET-1CEST,M3.5.0,M10.5.0/3`.
    ///   - folder: the folder of the named zones.
    ///   - isReadable: true for the path of a file that can be read.
    /// - Returns: what is wrong and what to do; nil if nothing is.
    static func fault(
        in value: String, folder: String, isReadable: (String) -> Bool
    ) -> String? {
        let name = value.hasPrefix(":") ? String(value.dropFirst()) : value
        let path = name.hasPrefix("/") ? name : "\(folder)/\(name)"
        guard !name.isEmpty, !universal.contains(name), !isRule(name), !isReadable(path) else {
            return nil
        }
        return """
            quiet-hours and the day of download-budget are in UTC, since this system does not have \
            the time zone '\(value)' of the variable TZ; install tzdata, or write TZ as a rule such \
            as CET-1CEST,M3.5.0,M10.5.0/3
            """
    }

    /// True if a value begins like a rule: an abbreviation and an offset.
    private static func isRule(_ text: String) -> Bool {
        var rest = text[...]
        if rest.first == "<" {
            guard let end = rest.firstIndex(of: ">") else { return false }
            rest = rest[end...].dropFirst()
        } else {
            let letters = rest.prefix { $0.isASCII && $0.isLetter }
            guard letters.count >= 3 else { return false }
            rest = rest[letters.endIndex...]
        }
        if rest.first == "+" || rest.first == "-" { rest = rest.dropFirst() }
        return rest.first.map { $0.isASCII && $0.isNumber } ?? false
    }
}
