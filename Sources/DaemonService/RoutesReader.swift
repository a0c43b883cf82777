// The configured routes to origins: proxies, trust, client certificates, interfaces, addresses.
import CachePolicy
import CommandSupport
import TLS
import URISyntax
import Upstream

/// Reads the routes into one table; collects every error.
///
/// For each setting, the first pattern that matches an origin decides.
struct RoutesReader {
    /// One setting for the origins that match a pattern.
    private struct Entry<Value: Sendable>: Sendable {
        let pattern: KeyGlob
        let value: Value
    }

    private struct Table: Sendable {
        var proxies: [Entry<OriginProxy?>] = []
        var authorities: [Entry<String>] = []
        var certificates: [Entry<ClientCertificate>] = []
        var pins: [Entry<PublicKeyPins>] = []
        var interfaces: [Entry<LocalInterface>] = []
        /// By `host:port`.
        var addresses: [String: [FixedAddress]] = [:]

        var isEmpty: Bool {
            proxies.isEmpty && authorities.isEmpty && certificates.isEmpty && pins.isEmpty
                && interfaces.isEmpty && addresses.isEmpty
        }

        func route(to origin: Origin) -> OriginRoute {
            let names = OriginNames(origin)
            func first<Value>(_ entries: [Entry<Value>]) -> Value? {
                entries.first { names.match($0.pattern) }?.value
            }
            var settings = OriginRoute.Settings()
            settings.proxy = first(proxies) ?? nil
            settings.caFile = first(authorities)
            settings.certificate = first(certificates)
            settings.pins = first(pins)
            settings.interface = first(interfaces)
            settings.addresses = addresses["\(origin.host):\(origin.port)"] ?? []
            return OriginRoute(settings)
        }
    }

    private var table = Table()
    /// A line for each setting, without secrets.
    private(set) var summary: [String] = []
    private(set) var faults: [String] = []
    /// Hosts with a configured private address, which implies permission to use it.
    private(set) var privateHosts: [String] = []
    /// The hosts of all client certificates, on any port.
    private(set) var certificateHosts: [KeyGlob] = []

    var routes: OriginRoutes {
        let table = table
        return table.isEmpty ? OriginRoutes() : OriginRoutes { table.route(to: $0) }
    }

    /// Reads all settings of routes to origins.
    mutating func read(_ reader: SettingsReader) {
        for text in reader.list("origin-proxy") { readProxy(text) }
        for text in reader.list("origin-ca") { readAuthorities(text) }
        for text in reader.list("origin-cert") { readCertificate(text) }
        for text in reader.list("origin-pin") { readPins(text) }
        for text in reader.list("origin-interface") { readInterface(text) }
        for text in reader.list("resolve") { readAddresses(text) }
    }

    /// Reads the origins that may be fetched from.
    ///
    /// - Parameters:
    ///   - texts: the hosts of `only-origin`; all origins are permitted if there are none.
    ///   - hosts: hosts, as in `Origin.host`, that other settings name; those of proxies are added.
    /// - Returns: the limit.
    mutating func readOnlyOrigins(_ texts: [String], and hosts: Set<String>) -> OnlyOrigins {
        guard !texts.isEmpty else { return OnlyOrigins() }
        var patterns: [KeyGlob] = []
        for text in texts {
            guard let pattern = KeyGlob(host: text) else {
                faults.append(
                    "only-origin is a host, or host:port, with * and ? for any part, not '\(text)'")
                continue
            }
            patterns.append(pattern)
            summary.append("only-origin \(pattern)")
        }
        let known = Set(
            hosts.union(table.proxies.compactMap { $0.value?.host }).map(OriginNames.canonical))
        return OnlyOrigins { [patterns] origin in
            if known.contains(OriginNames.canonical(origin.host)) { return true }
            let names = OriginNames(origin)
            return patterns.contains { names.match($0) }
        }
    }

    /// Reads `HOST=URL` or `HOST=direct`; error messages contain at most a well-formed host of it.
    private mutating func readProxy(_ text: String) {
        guard let (pattern, value) = Self.split(text) else {
            return faults.append(
                "origin-proxy is written HOST=URL or HOST=direct; HOST is a host, or host:port, with * and ? for any part"
            )
        }
        guard value != "direct" else { return addProxy(nil, pattern) }
        do throws(RouteFault) {
            addProxy(try OriginProxy(value), pattern)
        } catch {
            faults.append("the proxy of the origin \(pattern) is wrong: \(error)")
        }
    }

    private mutating func addProxy(_ proxy: OriginProxy?, _ pattern: String) {
        table.proxies.append(Entry(pattern: KeyGlob(pattern), value: proxy))
        summary.append("origin-proxy \(pattern)=\(proxy?.description ?? "direct")")
    }

    /// Reads `HOST=FILE`.
    private mutating func readAuthorities(_ text: String) {
        guard let (pattern, path) = split(text, "origin-ca", "FILE") else { return }
        do throws(InputFile.Fault) {
            let bytes = try InputFile.read(path, atMost: 16 << 20)
            guard String(decoding: bytes, as: UTF8.self).contains("-----BEGIN CERTIFICATE-----")
            else {
                return faults.append(
                    "the origin-ca of \(pattern) cannot be used: \(path) holds no certificate in PEM form"
                )
            }
        } catch {
            return faults.append("the origin-ca of \(pattern) cannot be used: \(error)")
        }
        table.authorities.append(Entry(pattern: KeyGlob(pattern), value: path))
        summary.append("origin-ca \(pattern)=\(path)")
    }

    /// Reads `HOST=CERT,KEY`.
    private mutating func readCertificate(_ text: String) {
        guard let (pattern, value) = split(text, "origin-cert", "CERT,KEY") else { return }
        let paths = value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard paths.count == 2, !paths.contains("") else {
            return faults.append(
                "the origin-cert of \(pattern) is two files, CERT,KEY, in PEM form, not '\(value)'")
        }
        do throws(TLSConfigurationError) {
            _ = try TLSCertificates([TLSFiles(certificate: paths[0], key: paths[1])])
        } catch {
            return faults.append("the origin-cert of \(pattern) cannot be used: \(error)")
        }
        let certificate = ClientCertificate(certificate: paths[0], key: paths[1])
        table.certificates.append(Entry(pattern: KeyGlob(pattern), value: certificate))
        certificateHosts += Self.hosts(of: pattern).map { KeyGlob($0) }
        summary.append("origin-cert \(pattern)=\(value)")
    }

    /// Reads `HOST=PINS`.
    private mutating func readPins(_ text: String) {
        guard let (pattern, value) = split(text, "origin-pin", "sha256//BASE64") else { return }
        guard let pins = PublicKeyPins(value) else {
            return faults.append(
                "the origin-pin of \(pattern) is sha256// and 44 characters of base64, several with ; between them, not '\(value)'"
            )
        }
        table.pins.append(Entry(pattern: KeyGlob(pattern), value: pins))
        summary.append("origin-pin \(pattern)=\(pins)")
    }

    /// Reads `HOST=NAME` or `HOST=ADDRESS`.
    private mutating func readInterface(_ text: String) {
        guard let (pattern, value) = split(text, "origin-interface", "NAME") else { return }
        guard let interface = LocalInterface(value) else {
            return faults.append(
                "the origin-interface of \(pattern) is the name of an interface, 1 to 15 characters without / and !, or an address of this machine, not '\(value)'"
            )
        }
        table.interfaces.append(Entry(pattern: KeyGlob(pattern), value: interface))
        summary.append("origin-interface \(pattern)=\(value)")
    }

    /// Reads `HOST:PORT=ADDRESS[,ADDRESS]`; several for the same host and port add up.
    private mutating func readAddresses(_ text: String) {
        guard let equals = text.firstIndex(of: "="),
            let url = try? AbsoluteURL("http://" + text[..<equals]), let port = url.explicitPort,
            url.userinfo == nil, url.path.isEmpty || url.path == "/", url.query == nil,
            FixedAddress(url.asciiHost) == nil
        else {
            return faults.append(
                "resolve is written HOST:PORT=ADDRESS[,ADDRESS], with the name of a host, not '\(text)'"
            )
        }
        let place = "\(url.asciiHost):\(port)"
        let texts = text[text.index(after: equals)...].split(
            separator: ",", omittingEmptySubsequences: false)
        let found = texts.compactMap { FixedAddress($0) }
        guard found.count == texts.count else {
            return faults.append(
                "the addresses to resolve \(place) to are IPv4 or IPv6, with commas between them, not '\(text[text.index(after: equals)...])'"
            )
        }
        let all = table.addresses[place, default: []] + found
        guard all.count <= 32 else {
            return faults.append("the host \(place) has more than 32 addresses to resolve to")
        }
        table.addresses[place] = all
        if found.contains(where: \.isPrivate) { privateHosts.append(url.asciiHost) }
        summary.append("resolve \(place)=\(found.map(\.description).joined(separator: ","))")
    }

    private mutating func split(_ text: String, _ name: String, _ value: String) -> (
        String, String
    )? {
        if let found = Self.split(text) { return found }
        faults.append(
            "\(name) is written HOST=\(value), with * and ? for any part of the host or host:port, not '\(text)'"
        )
        return nil
    }

    /// Returns the patterns of the hosts of which any port matches a pattern, with the pattern
    /// itself.
    ///
    /// The colon before the port may be matched by a wildcard too, as in `*443`. The one colon of
    /// `fd00:*` may precede a port or be that of an address.
    ///
    /// - Parameter pattern: a pattern of a host, with a port or without.
    /// - Returns: patterns of what `AbsoluteURL.asciiHost` has.
    static func hosts(of pattern: String) -> Set<String> {
        var hosts: Set = [pattern]
        if pattern.hasPrefix("[") {
            hosts.insert(String(pattern.dropFirst().prefix { $0 != "]" }))
        }
        for index in pattern.indices where "*?:".contains(pattern[index]) {
            let port = pattern[pattern.index(after: index)...]
            let isPort = port.allSatisfy { "*?".contains($0) || $0.isASCII && $0.isNumber }
            guard isPort, !port.isEmpty else { continue }
            let host = String(pattern[..<index])
            hosts.insert(pattern[index] == "*" ? host + "*" : host)
        }
        return hosts
    }

    /// Splits at the first equals sign; nil unless a pattern of hosts precedes it, which is returned
    /// in the spelling that is matched.
    private static func split(_ text: String) -> (pattern: String, value: String)? {
        guard let equals = text.firstIndex(of: "="), equals > text.startIndex else { return nil }
        guard let pattern = KeyGlob(host: String(text[..<equals]))?.description else { return nil }
        let isPattern = pattern.utf8.allSatisfy {
            ASCII.isAlphanumeric($0) || "-._:*?[]".utf8.contains($0)
        }
        guard isPattern else { return nil }
        return (pattern, String(text[text.index(after: equals)...]))
    }
}
