// A header field that a mount sends to its origin, as an option gives it.
import HTTP
import URISyntax

/// One value of `--mount-header`.
package struct MountHeader: Sendable {
    /// Why a value cannot be used; contains nothing but its path and the name of its field, since
    /// the rest may be a secret.
    package enum Fault: Error, Hashable, Sendable, CustomStringConvertible {
        case syntax
        case noMount(path: String)
        case refused(path: String, String)

        package var description: String {
            switch self {
            case .syntax:
                "mount-header is written PATH=NAME: VALUE, such as '/demo/=X-Api-Key: ...', with the path of a mount (a value with commas cannot be given in the environment)"
            case .noMount(let path):
                "mount-header names '\(path)', and no mount has this path; add --mount \(path)=URL"
            case .refused(let path, let reason): "mount-header for \(path): \(reason)"
            }
        }
    }

    /// The path of the mount; starts and ends with "/".
    package let path: String
    package let header: Entry.Header

    /// Parses `PATH=NAME: VALUE`; a missing slash at the end of the path is added.
    ///
    /// - Throws: `Fault.syntax`.
    package init(_ text: String) throws(Fault) {
        guard let equals = text.firstIndex(of: "=") else { throw .syntax }
        let path = text[..<equals]
        guard path.hasPrefix("/"), !path.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }),
            let colon = text[equals...].firstIndex(of: ":")
        else { throw .syntax }
        let name = String(text[text.index(after: equals)..<colon])
        var value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        while let last = value.last, last == " " || last == "\t" { value.removeLast() }
        guard !name.isEmpty, name.utf8.allSatisfy(ASCII.isToken) else { throw .syntax }
        self.path = path.hasSuffix("/") ? String(path) : "\(path)/"
        header = Entry.Header(name: name, value: String(value))
    }

    /// Returns why a mount cannot have a header field; nil if it can.
    static func reason(against header: Entry.Header, in mount: Mount) -> String? {
        let name = ASCII.lowercased(header.name)
        if refusedNames.contains(name) {
            return "the header \(header.name) cannot be the same in all requests"
        }
        // Most likely it was forgotten, as where a variable of a script is not set.
        if header.value.isEmpty { return "the header \(header.name) has no value" }
        if mount.headers.contains(where: { ASCII.lowercased($0.name) == name }) {
            return "the header \(header.name) is given twice"
        }
        if name == "authorization", mount.userinfo != nil {
            return "its URL has user information, which becomes Authorization; give one of the two"
        }
        return PlayerHeaders.fault(of: mount.headers + [header], at: "of the mount")
    }

    /// Names of fields that belong to one request or connection, besides those that
    /// `Entry.Header.fault` refuses.
    private static let refusedNames: Set<String> = [
        "cookie", "if", "if-match", "if-unmodified-since", "icy-metadata", "destination",
        "max-forwards", "proxy-authenticate", "proxy-authentication-info",
    ]
}
