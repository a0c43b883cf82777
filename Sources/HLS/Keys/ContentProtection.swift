// Content that is encrypted with keys that no HTTP request can fetch: a key system issues them to
// one player, for a limited time.
import URISyntax

/// The key systems that keep the segments of a playlist from being played with stored keys.
package struct ContentProtection: Sendable, Equatable {
    /// The key systems in the order of their first appearance: `FairPlay`, `Widevine`, or the
    /// KEYFORMAT of an unknown one.
    package private(set) var systems: [String]
    /// The number of keys, counted by URI, that segments need and that cannot be stored.
    package private(set) var missingKeys: Int

    /// The most key systems that are listed; further ones are left out.
    fileprivate static let mostSystems = 8

    /// A text for reports: `encrypted with FairPlay; keys missing`.
    package var text: String {
        "encrypted with \(systems.joined(separator: ", ")); keys missing"
    }

    /// Adds the protection of another playlist of the same title.
    package mutating func add(_ other: ContentProtection) {
        for system in other.systems where systems.count < Self.mostSystems {
            if !systems.contains(system) { systems.append(system) }
        }
        missingKeys += other.missingKeys
    }

    /// The keys of a media playlist, as far as key systems are concerned.
    package struct Reading: Sendable {
        /// Nil if every segment has a key that can be fetched, or needs none.
        package let protection: ContentProtection?
        /// The lines, counted from 1, of the keys that only a key system can get.
        package let foreignKeyLines: Set<Int>
    }

    /// Reads the keys of a media playlist (RFC 8216, section 4.3.2.4).
    ///
    /// Where keys with different KEYFORMATs are in force, a player needs only one of them: a
    /// segment counts as protected only if none of them can be fetched. Takes time linear in the
    /// length of the list.
    package static func read(_ list: MediaPlaylist) -> Reading {
        var keys = KeysOfSystems()
        var coming = list.keys[...]
        for segment in list.segments {
            while let key = coming.first, key.line < segment.line {
                keys.take(key)
                coming = coming.dropFirst()
            }
            keys.takeSegment()
        }
        for key in coming { keys.take(key) }
        return keys.reading
    }
}

/// The keys in force, by KEYFORMAT, while a playlist is read.
private struct KeysOfSystems {
    private struct Key {
        /// The key system; nil for a key that can be fetched.
        let system: String?
        let uri: String
    }

    private var inForce: [String: Key] = [:]
    private var fetchable = 0
    /// Formats of keys in force that no protected segment has used yet.
    private var unseen: Set<String> = []
    private var systems: [String] = []
    private var missing: Set<String> = []
    private var foreignLines: Set<Int> = []

    var reading: ContentProtection.Reading {
        ContentProtection.Reading(
            protection: systems.isEmpty
                ? nil : ContentProtection(systems: systems, missingKeys: missing.count),
            foreignKeyLines: foreignLines)
    }

    mutating func take(_ key: EncryptionKey) {
        let line = key.line
        guard !key.isNone else {
            inForce = [:]
            unseen = []
            fetchable = 0
            return
        }
        let format = key.format
        let uri = key.uri ?? ""
        let key = Key(system: KeySystem.name(format: format, uri: uri), uri: uri)
        if let former = inForce.updateValue(key, forKey: format), former.system == nil {
            fetchable -= 1
        }
        if key.system == nil {
            fetchable += 1
            unseen.remove(format)
        } else {
            foreignLines.insert(line)
            unseen.insert(format)
        }
    }

    mutating func takeSegment() {
        guard fetchable == 0, !unseen.isEmpty else { return }
        for format in unseen.sorted() {
            guard let key = inForce[format], let system = key.system else { continue }
            missing.insert(key.uri)
            if systems.count < ContentProtection.mostSystems, !systems.contains(system) {
                systems.append(system)
            }
        }
        unseen = []
    }
}

/// The names of key systems.
private enum KeySystem {
    /// KEYFORMAT values as defined by the key systems; those with `urn:uuid:` are the system IDs of
    /// the DASH-IF registry.
    private static let formats = [
        "com.apple.streamingkeydelivery": "FairPlay",
        "urn:uuid:94ce86fb-07ff-4f43-adb8-93d2fa968ca2": "FairPlay",
        "com.widevine": "Widevine",
        "urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed": "Widevine",
        "com.microsoft.playready": "PlayReady",
        "urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95": "PlayReady",
        "org.w3.clearkey": "ClearKey",
        "urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b": "ClearKey",
        "urn:uuid:e2719d58-a985-b3c9-781a-b030af78d30e": "ClearKey",
        "urn:uuid:3d5e6d35-9b9a-41e8-b843-dd3c6e72c42c": "ChinaDRM",
    ]

    /// Returns the key system that issues a key; nil for a key that is fetched by its URI.
    static func name(format: String, uri: String) -> String? {
        let format = format.lowercased()
        if format == "identity" || format.isEmpty {
            let bytes = Array(uri.utf8)
            guard let range = URIReference.scheme(in: bytes[...]) else { return nil }
            let name = String(decoding: bytes[range].prefix(32), as: UTF8.self)
            let scheme = ASCII.lowercased(name)
            switch scheme {
            case "http", "https", "data": return nil
            case "skd": return "FairPlay"
            default: return "keys of \(scheme)"
            }
        }
        if let known = formats[format] { return known }
        let visible = format.unicodeScalars.prefix(64).filter { (0x21...0x7E).contains($0.value) }
        return String(String.UnicodeScalarView(visible))
    }
}
