import HTTPServer
import Model
import Posix
import Serving
import URISyntax
import Upstream

extension DaemonConfiguration {
    /// Where the daemon listens, in the clear and for TLS.
    package var listeningInWords: String {
        let kinds = [
            ("listen on", addresses), ("listen for TLS on", secure?.addresses ?? []),
        ]
        return kinds.filter { !$0.1.isEmpty }.map { words, addresses in
            "\(words) \(addresses.map(\.description).joined(separator: ", "))"
        }.joined(separator: ", ")
    }

    /// Reads how connections to origins are made.
    mutating func readConnections(_ reader: inout SettingsReader) {
        switch reader.text("early-connect", default: "on") {
        case "on", "true": proxy.connectsEarly = true
        case "off", "false": proxy.connectsEarly = false
        case let text: reader.fault("early-connect is on or off, not '\(text)'")
        }
        if let text = reader.text("doh-url") {
            // libcurl accepts no other scheme, and would show a password in its messages. Ours show
            // neither that nor the key that a query may have.
            if let url = try? AbsoluteURL(text), url.scheme == .https, url.userinfo == nil {
                upstream.dohURL = text
            } else {
                reader.fault(
                    "doh-url is the https URL of a DNS server, such as https://9.9.9.9/dns-query, not '\(SettingsList.withoutSecrets("doh-url", text))'"
                )
            }
        }
        keepsTLSTickets = reader.isOn("keep-tls-tickets")
        upstream.usesFastOpen = reader.isOn("tcp-fast-open")
        upstream.marksPackets = reader.isOn("dscp")
        upstream.yields = reader.choice(
            "yield", default: YieldUse.off, else: "yield is off, players or always")
        multipath = reader.choice(
            "mptcp", default: multipath, else: "mptcp is off, auto or on")
        if multipath == .on, !hasMultipath() {
            reader.fault(
                "mptcp is on, but this kernel opens no such sockets; see sysctl net.mptcp.enabled, or set auto"
            )
        }
        upstream.multipath = multipath
    }

    /// Reads the caches that are asked before origins.
    mutating func readParents(_ reader: inout SettingsReader) {
        var parents: [Parent] = []
        for (name, isTrusted) in [("parent", false), ("trusted-parent", true)] {
            for text in reader.list(name) {
                do throws(RouteFault) {
                    parents.append(try Parent(text, isTrusted: isTrusted))
                } catch {
                    reader.fault("a \(name) is wrong: \(error)")
                }
            }
        }
        if parents.count > 16 { reader.fault("there are 16 parents at most, not \(parents.count)") }
        if Set(parents.map(\.root.text)).count != parents.count {
            reader.fault("two parents have the same host and port")
        }
        proxy.parents = Parents(parents)
    }
}
